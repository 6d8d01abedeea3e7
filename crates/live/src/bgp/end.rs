//! Reasons for the end of a session. Must never decide what follows.

use std::fmt;

use wire::bgp::{ErrorCode, Notification};

/// Why a session has ended, or was not established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The connection could not be established, or has failed.
    Failed(Box<str>),
    /// The router has closed the connection.
    Closed,
    /// No connection was established in time.
    Unreachable,
    /// This speaker ends the session with that message.
    Sent(Notification),
    /// The router has sent that message.
    Received(Notification),
    /// The router accepts no data.
    Blocked,
    /// This speaker stops.
    Stopped,
}

impl From<ErrorCode> for End {
    fn from(error: ErrorCode) -> Self {
        Self::Sent(error.into())
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Closed => f.write_str("connection closed by the router"),
            Self::Unreachable => f.write_str("connection timed out"),
            Self::Sent(message) => write!(f, "sent {}", message.error),
            Self::Received(message) => {
                write!(f, "received {}", message.error)?;
                match message.communication() {
                    // The text is part of a line of a log.
                    Some(text) => write!(f, ": {}", text.escape_debug()),
                    None => Ok(()),
                }
            }
            Self::Blocked => write!(f, "the router accepts no data: {}", ErrorCode::SEND_HOLD_TIMER),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_one_line() {
        let shutdown = Notification::shutdown("maintenance\nat \"noon\"");
        let rows = [
            (End::Received(shutdown), "received Cease/Administrative Shutdown (6/2): maintenance\\nat \\\"noon\\\""),
            (ErrorCode::HOLD_TIMER.into(), "sent Hold Timer Expired (4/0)"),
            (End::Blocked, "the router accepts no data: Send Hold Timer Expired (8/0)"),
        ];
        for (end, expected) in rows {
            assert_eq!(end.to_string(), expected);
        }
    }
}
