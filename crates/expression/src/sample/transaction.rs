//! The state of a request and its response as a pair. Must never contain a head.

/// The state of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transaction {
    /// Its request is the first one of the client's connection.
    pub first: bool,
    /// The status received from the server; `None`: none yet.
    pub server_status: Option<u16>,
    /// The status sent to the client; `None`: none yet.
    pub status: Option<u16>,
    /// The algorithm that compresses the response; `None`: not compressed.
    pub compression: Option<&'static str>,
    /// Index of the cache that serves the response; `None`: none does.
    pub cache: Option<usize>,
}
