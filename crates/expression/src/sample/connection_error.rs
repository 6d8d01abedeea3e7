//! Connection errors with the numbers, names and messages of HAProxy's manual (`fc_err_str`, section 7.3.3). Must never
//! be derived from a message.

use std::io::ErrorKind;

/// A connection error; the default is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionError(u8);

impl ConnectionError {
    /// No error.
    pub const NONE: Self = Self(0);
    /// The process has no free descriptor.
    pub const DESCRIPTORS: Self = Self(2);
    /// The system has no free descriptor.
    pub const SYSTEM_DESCRIPTORS: Self = Self(3);
    /// The system is out of memory.
    pub const MEMORY: Self = Self(4);
    /// The range of source ports is exhausted.
    pub const PORT_RANGE: Self = Self(7);
    /// The source address cannot be bound.
    pub const SOURCE: Self = Self(8);
    /// The system has no free port.
    pub const PORTS: Self = Self(9);

    /// The client closed instead of sending a PROXY protocol header.
    pub const PROXY_EMPTY: Self = Self(11);
    /// The client's connection failed.
    pub const PROXY_ABORTED: Self = Self(12);
    /// The header was not received in time.
    pub const PROXY_TIMEOUT: Self = Self(13);
    /// The header was truncated.
    pub const PROXY_TRUNCATED: Self = Self(14);
    /// The received bytes are not a header.
    pub const PROXY_MISSING: Self = Self(15);
    /// The header is invalid.
    pub const PROXY_INVALID: Self = Self(16);
    /// The header contains an unknown protocol.
    pub const PROXY_PROTOCOL: Self = Self(17);
    /// The client closed instead of sending a NetScaler header.
    pub const NETSCALER_EMPTY: Self = Self(18);
    /// The client's connection failed.
    pub const NETSCALER_ABORTED: Self = Self(19);
    /// The header was not received in time.
    pub const NETSCALER_TIMEOUT: Self = Self(20);
    /// The header was truncated.
    pub const NETSCALER_TRUNCATED: Self = Self(21);
    /// The header has another magic number.
    pub const NETSCALER_MAGIC: Self = Self(22);
    /// The header contains an unknown protocol.
    pub const NETSCALER_PROTOCOL: Self = Self(23);

    /// The peer closed before sending a byte of a TLS handshake.
    pub const TLS_EMPTY: Self = Self(24);
    /// The connection failed during the handshake.
    pub const TLS_ABORTED: Self = Self(25);
    /// The handshake timed out.
    pub const TLS_TIMEOUT: Self = Self(26);
    /// The limit of TLS connections (`maxsslconn`) is reached.
    pub const TLS_TOO_MANY: Self = Self(27);
    /// The issuer of a client's certificate is unknown.
    pub const TLS_UNKNOWN_CA: Self = Self(30);
    /// A client's certificate is not trusted.
    pub const TLS_UNTRUSTED: Self = Self(31);
    /// The server's certificate is for another name.
    pub const TLS_WRONG_NAME: Self = Self(33);
    /// The handshake failed.
    pub const TLS_HANDSHAKE: Self = Self(34);

    /// Converts an error of the system.
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

    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its name; empty without an error.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    pub fn message(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (u8, &'static str, &'static str) {
        TABLE.iter().find(|row| row.0 == self.0).copied().unwrap_or((0, "", "Success"))
    }
}

/// The errors that can occur in Weir.
const TABLE: &[(u8, &str, &str)] = &[
    (0, "", "Success"),
    (2, "PROC_FDLIM", "Too many sockets on the process"),
    (3, "SYS_FDLIM", "Too many sockets on the system"),
    (4, "SYS_MEMLIM", "Out of system buffers"),
    (6, "SOCK_ERR", "General socket error"),
    (7, "PORT_RANGE", "Source port range exhausted"),
    (8, "CANT_BIND", "Can't bind to source address"),
    (9, "FREE_PORTS", "Out of local source ports on the system"),
    (11, "PRX_EMPTY", "Connection closed while waiting for PROXY protocol header"),
    (12, "PRX_ABORT", "Connection error while waiting for PROXY protocol header"),
    (13, "PRX_TIMEOUT", "Timeout while waiting for PROXY protocol header"),
    (14, "PRX_TRUNCATED", "Truncated PROXY protocol header received"),
    (15, "PRX_NOT_HDR", "Received something which does not look like a PROXY protocol header"),
    (16, "PRX_BAD_HDR", "Received an invalid PROXY protocol header"),
    (17, "PRX_BAD_PROTO", "Received an unhandled protocol in the PROXY protocol header"),
    (18, "CIP_EMPTY", "Connection closed while waiting for NetScaler Client IP header"),
    (19, "CIP_ABORT", "Connection error while waiting for NetScaler Client IP header"),
    (20, "CIP_TIMEOUT", "Timeout while waiting for a NetScaler Client IP header"),
    (21, "CIP_TRUNCATED", "Truncated NetScaler Client IP header received"),
    (22, "CIP_BAD_MAGIC", "Received an invalid NetScaler Client IP magic number"),
    (23, "CIP_BAD_PROTO", "Received an unhandled protocol in the NetScaler Client IP header"),
    (24, "SSL_EMPTY", "Connection closed during SSL handshake"),
    (25, "SSL_ABORT", "Connection error during SSL handshake"),
    (26, "SSL_TIMEOUT", "Timeout during SSL handshake"),
    (30, "SSL_CA_FAIL", "SSL client CA chain cannot be verified"),
    (31, "SSL_CRT_FAIL", "SSL client certificate not trusted"),
    (33, "SSL_MISMATCH_SNI", "Server presented an SSL certificate different from the expected one"),
    (34, "SSL_HANDSHAKE", "SSL handshake failure"),
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
        assert_eq!(
            (refused.number(), refused.name(), refused.message()),
            (46, "EREFUSED", "ECONNREFUSED returned by OS")
        );
        let proxy = ConnectionError::PROXY_MISSING;
        assert_eq!((proxy.number(), proxy.name()), (15, "PRX_NOT_HDR"));
        assert_eq!(ConnectionError::of_system(ErrorKind::TimedOut).name(), "SOCK_ERR");
        assert_eq!((ConnectionError::NONE.name(), ConnectionError::NONE.message()), ("", "Success"));
    }
}
