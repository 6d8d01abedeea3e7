//! What can be wrong with a message, where, and how it is answered.

/// A catalogue of the rules that a message can break.
macro_rules! violations {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The rule that a message broke.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Violation {
            $($(#[$doc])* $name,)*
        }

        impl Violation {
            /// Every rule.
            pub const ALL: &'static [Violation] = &[$(Violation::$name,)*];

            /// The rule's name in words, for `show errors` and for debugging.
            pub fn text(self) -> &'static str {
                match self {
                    $(Violation::$name => $text,)*
                }
            }
        }
    };
}

violations! {
    /// The method is no token (RFC 9112 section 3.1).
    Method = "invalid character in the method",
    /// No target follows the method, or no version the target.
    StartLine = "incomplete request line",
    /// The target holds a control character, a space, `#` or a byte from 0x7f on.
    TargetCharacter = "invalid character in the target",
    /// The target is in none of the four forms, or not in one that fits the method (RFC 9112 section 3.2).
    TargetForm = "target not in a form that fits the method",
    /// The target's authority, or CONNECT's, is not one.
    Authority = "invalid authority",
    /// The version is not one digit, a point and one digit behind `HTTP/`.
    Version = "invalid protocol version",
    /// The preface of an HTTP/2 connection.
    Http2Preface = "HTTP/2 preface",
    /// The status code is not three digits.
    Status = "invalid status code",
    /// The reason phrase holds CR or NUL.
    Reason = "invalid character in the reason phrase",
    /// A CR without an LF behind it.
    BareCr = "carriage return without line feed",
    /// A line ends with LF where CR LF must stand.
    BareLf = "line feed without carriage return",
    /// A field without a name.
    EmptyName = "empty field name",
    /// A field's name holds something else than token characters, or a space stands before the colon.
    NameCharacter = "invalid character in a field name",
    /// A field's name is longer than 255 bytes.
    NameLength = "field name too long",
    /// A line of a head without a colon.
    NoColon = "field without colon",
    /// The first field starts with a space.
    LeadingSpace = "space before the first field",
    /// A value holds NUL.
    ValueCharacter = "invalid character in a field value",
    /// More fields than allowed (`tune.http.maxhdr`).
    TooManyFields = "too many fields",
    /// The request line does not fit.
    StartLineTooLong = "request line too long",
    /// The head does not fit.
    HeadTooLarge = "head too large",
    /// Two Host fields that differ.
    HostRepeated = "different Host fields",
    /// Host is not a host and a port.
    Host = "invalid Host field",
    /// Host differs from the target's authority.
    HostMismatch = "Host differs from the target's authority",
    /// Content-Length is not a number, or several differ.
    ContentLength = "invalid Content-Length field",
    /// Transfer-Encoding is empty, does not end with `chunked` or names it twice.
    TransferEncoding = "invalid Transfer-Encoding field",
    /// Transfer-Encoding names a coding other than `chunked` before it.
    TransferCoding = "unsupported transfer coding",
    /// A GET, HEAD or DELETE request in HTTP/1.0 with a body.
    UnexpectedBody = "HTTP/1.0 request of that method with a body",
    /// A CONNECT request with a body.
    ConnectBody = "CONNECT request with a body",
    /// Connection has more options than anybody needs.
    ConnectionOptions = "too many connection options",
    /// A request for a WebSocket without a `sec-websocket-key` of 24 bytes (RFC 6455 section 4.1).
    WebSocketKey = "WebSocket request without a valid key",
    /// A 101 response that names no protocol.
    SwitchingProtocols = "101 response without an upgrade",
    /// A chunk's size is no hexadecimal number, or follows a space.
    ChunkSize = "invalid chunk size",
    /// A chunk's size needs more than 52 bits.
    ChunkTooLarge = "chunk too large",
    /// A chunk's extension holds a control character or an open quoted string.
    ChunkExtension = "invalid chunk extension",
    /// A chunk is not followed by CR LF.
    ChunkEnd = "no line end behind a chunk",
    /// Chunk lines take far more bytes than what they carry.
    ChunkOverhead = "too many bytes of chunk lines",
    /// The trailer section does not fit.
    TrailersTooLarge = "trailers too large",
}

/// Why a request was refused. The connection closes after the answer.
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
        match self.violation {
            Violation::StartLineTooLong => 414,
            Violation::HeadTooLarge => 431,
            Violation::TransferCoding => 422,
            Violation::UnexpectedBody => 413,
            Violation::Http2Preface => 405,
            _ => 400,
        }
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

/// What a step of a parser ends with when the message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) violation: Violation,
    pub(super) position: usize,
}

impl Broken {
    /// For steps: `Err(Broken::at(…))`.
    #[cold]
    pub(super) fn at<T>(violation: Violation, position: usize) -> Result<T, Broken> {
        Err(Broken { violation, position })
    }
}

impl From<Broken> for RequestError {
    fn from(broken: Broken) -> Self {
        RequestError { violation: broken.violation, position: broken.position }
    }
}

impl From<Broken> for ResponseError {
    fn from(broken: Broken) -> Self {
        ResponseError { violation: broken.violation, position: broken.position }
    }
}

impl From<Broken> for ChunkError {
    fn from(broken: Broken) -> Self {
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
