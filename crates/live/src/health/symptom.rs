//! Signs of a server's illness in traffic (configuration manual, "observe"), in HAProxy's words. Must never count.

/// What was wrong with a connection to a server, or with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symptom {
    /// It did not connect.
    Connection,
    /// It answered with a status that tells of its own failure.
    Status,
    /// Its answer is no HTTP.
    Head,
    /// The body of its answer is none.
    Body,
    /// Its answer did not come in time.
    Timeout,
    /// The connection broke before an answer.
    Read,
}

impl Symptom {
    /// The same in words.
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

    /// What a status tells: 100 to 499, 501 and 505 are fine.
    pub fn of_status(status: u16) -> Option<Self> {
        (!matches!(status, 100..=499 | 501 | 505)).then_some(Self::Status)
    }
}
