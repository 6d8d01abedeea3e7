//! The types of samples, and the value of a sample. Must never convert one into another.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The type of a sample (configuration manual, section 7.1), with its name in HAProxy's dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// Any type: the output of a converter that keeps the type, the input of one that accepts all.
    Any,
    /// `bool`.
    Bool,
    /// `sint`: 64 bits, signed.
    Int,
    /// `addr`: an IPv4 or IPv6 address.
    Addr,
    /// `ipv4`.
    Ipv4,
    /// `ipv6`.
    Ipv6,
    /// `str`.
    Str,
    /// `bin`.
    Bin,
    /// `meth`: an HTTP method.
    Method,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Bool => "bool",
            Self::Int => "sint",
            Self::Addr => "addr",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Str => "str",
            Self::Bin => "bin",
            Self::Method => "meth",
        })
    }
}

/// A sample. It borrows from the memory of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    /// A string: bytes of unspecified encoding.
    Str(&'a [u8]),
    /// Binary.
    Bin(&'a [u8]),
    /// An HTTP method, as written.
    Method(&'a [u8]),
}

impl<'a> Value<'a> {
    pub const fn kind(&self) -> Type {
        match self {
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Ipv4(_) => Type::Ipv4,
            Self::Ipv6(_) => Type::Ipv6,
            Self::Str(_) => Type::Str,
            Self::Bin(_) => Type::Bin,
            Self::Method(_) => Type::Method,
        }
    }

    /// Returns the bytes of a string, a binary or a method.
    pub const fn bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Str(bytes) | Self::Bin(bytes) | Self::Method(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Length in bytes of a string, a binary or a method; 0 for other types.
    #[inline]
    pub const fn size(&self) -> usize {
        match self {
            Self::Str(bytes) | Self::Bin(bytes) | Self::Method(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Returns the integer; a boolean is 0 or 1.
    pub const fn integer(&self) -> Option<i64> {
        match *self {
            Self::Int(number) => Some(number),
            Self::Bool(flag) => Some(flag as i64),
            _ => None,
        }
    }

    /// Returns the address.
    pub const fn address(&self) -> Option<IpAddr> {
        match *self {
            Self::Ipv4(address) => Some(IpAddr::V4(address)),
            Self::Ipv6(address) => Some(IpAddr::V6(address)),
            _ => None,
        }
    }
}

impl From<IpAddr> for Value<'_> {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::Ipv4(address),
            IpAddr::V6(address) => Self::Ipv6(address),
        }
    }
}
