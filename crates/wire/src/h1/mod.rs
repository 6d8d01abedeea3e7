//! HTTP/1.0 and HTTP/1.1 (RFC 9112): heads and chunked bodies, parsed as strictly as HAProxy does and written canonically.
//!
//! Bytes of a head that was parsed are never sent on: every line is rebuilt.

mod chunk;
mod encode;
mod error;
mod parse;

pub use chunk::{ChunkDecoder, ChunkState, Decoded, LAST_CHUNK, chunk_header};
pub use encode::{ConnectionLine, Edits, Output, Overflow, encode_request, encode_response};
pub use error::{ChunkError, RequestError, ResponseError, Violation};
pub use parse::{Limits, Parse, RequestContext, Scan, parse_request, parse_response};
