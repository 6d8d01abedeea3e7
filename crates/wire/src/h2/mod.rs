//! HTTP/2 (RFC 9113) and HPACK (RFC 7541): encoding and decoding of frames and heads.
//!
//! Heads are decoded to [`crate::http::Head`]. Encoded blocks use no dynamic table, so that a head can be encoded
//! independently of its connection. Must never refer to a connection's state when encoding.

mod encode;
mod frame;
mod hpack;
mod static_table;
mod table;

pub use encode::{encode_request, encode_response, encode_trailers};
pub use frame::{ErrorCode, FrameHeader, HEADER_LENGTH, Kind, MAX_FRAME_SIZE, Setting, flag, push_frame};
pub use hpack::{DecodeError, Decoder};

pub use crate::fields::{Capacity, HeaderField, Malformed, Outcome, RequestReader, ResponseReader, read_trailers};

/// The connection preface of a client (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The initial flow-control window in bytes (RFC 9113, section 6.9.2).
pub const INITIAL_WINDOW: u32 = 65_535;

/// The largest flow-control window in bytes (RFC 9113, section 6.9.1).
pub const MAX_WINDOW: u32 = 0x7fff_ffff;
