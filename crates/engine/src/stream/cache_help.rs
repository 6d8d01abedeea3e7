//! The help of a cache for a request. Must never look for a response.

/// What a cache does for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// It answers.
    Answers,
    /// It has hints for the client.
    Hints,
    /// Another request asks a server for the same.
    Waits,
    /// It has to be read from a file.
    Reads,
    /// Nothing, and the client wants no response of a server.
    Unsatisfied,
    /// Nothing.
    None,
}
