//! Keys of limits: conversion of samples, and their form in the store. Must never allocate.

use expression::sample::{Context, Type, Value, cast};
use std::io::Write as _;

/// Maximum length of a key in bytes; a longer one is truncated.
pub const LONGEST: usize = 128;

/// Types of keys: the first byte.
const TEXT: u8 = 0;
const IPV4: u8 = 1;
const IPV6: u8 = 2;
const INTEGER: u8 = 3;

/// A key: its type, and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct LimitKey {
    length: u8,
    bytes: [u8; LONGEST + 1],
}

impl LimitKey {
    #[inline]
    fn new(kind: u8, content: &[u8]) -> Self {
        let length = content.len().min(LONGEST);
        let mut bytes = [0; LONGEST + 1];
        bytes[0] = kind;
        bytes[1..=length].copy_from_slice(&content[..length]);
        Self { length: length as u8 + 1, bytes }
    }

    /// Converts a sample of any type. `None`: it cannot be converted to a text.
    #[inline]
    pub fn of_sample<'a>(context: &Context<'a>, value: Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Ipv4(address) => Self::new(IPV4, &address.octets()),
            Value::Ipv6(address) => Self::new(IPV6, &address.octets()),
            Value::Int(number) => Self::new(INTEGER, &number.to_be_bytes()),
            Value::Str(text) | Value::Bin(text) | Value::Method(text) => Self::new(TEXT, text),
            Value::Bool(_) => {
                let text = cast(value.kind(), Type::Str).and_then(|cast| cast(context, value))?;
                Self::new(TEXT, text.bytes()?)
            }
        })
    }

    /// Creates a key from a text.
    pub fn text(text: &[u8]) -> Self {
        Self::new(TEXT, text)
    }

    /// Returns the type and the bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

/// Appends the form of a key in the store: addresses and numbers as text, other keys as they are.
pub(super) fn push(key: &[u8], out: &mut Vec<u8>) {
    let Some((kind, content)) = key.split_first() else { return };
    // A vector accepts all bytes.
    let _ = match (*kind, content.len()) {
        (IPV4, 4) => <[u8; 4]>::try_from(content).map(|four| write!(out, "{}", std::net::Ipv4Addr::from(four))),
        (IPV6, 16) => <[u8; 16]>::try_from(content).map(|six| write!(out, "{}", std::net::Ipv6Addr::from(six))),
        (INTEGER, 8) => <[u8; 8]>::try_from(content).map(|number| write!(out, "{}", i64::from_be_bytes(number))),
        _ => {
            out.extend_from_slice(content);
            return;
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn keys_are_text_in_the_store() {
        let long = vec![b'x'; 300];
        let rows = [
            (LimitKey::new(IPV4, &Ipv4Addr::new(192, 0, 2, 1).octets()), &b"192.0.2.1"[..]),
            (LimitKey::new(IPV6, &Ipv6Addr::LOCALHOST.octets()), b"::1"),
            (LimitKey::new(INTEGER, &(-5_i64).to_be_bytes()), b"-5"),
            (LimitKey::text(b"a:\r\n\0b"), b"a:\r\n\0b"),
            (LimitKey::text(b""), b""),
            (LimitKey::text(&long), &long[..LONGEST]),
        ];
        for (key, expected) in rows {
            let mut out = b"weir:".to_vec();
            push(key.bytes(), &mut out);
            assert_eq!(out.strip_prefix(b"weir:"), Some(expected));
        }
        assert_ne!(LimitKey::text(b"\0\0\0\x01").bytes(), LimitKey::new(IPV4, &[0, 0, 0, 1]).bytes());
    }
}
