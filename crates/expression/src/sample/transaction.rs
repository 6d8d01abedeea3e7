//! What is known of the request and the answer as a pair. Must never hold a head.

/// Facts of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transaction {
    /// Its request is the first one of the client's connection.
    pub first: bool,
    /// The status that the server sent; `None`: none came.
    pub server_status: Option<u16>,
    /// The status that the client got; `None`: none yet.
    pub status: Option<u16>,
    /// The algorithm that compresses its answer; `None`: it is not compressed.
    pub compression: Option<&'static str>,
    /// Index of the cache that answers; `None`: none does.
    pub cache: Option<usize>,
}
