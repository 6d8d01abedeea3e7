//! Result of a cache lookup for a request. Must never look up a response.

/// Result of a cache lookup for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// The cache answers the request.
    Answers,
    /// The cache has hints for the client (early hints).
    Hints,
    /// Another request is fetching the same response from a server.
    Waits,
    /// The response has to be read from a file.
    Reads,
    /// Nothing was found, and the client accepts only a stored response (`only-if-cached`).
    Unsatisfied,
    /// Nothing was found.
    None,
}
