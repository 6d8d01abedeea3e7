//! The questions and answers of name servers (RFC 1035, 2782, 3596, 6891). Owns their bytes; must never decide which of
//! two answers is believed, nor follow a pointer that does not lead backwards.

mod answer;
mod name;
mod question;

pub use answer::{Address, Answer, Fault, Found, MOST_ALIASES, ResponseCode, Service, find, read};
pub use name::{Malformed, Name};
pub use question::question;

/// Bytes of a header.
pub const HEADER: usize = 12;

/// Bytes of a message at most, over any transport.
pub const LONGEST: usize = 65_535;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Texts.
    Txt,
    /// Services: hosts with ports and weights.
    Srv,
}

impl Kind {
    /// Its number in messages.
    pub const fn number(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Txt => 16,
            Self::Aaaa => 28,
            Self::Srv => 33,
        }
    }
}

/// The class of the Internet, the only one that is asked for.
const INTERNET: u16 = 1;

#[cfg(test)]
mod tests;
