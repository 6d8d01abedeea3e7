//! Faults of a store's server. Must never contain more of an answer than a line of the log may.

use std::fmt;
use std::time::Duration;

use conn::dial;
use conn::transport::Insecure;

/// Maximum length of a quoted answer, in characters.
const QUOTED: usize = 120;

/// Why a store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No connection could be established, or it failed.
    Connection(String),
    /// No connection within this time.
    NoConnection(Duration),
    /// No answer within this time.
    NoAnswer(Duration),
    /// The server has closed the connection.
    Closed,
    /// The answer is not RESP2, or exceeds `answer-size`.
    Malformed,
    /// An answer without a command.
    Unrequested,
    /// The answer to a command is an error.
    Refused { command: &'static str, answer: String },
    /// The answer to a command has an unexpected type or content.
    Unexpected { command: &'static str },
}

impl Fault {
    /// Describes a failed connection attempt.
    pub(super) fn of_dialing(failure: &dial::Failure) -> Self {
        Self::Connection(match failure {
            dial::Failure::System(error) | dial::Failure::Insecure(Insecure::Connection(error)) => error.to_string(),
            dial::Failure::Insecure(Insecure::Handshake(failure)) => format!("TLS handshake failed: {failure}"),
            dial::Failure::Insecure(Insecure::Closed { .. }) => "closed during the TLS handshake".to_owned(),
        })
    }

    /// Quotes an error that a command was answered with. Control characters and the end of a long text are left out.
    pub(super) fn refused(command: &'static str, answer: &[u8]) -> Self {
        let text = String::from_utf8_lossy(answer);
        Self::Refused { command, answer: text.chars().filter(|found| !found.is_control()).take(QUOTED).collect() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(why) => write!(f, "connection failed ({why})"),
            Self::NoConnection(time) => write!(f, "no connection within {}ms", time.as_millis()),
            Self::NoAnswer(time) => write!(f, "no answer within {}ms", time.as_millis()),
            Self::Closed => f.write_str("the server has closed the connection"),
            Self::Malformed => f.write_str("an answer is no RESP2 or exceeds answer-size"),
            Self::Unrequested => f.write_str("an answer without a command"),
            Self::Refused { command, answer } => write!(f, "{command} was answered with '{answer}'"),
            Self::Unexpected { command } => write!(f, "unexpected answer to {command}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_answers_are_short_lines() {
        let long = vec![b'x'; 10_000];
        let rows = [
            (&b"OOM command not allowed"[..], "GET was answered with 'OOM command not allowed'".to_owned()),
            (b"ERR a\x1b[2J\tb\xff", "GET was answered with 'ERR a[2Jb\u{fffd}'".to_owned()),
            (&long, format!("GET was answered with '{}'", "x".repeat(QUOTED))),
        ];
        for (answer, expected) in rows {
            assert_eq!(Fault::refused("GET", answer).to_string(), expected);
        }
    }
}
