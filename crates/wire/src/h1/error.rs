//! Violations of HTTP/1 syntax: the rule, the position, and the status of the response.

/// Defines [`Violation`] from a list of rules and their texts.
macro_rules! violations {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The rule that a message violates.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Violation {
            $($(#[$doc])* $name,)*
        }

        impl Violation {
            /// Every rule.
            pub const ALL: &'static [Violation] = &[$(Violation::$name,)*];

            /// The rule's description, for `show errors` and for debugging.
            pub fn text(self) -> &'static str {
                match self {
                    $(Violation::$name => $text,)*
                }
            }
        }
    };
}

violations! {
    /// The method is not a token (RFC 9112 section 3.1).
    Method = "invalid character in the method",
    /// The target is missing, or the version after it.
    StartLine = "incomplete request line",
    /// The target contains a control character, a space, `#` or a byte from 0x7f on.
    TargetCharacter = "invalid character in the target",
    /// The target has none of the four forms, or one that is not permitted for the method (RFC 9112 section 3.2).
    TargetForm = "target not in a form that fits the method",
    /// The authority of the target, or that of CONNECT, is invalid.
    Authority = "invalid authority",
    /// The version is not `HTTP/`, one digit, a point and one digit.
    Version = "invalid protocol version",
    /// The preface of an HTTP/2 connection.
    Http2Preface = "HTTP/2 preface",
    /// The status code is not three digits.
    Status = "invalid status code",
    /// The reason phrase contains CR or NUL.
    Reason = "invalid character in the reason phrase",
    /// A CR that is not followed by LF.
    BareCr = "carriage return without line feed",
    /// A line ends with LF where CR LF is required.
    BareLf = "line feed without carriage return",
    /// A field without a name.
    EmptyName = "empty field name",
    /// A field name contains a byte that is not a token character, or a space precedes the colon.
    NameCharacter = "invalid character in a field name",
    /// A field name is longer than 255 bytes.
    NameLength = "field name too long",
    /// A line of a head without a colon.
    NoColon = "field without colon",
    /// The first field starts with a space.
    LeadingSpace = "space before the first field",
    /// A value contains NUL.
    ValueCharacter = "invalid character in a field value",
    /// More fields than permitted (`tune.http.maxhdr`).
    TooManyFields = "too many fields",
    /// The request line exceeds the buffer.
    StartLineTooLong = "request line too long",
    /// The head exceeds the buffer.
    HeadTooLarge = "head too large",
    /// Two Host fields that differ.
    HostRepeated = "different Host fields",
    /// Host is not a host and a port.
    Host = "invalid Host field",
    /// Host differs from the target's authority.
    HostMismatch = "Host differs from the target's authority",
    /// Content-Length is not a number, or there are several different ones.
    ContentLength = "invalid Content-Length field",
    /// Transfer-Encoding is empty, does not end with `chunked` or names it twice.
    TransferEncoding = "invalid Transfer-Encoding field",
    /// Transfer-Encoding names a coding other than `chunked` before it.
    TransferCoding = "unsupported transfer coding",
    /// A GET, HEAD or DELETE request in HTTP/1.0 with a body.
    UnexpectedBody = "HTTP/1.0 request of that method with a body",
    /// A CONNECT request with a body.
    ConnectBody = "CONNECT request with a body",
    /// Connection has too many options.
    ConnectionOptions = "too many connection options",
    /// A request for a WebSocket without a `sec-websocket-key` of 24 bytes (RFC 6455 section 4.1).
    WebSocketKey = "WebSocket request without a valid key",
    /// A 101 response that names no protocol.
    SwitchingProtocols = "101 response without an upgrade",
    /// A chunk size is not a hexadecimal number, or follows a space.
    ChunkSize = "invalid chunk size",
    /// A chunk size needs more than 52 bits.
    ChunkTooLarge = "chunk too large",
    /// A chunk extension contains a control character or an unterminated quoted string.
    ChunkExtension = "invalid chunk extension",
    /// A chunk is not followed by CR LF.
    ChunkEnd = "no line end behind a chunk",
    /// Chunk lines take far more bytes than the payload.
    ChunkOverhead = "too many bytes of chunk lines",
    /// The trailer section exceeds the limits.
    TrailersTooLarge = "trailers too large",
}

/// Why a request is rejected. The connection is closed after the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestError {
    pub violation: Violation,
    /// Offset in the input, in bytes from the start of the message.
    pub position: usize,
}

impl RequestError {
    /// The status of the response.
    pub fn status(&self) -> u16 {
        match self.violation {
            Violation::StartLineTooLong => 414,
            Violation::HeadTooLarge => 431,
            Violation::TransferCoding => 422,
            Violation::UnexpectedBody => 413,
            Violation::Http2Preface => 405,
            _ => 400,
        }
    }

    /// Whether the request breaks the syntax of HTTP/1. The preface of HTTP/2 does not: its method is reserved.
    pub fn is_malformed(&self) -> bool {
        self.violation != Violation::Http2Preface
    }

    /// The description of the rule.
    pub fn reason(&self) -> &'static str {
        self.violation.text()
    }
}

/// Why a response is rejected; the client receives a 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseError {
    pub violation: Violation,
    /// Offset in the input, in bytes from the start of the message.
    pub position: usize,
}

impl ResponseError {
    /// The status that the client receives.
    pub fn status(&self) -> u16 {
        502
    }

    /// The description of the rule.
    pub fn reason(&self) -> &'static str {
        self.violation.text()
    }
}

/// Why a chunked body is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkError {
    pub violation: Violation,
    /// Offset in the data passed to that call.
    pub position: usize,
}

/// The error of a parsing step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepError {
    pub(super) violation: Violation,
    pub(super) position: usize,
}

impl StepError {
    /// Returns an error, for use in steps: `return Broken::at(…)`.
    #[cold]
    pub(super) fn at<T>(violation: Violation, position: usize) -> Result<T, StepError> {
        Err(StepError { violation, position })
    }
}

impl From<StepError> for RequestError {
    fn from(broken: StepError) -> Self {
        RequestError { violation: broken.violation, position: broken.position }
    }
}

impl From<StepError> for ResponseError {
    fn from(broken: StepError) -> Self {
        ResponseError { violation: broken.violation, position: broken.position }
    }
}

impl From<StepError> for ChunkError {
    fn from(broken: StepError) -> Self {
        ChunkError { violation: broken.violation, position: broken.position }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_has_its_own_words() {
        let mut texts: Vec<_> = Violation::ALL.iter().map(|violation| violation.text()).collect();
        let count = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), count);
    }

    #[test]
    fn only_five_violations_of_a_request_are_not_answered_400() {
        let other: Vec<_> = Violation::ALL
            .iter()
            .map(|violation| RequestError { violation: *violation, position: 0 }.status())
            .filter(|status| *status != 400)
            .collect();
        assert_eq!(other.len(), 5);
    }
}
