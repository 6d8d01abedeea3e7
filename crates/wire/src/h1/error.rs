//! What can be wrong with a message, where, and how it is answered.

/// The rule that a message broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// The start line is not one.
    StartLine,
}

impl Violation {
    /// For `show errors` and debugging.
    pub fn text(self) -> &'static str {
        match self {
            Violation::StartLine => "invalid start line",
        }
    }
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestError {
    /// The rule that was broken.
    pub violation: Violation,
    /// Position in the input, in bytes from the message's first.
    pub position: usize,
}

impl RequestError {
    /// The status that answers it.
    pub fn status(&self) -> u16 {
        400
    }

    /// The rule in words.
    pub fn reason(&self) -> &'static str {
        self.violation.text()
    }
}

/// Why a response was refused; the client gets 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseError {
    /// The rule that was broken.
    pub violation: Violation,
    /// Position in the input, in bytes from the message's first.
    pub position: usize,
}

impl ResponseError {
    /// The status that the client gets.
    pub fn status(&self) -> u16 {
        502
    }

    /// The rule in words.
    pub fn reason(&self) -> &'static str {
        self.violation.text()
    }
}

/// Why a chunked body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkError {
    /// The rule that was broken.
    pub violation: Violation,
    /// Position in the bytes given to that call.
    pub position: usize,
}
