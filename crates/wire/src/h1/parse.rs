//! Heads from bytes.

use super::{RequestError, ResponseError};
use crate::http::Head;

/// What a head may be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Lines in a head, the start line included (`tune.http.maxhdr`).
    pub max_fields: usize,
    /// Bytes in a head (`tune.bufsize` less `tune.maxrewrite`).
    pub max_head: usize,
    /// `option accept-unsafe-violations-in-http-request` or `-response`.
    pub accept_unsafe: bool,
    /// `h1-accept-payload-with-any-method`.
    pub accept_payload_with_any_method: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_fields: 101, max_head: 16384 - 1024, accept_unsafe: false, accept_payload_with_any_method: false }
    }
}

/// Where the parsing of a partial head goes on. A new one belongs to each new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scan {
    line: usize,
    seen: usize,
}

/// How far a head got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Parse {
    /// More bytes are needed. Call again with the same bytes and more behind them.
    Partial,
    /// The head is complete.
    Complete {
        /// Bytes of the input that it took.
        consumed: usize,
    },
}

/// What a response's meaning depends on (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestContext {
    /// The request was HEAD.
    pub head: bool,
    /// The request was CONNECT.
    pub connect: bool,
}

/// Parses a request's head. `input` starts with the message's first byte at every call.
pub fn parse_request(
    _input: &[u8],
    _limits: &Limits,
    _scan: &mut Scan,
    _head: &mut Head,
) -> Result<Parse, RequestError> {
    Ok(Parse::Partial)
}

/// Parses a response's head. A 1xx response is complete as well: the caller parses the next one behind it.
pub fn parse_response(
    _input: &[u8],
    _limits: &Limits,
    _request: &RequestContext,
    _scan: &mut Scan,
    _head: &mut Head,
) -> Result<Parse, ResponseError> {
    Ok(Parse::Partial)
}
