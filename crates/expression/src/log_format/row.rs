//! A row of a table of aliases (configuration manual, section 8.2.6). Must never depend on a particular one.

use super::printer::Printer;
use crate::record::Record;

/// The type of an alias, as in the manual's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Day, time and optionally zone.
    Date,
    /// A number; -1 when missing.
    Numeric,
    Ip,
    String,
    /// A list of texts.
    StringList,
}

impl Kind {
    /// The type's name in the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Numeric => "numeric",
            Self::Ip => "IP",
            Self::String => "string",
            Self::StringList => "string list",
        }
    }
}

/// The context in which an alias has a value; elsewhere it prints like a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restriction {
    /// Everywhere.
    None,
    /// `mode http`.
    Http,
    /// TLS connections.
    Tls,
    /// Logs, not other uses of formats.
    Log,
}

impl Restriction {
    /// The letter in the manual's table.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Http => "H",
            Self::Tls => "S",
            Self::Log => "L",
        }
    }
}

/// A row of a table of aliases.
#[derive(Debug)]
pub struct Alias {
    /// The name without its `%`.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// The context in which it has a value.
    pub restriction: Restriction,
    /// Its value is known only at the end of the stream: a format with such an alias is logged then; others are logged
    /// once the server has responded (HTTP) or the connection to it is established (TCP).
    pub at_end: bool,
    /// A description for the documentation.
    pub doc: &'static str,
    /// Prints the value.
    pub render: fn(&Record<'_>, &mut Printer<'_>),
}

impl PartialEq for Alias {
    /// Compares names, which are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
