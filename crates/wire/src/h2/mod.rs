//! HTTP/2 (RFC 9113) and HPACK (RFC 7541): frames and heads, from bytes and to bytes.
//!
//! Heads become the one internal [`crate::http::Head`]. What is written refers to no table that changes, so that a head can
//! be written without the connection that it goes out on.

mod encode;
mod fields;
mod frame;
mod hpack;
mod huffman;
mod integer;
mod request;
mod response;
mod table;

pub use encode::{encode_request, encode_response, encode_trailers};
pub use fields::{Capacity, Malformed, read_trailers};
pub use frame::{ErrorCode, FrameHeader, HEADER_LENGTH, Kind, MAX_FRAME_SIZE, Setting, flag, push_frame};
pub use hpack::{DecodeError, Decoder};
pub use request::{Outcome, RequestReader};
pub use response::ResponseReader;

/// What a client sends first (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes that may be on their way in each direction before a setting says otherwise (RFC 9113, section 6.9.2).
pub const INITIAL_WINDOW: u32 = 65_535;

/// The largest window (RFC 9113, section 6.9.1).
pub const MAX_WINDOW: u32 = 0x7fff_ffff;
