//! Keys of tables: conversion of samples, and storage. Must never truncate a key except as the manual specifies: to the
//! length of the table.

use config::spec::TableKeySpec;
use expression::sample::{Context, Type, Value, cast};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The bytes of a key.
#[derive(Debug, Clone, Copy)]
pub enum TableKey<'a> {
    /// Of a fixed size.
    Short([u8; 16], usize),
    /// A string or binary.
    Long(&'a [u8]),
}

impl<'a> TableKey<'a> {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(bytes, length) => &bytes[..*length],
            Self::Long(bytes) => bytes,
        }
    }

    /// Creates a key from an IPv4 address.
    #[inline]
    pub fn ipv4(address: Ipv4Addr) -> Self {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&address.octets());
        Self::Short(bytes, 4)
    }

    /// Creates a key from an IPv6 address.
    pub fn ipv6(address: Ipv6Addr) -> Self {
        Self::Short(address.octets(), 16)
    }

    /// Creates a key from a number.
    pub fn integer(number: u32) -> Self {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Self::Short(bytes, 4)
    }

    /// Converts a sample to a key of that type; `None`: it cannot be converted.
    #[inline]
    pub fn of_sample(spec: TableKeySpec, context: &Context<'a>, value: Value<'a>) -> Option<Self> {
        if let (TableKeySpec::Ipv4, Value::Ipv4(address)) = (spec, value) {
            return Some(Self::ipv4(address));
        }
        let wanted = sample_type(spec);
        let value = cast(value.kind(), wanted).and_then(|cast| cast(context, value))?;
        match (spec, value) {
            (TableKeySpec::Ipv4, Value::Ipv4(address)) => Some(Self::ipv4(address)),
            (TableKeySpec::Ipv6, Value::Ipv6(address)) => Some(Self::ipv6(address)),
            (TableKeySpec::Ipv6, Value::Ipv4(address)) => Some(Self::ipv6(address.to_ipv6_mapped())),
            (TableKeySpec::Integer, value) => value.integer().map(|number| Self::integer(number as u32)),
            (TableKeySpec::Text(length), value) => {
                let text = value.bytes()?;
                // A string ends at its first NUL.
                let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
                Some(Self::Long(&text[..text.len().min(length as usize)]))
            }
            (TableKeySpec::Binary(length), value) => {
                let (block, length) = (value.bytes()?, length as usize);
                match block.len() {
                    there if there >= length => Some(Self::Long(&block[..length])),
                    there => {
                        let padded = context.arena.alloc_slice_fill_copy(length, 0);
                        padded[..there].copy_from_slice(block);
                        Some(Self::Long(padded))
                    }
                }
            }
            _ => None,
        }
    }
}

/// The type to which a sample is cast before it becomes a key.
pub fn sample_type(spec: TableKeySpec) -> Type {
    match spec {
        TableKeySpec::Ipv4 => Type::Ipv4,
        TableKeySpec::Ipv6 => Type::Ipv6,
        TableKeySpec::Integer => Type::Int,
        TableKeySpec::Text(_) => Type::Str,
        TableKeySpec::Binary(_) => Type::Bin,
    }
}

/// Converts a key to a sample (`sc_key`).
pub fn sample_of<'a>(spec: TableKeySpec, key: &'a [u8]) -> Option<Value<'a>> {
    Some(match spec {
        TableKeySpec::Ipv4 => Value::Ipv4(<[u8; 4]>::try_from(key).ok()?.into()),
        TableKeySpec::Ipv6 => Value::Ipv6(<[u8; 16]>::try_from(key).ok()?.into()),
        TableKeySpec::Integer => Value::Int(u32::from_be_bytes(key.try_into().ok()?).into()),
        TableKeySpec::Text(_) => Value::Str(key),
        TableKeySpec::Binary(_) => Value::Bin(key),
    })
}

/// The keys of a shard, by slot.
#[derive(Debug)]
pub(super) enum Keys {
    Four(Vec<[u8; 4]>),
    Sixteen(Vec<[u8; 16]>),
    Long(Vec<Box<[u8]>>),
}

impl Keys {
    pub(super) fn new(spec: TableKeySpec) -> Self {
        match spec {
            TableKeySpec::Ipv4 | TableKeySpec::Integer => Self::Four(Vec::new()),
            TableKeySpec::Ipv6 => Self::Sixteen(Vec::new()),
            TableKeySpec::Text(_) | TableKeySpec::Binary(_) => Self::Long(Vec::new()),
        }
    }

    #[inline]
    pub(super) fn is(&self, at: usize, key: &[u8]) -> bool {
        match self {
            Self::Four(list) => list[at] == *key,
            Self::Sixteen(list) => list[at] == *key,
            Self::Long(list) => *list[at] == *key,
        }
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        match self {
            Self::Four(list) => &list[at],
            Self::Sixteen(list) => &list[at],
            Self::Long(list) => &list[at],
        }
    }

    /// Appends a key. A wrong size is impossible: keys are created with the table's type.
    pub(super) fn push(&mut self, key: &[u8]) {
        match self {
            Self::Four(list) => list.push(key.try_into().unwrap_or_default()),
            Self::Sixteen(list) => list.push(key.try_into().unwrap_or_default()),
            Self::Long(list) => list.push(key.into()),
        }
    }

    pub(super) fn set(&mut self, at: usize, key: &[u8]) {
        match self {
            Self::Four(list) => list[at] = key.try_into().unwrap_or_default(),
            Self::Sixteen(list) => list[at] = key.try_into().unwrap_or_default(),
            Self::Long(list) => list[at] = key.into(),
        }
    }

    /// Releases the memory of a key.
    pub(super) fn clear(&mut self, at: usize) {
        if let Self::Long(list) = self {
            list[at] = Box::default();
        }
    }
}
