//! Typed values and strings (SPOE.txt, section 3.1). Must never read beyond the input.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::peers::{decode_integer, encode_integer};

/// The bytes violate the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Type codes.
const NULL: u8 = 0;
const BOOL: u8 = 1;
const INT32: u8 = 2;
const UINT32: u8 = 3;
const INT64: u8 = 4;
const UINT64: u8 = 5;
const IPV4: u8 = 6;
const IPV6: u8 = 7;
const STRING: u8 = 8;
const BINARY: u8 = 9;
/// The flag of a boolean that is true.
const TRUE: u8 = 0x10;
/// Mask of the type code.
const TYPE: u8 = 0x0f;

/// A typed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data<'a> {
    Null,
    Bool(bool),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Str(&'a [u8]),
    Bin(&'a [u8]),
}

impl<'a> Data<'a> {
    /// Appends the encoded value. Signed integers are extended to 64 bits.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Null => out.push(NULL),
            Self::Bool(true) => out.push(BOOL | TRUE),
            Self::Bool(false) => out.push(BOOL),
            Self::Int32(number) => typed_integer(out, INT32, i64::from(number) as u64),
            Self::Uint32(number) => typed_integer(out, UINT32, number.into()),
            Self::Int64(number) => typed_integer(out, INT64, number as u64),
            Self::Uint64(number) => typed_integer(out, UINT64, number),
            Self::Ipv4(address) => {
                out.push(IPV4);
                out.extend_from_slice(&address.octets());
            }
            Self::Ipv6(address) => {
                out.push(IPV6);
                out.extend_from_slice(&address.octets());
            }
            Self::Str(text) => {
                out.push(STRING);
                encode_string(out, text);
            }
            Self::Bin(bytes) => {
                out.push(BINARY);
                encode_string(out, bytes);
            }
        }
    }

    /// Consumes a value. An integer that does not fit into the 32 bits of its type is returned as one of 64 bits.
    ///
    /// # Errors
    /// The type is unknown, or the value is truncated.
    pub fn take(bytes: &mut &'a [u8]) -> Result<Self, Malformed> {
        let first = take_byte(bytes)?;
        Ok(match first & TYPE {
            NULL => Self::Null,
            BOOL => Self::Bool(first & TRUE != 0),
            INT32 => {
                let number = take_integer(bytes)? as i64;
                i32::try_from(number).map_or(Self::Int64(number), Self::Int32)
            }
            UINT32 => {
                let number = take_integer(bytes)?;
                u32::try_from(number).map_or(Self::Uint64(number), Self::Uint32)
            }
            INT64 => Self::Int64(take_integer(bytes)? as i64),
            UINT64 => Self::Uint64(take_integer(bytes)?),
            IPV4 => {
                let octets: [u8; 4] = take_bytes(bytes, 4)?.try_into().map_err(|_| Malformed)?;
                Self::Ipv4(octets.into())
            }
            IPV6 => {
                let octets: [u8; 16] = take_bytes(bytes, 16)?.try_into().map_err(|_| Malformed)?;
                Self::Ipv6(octets.into())
            }
            STRING => Self::Str(take_string(bytes)?),
            BINARY => Self::Bin(take_string(bytes)?),
            _ => return Err(Malformed),
        })
    }

    /// Returns the value of any integer type, as 64 bits.
    pub fn integer(&self) -> Option<u64> {
        match *self {
            Self::Int32(number) => Some(i64::from(number) as u64),
            Self::Int64(number) => Some(number as u64),
            _ => self.unsigned(),
        }
    }

    /// Returns the value of any integer type; `None` if it is negative.
    pub fn unsigned(&self) -> Option<u64> {
        match *self {
            Self::Int32(number) => u64::try_from(number).ok(),
            Self::Uint32(number) => Some(number.into()),
            Self::Int64(number) => u64::try_from(number).ok(),
            Self::Uint64(number) => Some(number),
            _ => None,
        }
    }
}

fn typed_integer(out: &mut Vec<u8>, kind: u8, number: u64) {
    out.push(kind);
    encode_integer(out, number);
}

/// Appends a length-prefixed string.
pub(super) fn encode_string(out: &mut Vec<u8>, text: &[u8]) {
    encode_integer(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Consumes a byte.
pub(super) fn take_byte(bytes: &mut &[u8]) -> Result<u8, Malformed> {
    let (first, rest) = bytes.split_first().ok_or(Malformed)?;
    *bytes = rest;
    Ok(*first)
}

/// Consumes `count` bytes.
pub(super) fn take_bytes<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(Malformed)?;
    *bytes = rest;
    Ok(taken)
}

/// Consumes a variable-length integer.
pub(super) fn take_integer(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let (number, length) = decode_integer(bytes).ok().flatten().ok_or(Malformed)?;
    take_bytes(bytes, length)?;
    Ok(number)
}

/// Consumes a length-prefixed string.
///
/// # Errors
/// The string is truncated.
pub fn take_string<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(take_integer(bytes)?).map_err(|_| Malformed)?;
    take_bytes(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and their encoding.
    #[test]
    fn values_are_coded_as_the_specification_says() {
        let ip6 = Ipv6Addr::LOCALHOST;
        let rows: &[(Data<'_>, &[u8])] = &[
            (Data::Null, &[0]),
            (Data::Bool(false), &[1]),
            (Data::Bool(true), &[0x11]),
            (Data::Int32(7), &[2, 7]),
            (Data::Uint32(240), &[3, 240, 0]),
            (Data::Int64(500), &[4, 0xf4, 0x10]),
            (Data::Int64(-1), &[4, 0xff, 0xf0, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0x0e]),
            (Data::Uint64(2_288), &[5, 0xf0, 0x80, 0]),
            (Data::Ipv4(Ipv4Addr::new(10, 0, 0, 1)), &[6, 10, 0, 0, 1]),
            (Data::Ipv6(ip6), &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            (Data::Str(b"abc"), &[8, 3, b'a', b'b', b'c']),
            (Data::Bin(b""), &[9, 0]),
        ];
        for (value, bytes) in rows {
            let mut out = Vec::new();
            value.encode(&mut out);
            assert_eq!(out, *bytes, "{value:?}");
            let mut rest = *bytes;
            assert_eq!(Data::take(&mut rest), Ok(*value));
            assert!(rest.is_empty());
            for shorter in 0..bytes.len() {
                assert_eq!(Data::take(&mut &bytes[..shorter]), Err(Malformed), "{value:?}");
            }
        }
    }

    #[test]
    fn integers_that_do_not_fit_their_type_keep_their_bits() {
        let rows = [
            (INT32, u64::from(u32::MAX), Data::Int64(u32::MAX.into())),
            (INT32, 1 << 35, Data::Int64(1 << 35)),
            (INT32, i64::from(-7_i32) as u64, Data::Int32(-7)),
            (UINT32, (1 << 33) + 5, Data::Uint64((1 << 33) + 5)),
            (UINT32, u64::from(u32::MAX), Data::Uint32(u32::MAX)),
        ];
        for (kind, number, expected) in rows {
            let mut bytes = Vec::new();
            typed_integer(&mut bytes, kind, number);
            assert_eq!(Data::take(&mut &bytes[..]), Ok(expected), "{kind} {number}");
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let rows: &[&[u8]] = &[&[10], &[15, 0], &[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]];
        for bytes in rows {
            assert_eq!(Data::take(&mut &bytes[..]), Err(Malformed), "{bytes:?}");
        }
        // Undefined flags are ignored.
        assert_eq!(Data::take(&mut &[0xf0][..]), Ok(Data::Null));
        assert_eq!(Data::take(&mut &[0x21][..]), Ok(Data::Bool(false)));
    }
}
