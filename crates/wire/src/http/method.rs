//! Request methods that a proxy treats specially; every other one is only text.

/// A request method (RFC 9110 section 9.3). Methods are case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Connect,
    Trace,
    /// Any other token; the text is in the head.
    Other,
}

impl Method {
    /// Recognises a method by its text.
    pub fn from_text(text: &[u8]) -> Method {
        match text {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"CONNECT" => Method::Connect,
            b"TRACE" => Method::Trace,
            _ => Method::Other,
        }
    }

    /// It asks for nothing but an answer (RFC 9110, section 9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// Sending the request twice has the effect of sending it once (RFC 9110 section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Method::Post | Method::Connect | Method::Other)
    }
}
