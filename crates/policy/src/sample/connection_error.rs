//! What may go wrong with a connection, by the numbers, names and sentences of HAProxy's manual (`fc_err_str`, section
//! 7.3.3). Must never be made up from a sentence.

use std::io::ErrorKind;

/// One of them; the default is that nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionError(u8);

impl ConnectionError {
    /// Nothing went wrong.
    pub const NONE: Self = Self(0);
    /// The process has no descriptor left.
    pub const DESCRIPTORS: Self = Self(2);
    /// The system has none.
    pub const SYSTEM_DESCRIPTORS: Self = Self(3);
    /// The system has no memory for it.
    pub const MEMORY: Self = Self(4);
    /// The range of source ports is used up.
    pub const PORT_RANGE: Self = Self(7);
    /// The source address cannot be had.
    pub const SOURCE: Self = Self(8);
    /// The system has no port left.
    pub const PORTS: Self = Self(9);

    /// What the system said.
    pub fn of_system(kind: ErrorKind) -> Self {
        Self(match kind {
            ErrorKind::ConnectionRefused => 46,
            ErrorKind::ConnectionReset => 47,
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => 48,
            ErrorKind::OutOfMemory => 49,
            ErrorKind::InvalidInput => 52,
            ErrorKind::NotConnected => 53,
            ErrorKind::BrokenPipe => 56,
            _ => 6,
        })
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its name; empty where nothing went wrong.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Its sentence.
    pub fn message(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (u8, &'static str, &'static str) {
        TABLE.iter().find(|row| row.0 == self.0).copied().unwrap_or((0, "", "Success"))
    }
}

/// Those that can happen here.
const TABLE: &[(u8, &str, &str)] = &[
    (0, "", "Success"),
    (2, "PROC_FDLIM", "Too many sockets on the process"),
    (3, "SYS_FDLIM", "Too many sockets on the system"),
    (4, "SYS_MEMLIM", "Out of system buffers"),
    (6, "SOCK_ERR", "General socket error"),
    (7, "PORT_RANGE", "Source port range exhausted"),
    (8, "CANT_BIND", "Can't bind to source address"),
    (9, "FREE_PORTS", "Out of local source ports on the system"),
    (46, "EREFUSED", "ECONNREFUSED returned by OS"),
    (47, "ERESET", "ECONNRESET returned by OS"),
    (48, "EUNREACH", "ENETUNREACH returned by OS"),
    (49, "ENOMEM", "ENOMEM returned by OS"),
    (52, "EINVAL", "EINVAL returned by OS"),
    (53, "ENCONN", "ENCONN returned by OS"),
    (56, "EPIPE", "EPIPE returned by OS"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_numbers_names_and_sentences() {
        let refused = ConnectionError::of_system(ErrorKind::ConnectionRefused);
        assert_eq!((refused.number(), refused.name(), refused.message()), (46, "EREFUSED", TABLE[8].2));
        assert_eq!(ConnectionError::of_system(ErrorKind::TimedOut).name(), "SOCK_ERR");
        assert_eq!((ConnectionError::NONE.name(), ConnectionError::NONE.message()), ("", "Success"));
    }
}
