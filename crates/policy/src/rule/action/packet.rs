//! Actions on the packets of a connection: netfilter marks, TOS/DSCP. Must never touch a socket.

use super::queue::Number;
use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[
    row("set-fc-mark", |words, parsing| read(words, parsing, Peer::Client, Packets::Mark)),
    row("set-mark", |words, parsing| read(words, parsing, Peer::Client, Packets::Mark)),
    row("set-fc-tos", |words, parsing| read(words, parsing, Peer::Client, Packets::ServiceClass)),
    row("set-tos", |words, parsing| read(words, parsing, Peer::Client, Packets::ServiceClass)),
    row("set-bc-mark", |words, parsing| read(words, parsing, Peer::Server, Packets::Mark)),
    row("set-bc-tos", |words, parsing| read(words, parsing, Peer::Server, Packets::ServiceClass)),
];

/// The side of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Client,
    Server,
}

/// The property of packets to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    /// The netfilter mark, 32 bits.
    Mark,
    /// TOS/DSCP, 8 bits.
    ServiceClass,
}

fn read(words: &mut Words<'_>, parsing: &Parsing<'_>, peer: Peer, packets: Packets) -> Result<Action, RuleError> {
    let Some(word) = words.peek() else { return Err(RuleError::new("expects an argument")) };
    let value = match number(&word.text) {
        Some(number) => {
            words.take();
            Number::Fixed(number)
        }
        None => Number::Computed(parsing.expression(words)?),
    };
    Ok(Action::SetPackets(peer, packets, value))
}

/// Parses a number in C's notation, decimal or with the prefix `0x`. More than 32 bits wrap, as do negative numbers.
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) if hexadecimal.starts_with(['+', '-']) => return None,
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16),
        None if digits.starts_with(|first: char| first.is_ascii_digit()) => digits.parse(),
        None => return None,
    };
    number.ok().map(|number| if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers() {
        let rows = [
            ("1", Some(1)),
            ("0x1F", Some(31)),
            ("-1", Some(-1)),
            ("4294967296", Some(1 << 32)),
            ("0x", None),
            ("0x+3", None),
            ("", None),
            ("-", None),
            ("int(3)", None),
            ("1x", None),
        ];
        for (text, wanted) in rows {
            assert_eq!(number(text), wanted, "{text}");
        }
    }
}
