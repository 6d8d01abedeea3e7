//! The matching methods, and the types that they take (section 7.1).

use super::Notation;
use crate::sample::Type;

/// How a sample is matched against a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `found`: the sample exists.
    Found,
    /// `bool`: the sample is true.
    Bool,
    /// `int`: the number is in a range.
    Int,
    /// `int` for versions, with ranges of dotted numbers.
    Dotted,
    /// `ip`: the address is in a network.
    Ip,
    /// `bin`: the same bytes, as hexadecimal digits.
    Bin,
    /// `len`: the length is in a range.
    Len,
    /// `str`: the same text.
    Str,
    /// `sub`: the sample contains the text.
    Sub,
    /// `reg`: the regular expression matches.
    Reg,
    /// `beg`: the sample begins with the text.
    Beg,
    /// `end`: the sample ends with the text.
    End,
    /// `dir`: a part between slashes is the text.
    Dir,
    /// `dom`: a part between dots is the text.
    Dom,
    /// The request fits the route: a table of routes, which has no name in ACLs.
    Route,
}

impl Method {
    /// The names of all methods.
    pub const NAMES: [&'static str; 13] =
        ["found", "bool", "int", "ip", "bin", "len", "str", "sub", "reg", "beg", "end", "dir", "dom"];

    /// Returns the method of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "found" => Self::Found,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "ip" => Self::Ip,
            "bin" => Self::Bin,
            "len" => Self::Len,
            "str" => Self::Str,
            "sub" => Self::Sub,
            "reg" => Self::Reg,
            "beg" => Self::Beg,
            "end" => Self::End,
            "dir" => Self::Dir,
            "dom" => Self::Dom,
            _ => return None,
        })
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Bool => "bool",
            Self::Int | Self::Dotted => "int",
            Self::Ip => "ip",
            Self::Bin => "bin",
            Self::Len => "len",
            Self::Str => "str",
            Self::Sub => "sub",
            Self::Reg => "reg",
            Self::Beg => "beg",
            Self::End => "end",
            Self::Dir => "dir",
            Self::Dom => "dom",
            Self::Route => "route",
        }
    }

    /// Returns the default method of a type; `None`: one must be written.
    pub const fn implied_by(kind: Type) -> Option<Self> {
        match kind {
            Type::Bool => Some(Self::Bool),
            Type::Int => Some(Self::Int),
            Type::Addr | Type::Ipv4 | Type::Ipv6 => Some(Self::Ip),
            Type::Str | Type::Method => Some(Self::Str),
            Type::Any | Type::Bin => None,
        }
    }

    /// Returns the type that samples are cast to before matching; `None`: they are not cast.
    pub const fn input(self) -> Option<Type> {
        match self {
            Self::Found => None,
            Self::Bool => Some(Type::Bool),
            Self::Int | Self::Dotted => Some(Type::Int),
            Self::Ip => Some(Type::Addr),
            Self::Bin => Some(Type::Bin),
            Self::Len
            | Self::Str
            | Self::Sub
            | Self::Reg
            | Self::Beg
            | Self::End
            | Self::Dir
            | Self::Dom
            | Self::Route => Some(Type::Str),
        }
    }

    /// The notation of the numbers in its patterns.
    pub(crate) const fn notation(self) -> Notation {
        if matches!(self, Self::Dotted) { Notation::Dotted } else { Notation::Plain }
    }

    /// Whether it needs no pattern.
    pub const fn takes_no_pattern(self) -> bool {
        matches!(self, Self::Found | Self::Bool)
    }
}
