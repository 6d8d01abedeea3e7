//! HTTP/1.0 and HTTP/1.1 (RFC 9112): heads and chunked bodies, parsed as strictly as HAProxy does and encoded
//! canonically.
//!
//! Must never forward the received bytes of a head: every line is rebuilt.

mod block;
mod canonical;
mod charset;
mod chunk;
#[cfg(test)]
mod chunk_tests;
mod encode;
#[cfg(test)]
mod encode_tests;
mod error;
#[cfg(test)]
mod golden;
mod lines;
mod parse;
#[cfg(test)]
mod property_tests;
mod request;
mod response;
#[cfg(test)]
mod scan_tests;
mod settle;
mod spelling;
mod target;

pub use canonical::{canonical_head, is_canonical_value};
pub use chunk::{ChunkDecoder, ChunkState, DecodedChunks, LAST_CHUNK, chunk_header};
pub use encode::{ConnectionLine, Edits, Output, Overflow, encode_request, encode_response, encode_trailers};
pub use error::{ChunkError, RequestError, ResponseError, Violation};
pub use parse::{HeadLimits, Parse, Scan};
pub use request::{is_unsafe_request, parse_request};
pub use response::{RequestContext, is_unsafe_response, parse_response};
pub use spelling::Spelling;

pub(crate) use settle::content_length;
pub(crate) use target::{is_authority, is_normal_authority, normalize as settle_target};

/// Whether a text is a token (RFC 9110, section 5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| charset::is_token(*byte))
}

/// Whether every byte is permitted in a target.
pub(crate) fn is_target(text: &[u8], accept_unsafe: bool) -> bool {
    crate::byte_class::is_visible(text) || text.iter().all(|byte| charset::is_target(*byte, accept_unsafe))
}
