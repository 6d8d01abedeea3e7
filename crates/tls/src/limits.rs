//! Limits of one connection, and the size of its records. Must never change during a connection.

/// The limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLimits {
    /// Maximum number of key updates per second by the peer; 0: unlimited (`tune.ssl.keyupdate-rate-limit`).
    pub key_updates: u16,
    /// Maximum number of bytes of data in a record; 0: the protocol's limit (`tune.ssl.hard-maxrecord`).
    pub record: u16,
    /// Whether certificates are compressed (RFC 8879, `tune.ssl.certificate-compression`).
    pub compresses: bool,
}

impl Default for RecordLimits {
    /// HAProxy's defaults.
    fn default() -> Self {
        Self { key_updates: 100, record: 0, compresses: true }
    }
}
