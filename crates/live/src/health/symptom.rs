//! Errors in observed traffic (configuration manual, "observe"), with HAProxy's messages. Must never count.

/// An error of a connection to a server, or of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symptom {
    /// Connecting failed.
    Connection,
    /// The status of the response indicates a failure of the server.
    Status,
    /// The response head is invalid.
    Head,
    /// The response body is invalid.
    Body,
    /// The response timed out.
    Timeout,
    /// The connection failed before a response.
    Read,
}

impl Symptom {
    /// HAProxy's message.
    pub fn text(self) -> &'static str {
        match self {
            Self::Connection => "L4 unsuccessful connection",
            Self::Status => "Wrong http response",
            Self::Head => "Invalid http response (headers)",
            Self::Body => "Invalid http response",
            Self::Timeout => "Read timeout (http)",
            Self::Read => "Read error (http)",
        }
    }

    /// Classifies a status: 100 to 499, 501 and 505 are no errors.
    pub fn of_status(status: u16) -> Option<Self> {
        (!matches!(status, 100..=499 | 501 | 505)).then_some(Self::Status)
    }
}
