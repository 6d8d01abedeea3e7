//! Error codes and subcodes of NOTIFICATION messages (RFC 4271, section 4.5; RFC 4486, RFC 6608, RFC 9687). Must never decide
//! which one applies.

use std::fmt;

/// An error code with its subcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    pub code: u8,
    /// 0: unspecific.
    pub subcode: u8,
}

/// Declares the codes that Weir sends or acts on.
macro_rules! codes {
    ($($name:ident = $code:literal / $subcode:literal;)*) => {
        impl ErrorCode {
            $(pub const $name: Self = Self { code: $code, subcode: $subcode };)*
        }
    };
}

codes! {
    NOT_SYNCHRONIZED = 1 / 1;
    BAD_LENGTH = 1 / 2;
    BAD_TYPE = 1 / 3;
    OPEN_UNSPECIFIC = 2 / 0;
    UNSUPPORTED_VERSION = 2 / 1;
    BAD_PEER_AS = 2 / 2;
    BAD_IDENTIFIER = 2 / 3;
    UNSUPPORTED_PARAMETER = 2 / 4;
    UNACCEPTABLE_HOLD_TIME = 2 / 6;
    MALFORMED_ATTRIBUTES = 3 / 1;
    OPTIONAL_ATTRIBUTE = 3 / 9;
    INVALID_NETWORK = 3 / 10;
    HOLD_TIMER = 4 / 0;
    UNEXPECTED_IN_OPEN_SENT = 5 / 1;
    UNEXPECTED_IN_OPEN_CONFIRM = 5 / 2;
    UNEXPECTED_IN_ESTABLISHED = 5 / 3;
    SHUTDOWN = 6 / 2;
    RESET = 6 / 4;
    SEND_HOLD_TIMER = 8 / 0;
}

/// The names of codes and their subcodes, from subcode 1.
const NAMES: &[(u8, &str, &[&str])] = &[
    (1, "Message Header Error", &["Connection Not Synchronized", "Bad Message Length", "Bad Message Type"]),
    (
        2,
        "OPEN Message Error",
        &[
            "Unsupported Version Number",
            "Bad Peer AS",
            "Bad BGP Identifier",
            "Unsupported Optional Parameter",
            "",
            "Unacceptable Hold Time",
            "Unsupported Capability",
        ],
    ),
    (
        3,
        "UPDATE Message Error",
        &[
            "Malformed Attribute List",
            "Unrecognized Well-known Attribute",
            "Missing Well-known Attribute",
            "Attribute Flags Error",
            "Attribute Length Error",
            "Invalid ORIGIN Attribute",
            "",
            "Invalid NEXT_HOP Attribute",
            "Optional Attribute Error",
            "Invalid Network Field",
            "Malformed AS_PATH",
        ],
    ),
    (4, "Hold Timer Expired", &[]),
    (
        5,
        "Finite State Machine Error",
        &[
            "Unexpected Message in OpenSent State",
            "Unexpected Message in OpenConfirm State",
            "Unexpected Message in Established State",
        ],
    ),
    (
        6,
        "Cease",
        &[
            "Maximum Number of Prefixes Reached",
            "Administrative Shutdown",
            "Peer De-configured",
            "Administrative Reset",
            "Connection Rejected",
            "Other Configuration Change",
            "Connection Collision Resolution",
            "Out of Resources",
            "Hard Reset",
            "BFD Down",
        ],
    ),
    (7, "ROUTE-REFRESH Message Error", &["Invalid Message Length"]),
    (8, "Send Hold Timer Expired", &[]),
];

impl fmt::Display for ErrorCode {
    /// Writes the names and the numbers: `Cease/Administrative Shutdown (6/2)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = NAMES.iter().find(|row| row.0 == self.code);
        f.write_str(row.map_or("Unknown Error", |row| row.1))?;
        let place = usize::from(self.subcode).checked_sub(1);
        let name = place.and_then(|place| row?.2.get(place).copied()).filter(|name| !name.is_empty());
        if let Some(name) = name {
            write!(f, "/{name}")?;
        }
        write!(f, " ({}/{})", self.code, self.subcode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_with_their_names() {
        let rows = [
            ((6, 2), "Cease/Administrative Shutdown (6/2)"),
            ((4, 0), "Hold Timer Expired (4/0)"),
            ((2, 5), "OPEN Message Error (2/5)"),
            ((2, 200), "OPEN Message Error (2/200)"),
            ((99, 1), "Unknown Error (99/1)"),
        ];
        for ((code, subcode), expected) in rows {
            assert_eq!(ErrorCode { code, subcode }.to_string(), expected);
        }
    }
}
