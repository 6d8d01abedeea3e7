//! DNS queries and responses (RFC 1035, 2782, 3596, 6891). Owns their wire format; must never decide which of two
//! responses is believed, nor follow a compression pointer that does not point backwards.

mod answer;
mod name;
mod question;

pub use answer::{Address, Answer, AnswerRecords, Fault, MOST_ALIASES, ResponseCode, Service, find, read};
pub use name::{Malformed, Name};
pub use question::question;

/// Length of a message header in bytes.
pub const HEADER: usize = 12;

/// Maximum length of a message in bytes, over any transport.
pub const LONGEST: usize = 65_535;

/// The record type of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    Txt,
    /// Services (RFC 2782): hosts with ports and weights.
    Srv,
}

impl Kind {
    /// The type's number in messages.
    pub const fn number(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Txt => 16,
            Self::Aaaa => 28,
            Self::Srv => 33,
        }
    }
}

/// The class of the Internet, the only one that is queried.
const INTERNET: u16 = 1;

#[cfg(test)]
mod tests;
