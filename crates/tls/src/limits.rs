//! What one connection may ask for, and how much goes into its records. Must never change while a connection lasts.

/// Bounds of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLimits {
    /// Key updates a second that a peer may ask for; 0: any number (`tune.ssl.keyupdate-rate-limit`).
    pub key_updates: u16,
    /// Bytes of data in a record at most; 0: as many as it carries (`tune.ssl.hard-maxrecord`).
    pub record: u16,
    /// Whether certificates are compressed (RFC 8879, `tune.ssl.certificate-compression`).
    pub compresses: bool,
}

impl Default for RecordLimits {
    /// As HAProxy.
    fn default() -> Self {
        Self { key_updates: 100, record: 0, compresses: true }
    }
}
