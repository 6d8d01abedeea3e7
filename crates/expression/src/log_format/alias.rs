//! What an alias is, and the list of the tables that define them (configuration manual, section 8.2.6). Each family has
//! a file: a function and a row per alias. Must never know a format.

use super::printer::Printer;
use super::{connection, http, process, timer};
use crate::record::Record;

/// What an alias prints, as the manual's table types it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Day, time and perhaps zone.
    Date,
    /// A number; -1 where there is none.
    Numeric,
    /// An address.
    Ip,
    /// Text.
    String,
    /// Several texts, one by one.
    StringList,
}

impl Kind {
    /// As the documentation writes it.
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

/// Where an alias has a meaning; elsewhere it prints what it prints for a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restriction {
    /// Everywhere.
    None,
    /// `mode http`.
    Http,
    /// Connections by TLS.
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

/// One alias.
#[derive(Debug)]
pub struct Alias {
    /// Without its `%`.
    pub name: &'static str,
    /// What it prints.
    pub kind: Kind,
    /// Where it has a meaning.
    pub restriction: Restriction,
    /// Its value is known only when the stream has ended: a format with such an alias is logged then, others are as soon
    /// as the server has answered (HTTP) or the connection to it stands (TCP).
    pub at_end: bool,
    /// What it tells.
    pub doc: &'static str,
    /// Prints it.
    pub render: fn(&Record<'_>, &mut Printer<'_>),
}

impl PartialEq for Alias {
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const FAMILIES: &[&[Alias]] = &[timer::DATES, timer::TIMERS, connection::TABLE, http::TABLE, process::TABLE];

/// All aliases, family by family. `%o` is not among them: it prints nothing and only sets flags.
pub fn aliases() -> impl Iterator<Item = &'static Alias> {
    FAMILIES.iter().copied().flatten()
}

/// The alias of that name.
pub fn find(name: &str) -> Option<&'static Alias> {
    aliases().find(|alias| alias.name == name)
}
