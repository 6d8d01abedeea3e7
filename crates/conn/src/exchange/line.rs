//! The encoded head of a request to a server. Must never decide its contents.

use base::buffer::Buffer;
use wire::h1::{ConnectionLine, Edits, Overflow, Spelling};
use wire::http::Head;

use crate::carrier::RequestFormat;

/// How the head of a request is encoded for a server.
pub struct RequestLine<'s> {
    /// Whether the server is asked to close after the answer.
    pub says_close: bool,
    /// A field appended after the others.
    pub last: Option<(&'s [u8], &'s [u8])>,
    /// The spelling of field names.
    pub spelling: Option<&'s Spelling>,
}

impl RequestLine<'_> {
    /// Encodes the head.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode(&self, format: RequestFormat, request: &Head, out: &mut Buffer) -> Result<(), Overflow> {
        let (connection, version) = if request.upgrade {
            (ConnectionLine::Upgrade(request.first(b"upgrade").unwrap_or_default()), request.version())
        } else {
            ConnectionLine::for_request(request, !self.says_close)
        };
        let edits = Edits { connection, framing: request.framing, version, last: self.last, spelling: self.spelling };
        format.encode(request, &edits, out)
    }
}
