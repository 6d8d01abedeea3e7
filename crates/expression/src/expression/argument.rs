//! The arguments of fetches and converters: their types as declared by a row, their values as written in a
//! configuration. Must never depend on what a fetch does with them.

use super::Names;
use crate::variable::Variable;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Str,
    /// A signed integer.
    Int,
    /// A frontend's name; the current one if omitted.
    Frontend,
    /// A backend's name.
    Backend,
    /// A proxy with a stick table.
    Table,
    /// `backend/server`, or a server of the current backend.
    Server,
    /// A `userlist`.
    Userlist,
    /// A regular expression, which the row's check compiles.
    Regex,
    /// An IPv4 address.
    Ipv4,
    /// An IPv4 netmask, or its number of bits.
    Mask4,
    /// An IPv6 address.
    Ipv6,
    /// An IPv6 netmask, or its number of bits.
    Mask6,
    /// The path to a field of Protocol Buffers: numbers with dots.
    FieldPath,
}

impl Kind {
    /// The type's name in HAProxy's dump.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Str => "string",
            Self::Int => "integer",
            Self::Frontend => "frontend",
            Self::Backend => "backend",
            Self::Table => "table",
            Self::Server => "server",
            Self::Userlist => "user list",
            Self::Regex => "regex",
            Self::Ipv4 => "IPv4 address",
            Self::Mask4 => "IPv4 mask",
            Self::Ipv6 => "IPv6 address",
            Self::Mask6 => "IPv6 mask",
            Self::FieldPath => "Protocol buffers field number",
        }
    }
}

/// The arguments of a row: their types, and the number of required ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The types, in order.
    pub kinds: Cow<'static, [Kind]>,
    /// Number of required arguments.
    pub required: usize,
}

impl Signature {
    /// No arguments.
    pub const NONE: Self = Self { kinds: Cow::Borrowed(&[]), required: 0 };

    /// Creates a signature: the first `required` arguments are required, the others optional.
    pub const fn new(required: usize, kinds: &'static [Kind]) -> Self {
        Self { kinds: Cow::Borrowed(kinds), required }
    }

    /// Creates the signature of a registered row.
    pub fn owned(required: usize, kinds: Vec<Kind>) -> Self {
        Self { required: required.min(kinds.len()), kinds: Cow::Owned(kinds) }
    }
}

impl fmt::Display for Signature {
    /// The signature as in HAProxy's dump: `(string[,integer])`; nothing without arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kinds.is_empty() {
            return Ok(());
        }
        f.write_str("(")?;
        for (index, kind) in self.kinds.iter().enumerate() {
            if index == self.required {
                f.write_str("[")?;
            }
            if index > 0 {
                f.write_str(",")?;
            }
            f.write_str(kind.name())?;
        }
        if self.required < self.kinds.len() {
            f.write_str("]")?;
        }
        f.write_str(")")
    }
}

/// The value of an argument.
#[derive(Clone, Default)]
pub enum Argument {
    /// Omitted.
    #[default]
    Absent,
    Str(Box<[u8]>),
    Int(i64),
    /// A proxy's index.
    Proxy(usize),
    /// A server: the indices of its backend and of itself.
    Server(usize, usize),
    /// A stick table's index.
    Table(usize),
    /// A `userlist`'s index.
    Userlist(usize),
    /// An IPv4 address or mask.
    Ipv4(Ipv4Addr),
    /// An IPv6 address or mask.
    Ipv6(Ipv6Addr),
    /// A variable, set by a row's check.
    Variable(Variable),
    /// A value that a row's check compiled from the text alone, such as a regular expression or a path.
    Made(Arc<dyn Any + Send + Sync>),
    /// A value that a row's check looked up by name, such as a map, an ACL or a key.
    Found(Arc<dyn NamedObject>),
}

impl fmt::Debug for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("Absent"),
            Self::Str(text) => write!(f, "Str({:?})", String::from_utf8_lossy(text)),
            Self::Int(number) => write!(f, "Int({number})"),
            Self::Proxy(index) => write!(f, "Proxy({index})"),
            Self::Server(backend, index) => write!(f, "Server({backend}, {index})"),
            Self::Table(index) => write!(f, "Table({index})"),
            Self::Userlist(index) => write!(f, "Userlist({index})"),
            Self::Ipv4(address) => write!(f, "Ipv4({address})"),
            Self::Ipv6(address) => write!(f, "Ipv6({address})"),
            Self::Variable(variable) => write!(f, "Variable({})", variable.text),
            Self::Made(_) => f.write_str("Made(_)"),
            Self::Found(_) => f.write_str("Found(_)"),
        }
    }
}

/// A value looked up by a name of the configuration. The same name may refer to another value in another configuration,
/// or later.
pub trait NamedObject: Any + Send + Sync {
    /// Whether another argument refers to the same value.
    fn is_same(&self, other: &dyn NamedObject) -> bool;

    /// For downcasting.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any + Send + Sync + PartialEq> NamedObject for T {
    fn is_same(&self, other: &dyn NamedObject) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PartialEq for Argument {
    /// Whether both have the same meaning. Values compiled from a text alone count as equal if they have the same type:
    /// the caller compares the texts.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Str(own), Self::Str(other)) => own == other,
            (Self::Int(own), Self::Int(other)) => own == other,
            (Self::Server(backend, server), Self::Server(other, of_other)) => (backend, server) == (other, of_other),
            (Self::Proxy(own), Self::Proxy(other))
            | (Self::Table(own), Self::Table(other))
            | (Self::Userlist(own), Self::Userlist(other)) => own == other,
            (Self::Ipv4(own), Self::Ipv4(other)) => own == other,
            (Self::Ipv6(own), Self::Ipv6(other)) => own == other,
            (Self::Variable(own), Self::Variable(other)) => own == other,
            (Self::Made(own), Self::Made(other)) => (**own).type_id() == (**other).type_id(),
            (Self::Found(own), Self::Found(other)) => own.is_same(&**other),
            _ => false,
        }
    }
}

/// The arguments of one fetch or converter, one per type of its signature; the function of a registered row follows
/// them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(Box<[Argument]>);

impl Arguments {
    pub(super) fn new(list: Vec<Argument>) -> Self {
        Self(list.into())
    }

    /// Returns the nth argument.
    pub fn get(&self, index: usize) -> &Argument {
        const ABSENT: &Argument = &Argument::Absent;
        self.0.get(index).unwrap_or(ABSENT)
    }

    /// Replaces the nth argument with the value that a check compiled.
    pub fn set(&mut self, index: usize, argument: Argument) {
        if let Some(place) = self.0.get_mut(index) {
            *place = argument;
        }
    }

    /// Appends the function of a registered row.
    pub(super) fn with_function(self, function: Arc<dyn Any + Send + Sync>) -> Self {
        let mut list = self.0.into_vec();
        list.push(Argument::Made(function));
        Self(list.into())
    }

    /// Returns the function of a registered row.
    pub(crate) fn function<T: 'static>(&self) -> Option<&T> {
        self.made(self.0.len().checked_sub(1)?)
    }

    /// The maximum number of arguments.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the nth argument was written.
    pub fn has(&self, index: usize) -> bool {
        !matches!(self.get(index), Argument::Absent)
    }

    /// Returns the nth argument as text.
    pub fn text(&self, index: usize) -> Option<&[u8]> {
        match self.get(index) {
            Argument::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the nth argument as UTF-8 text.
    pub fn utf8(&self, index: usize) -> Option<&str> {
        std::str::from_utf8(self.text(index)?).ok()
    }

    /// Returns the nth argument as an integer.
    pub fn int(&self, index: usize) -> Option<i64> {
        match self.get(index) {
            Argument::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the nth argument as a proxy's index.
    pub fn proxy(&self, index: usize) -> Option<usize> {
        match self.get(index) {
            Argument::Proxy(proxy) => Some(*proxy),
            _ => None,
        }
    }

    /// Returns the nth argument as a stick table's index.
    pub fn table(&self, index: usize) -> Option<usize> {
        match self.get(index) {
            Argument::Table(table) => Some(*table),
            _ => None,
        }
    }

    /// Returns the nth argument as a variable.
    pub fn variable(&self, index: usize) -> Option<&Variable> {
        match self.get(index) {
            Argument::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    /// Returns the nth argument as the value that a check compiled.
    pub fn made<T: 'static>(&self, index: usize) -> Option<&T> {
        match self.get(index) {
            Argument::Made(made) => made.downcast_ref(),
            Argument::Found(found) => (**found).as_any().downcast_ref(),
            _ => None,
        }
    }
}

/// Replaces the nth argument with a variable.
pub fn to_variable(arguments: &mut Arguments, index: usize) -> Result<(), String> {
    if let Some(text) = arguments.utf8(index) {
        let variable = Variable::parse(text)?;
        arguments.set(index, Argument::Variable(variable));
    }
    Ok(())
}

/// Parses one argument.
pub(super) fn value(kind: Kind, text: &str, names: &dyn Names) -> Result<Argument, String> {
    let bits = |text: &str, most: u32| text.parse::<u32>().ok().filter(|bits| *bits <= most);
    Ok(match kind {
        Kind::FieldPath if text.split('.').any(|number| number.parse::<u32>().is_err()) => {
            return Err(format!("failed to parse '{text}' as type '{}'", kind.name()));
        }
        Kind::Str | Kind::Regex | Kind::FieldPath => Argument::Str(config::text::to_bytes(text).into_owned().into()),
        Kind::Int => Argument::Int(text.parse().map_err(|_| format!("failed to parse '{text}' as type 'integer'"))?),
        Kind::Frontend => {
            Argument::Proxy(names.frontend(text).ok_or_else(|| format!("unable to find frontend '{text}'"))?)
        }
        Kind::Backend => {
            Argument::Proxy(names.backend(text).ok_or_else(|| format!("unable to find backend '{text}'"))?)
        }
        Kind::Table => Argument::Table(names.table(text).ok_or_else(|| format!("unable to find table '{text}'"))?),
        Kind::Userlist => {
            Argument::Userlist(names.userlist(text).ok_or_else(|| format!("unable to find userlist '{text}'"))?)
        }
        Kind::Server => {
            let (backend, server) = names.server(text)?;
            Argument::Server(backend, server)
        }
        Kind::Ipv4 => {
            Argument::Ipv4(text.parse().map_err(|_| format!("failed to parse '{text}' as type 'IPv4 address'"))?)
        }
        Kind::Ipv6 => {
            Argument::Ipv6(text.parse().map_err(|_| format!("failed to parse '{text}' as type 'IPv6 address'"))?)
        }
        Kind::Mask4 => {
            let mask = bits(text, 32).map(|bits| Ipv4Addr::from(u32::MAX.checked_shl(32 - bits).unwrap_or(0)));
            Argument::Ipv4(
                mask.or_else(|| text.parse().ok())
                    .ok_or_else(|| format!("failed to parse '{text}' as type 'IPv4 mask'"))?,
            )
        }
        Kind::Mask6 => {
            let mask = bits(text, 128).map(|bits| Ipv6Addr::from(u128::MAX.checked_shl(128 - bits).unwrap_or(0)));
            Argument::Ipv6(
                mask.or_else(|| text.parse().ok())
                    .ok_or_else(|| format!("failed to parse '{text}' as type 'IPv6 mask'"))?,
            )
        }
    })
}
