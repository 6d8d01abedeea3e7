//! HTTP/3 (RFC 9114) and QPACK (RFC 9204): encoding and decoding of frames, heads, settings and instructions.
//!
//! Heads are decoded to [`crate::http::Head`]. Encoded field sections use no dynamic table, so that a head can be encoded
//! independently of its connection. There are no pushes. Must never know a QUIC stream's offsets, windows or ends, except
//! as arguments.

mod control;
#[cfg(test)]
mod control_tests;
mod encode;
#[cfg(test)]
mod encode_tests;
mod error;
mod frame;
mod message;
#[cfg(test)]
mod message_tests;
pub mod qpack;
mod settings;
mod stream;
pub mod varint;
pub mod webtransport;

pub use control::{ControlFrame, ControlReader, push_go_away, push_priority_update};
pub use encode::{encode_request, encode_response, encode_trailers};
pub use error::{Error, ErrorCode, Scope};
pub use frame::{EncodedHeader, FrameStream, FrameType, MAX_DATA_HEADER, frame_header};
pub use message::{MessagePart, MessageReader};
pub use settings::{Settings, push_settings};
pub use stream::{PeerStreams, StreamType, TypeReader, push_stream_type};

use crate::fields::SectionVersion;
pub use crate::fields::{Capacity, HeaderField, Malformed, Outcome, RequestReader, ResponseReader, read_trailers};
use crate::http::Head;

/// The role of this endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It sends requests.
    Client,
    /// It receives requests.
    Server,
}

/// Starts with an empty head of a request; `capacity` limits its fields. `extends`: extended CONNECT was advertised
/// (RFC 9220).
pub fn request_reader(head: &mut Head, capacity: Capacity, extends: bool) -> RequestReader<'_> {
    RequestReader::of(SectionVersion::Http3, head, capacity, extends)
}

/// Starts with an empty head of a response; `capacity` limits its fields.
pub fn response_reader(head: &mut Head, capacity: Capacity) -> ResponseReader<'_> {
    ResponseReader::of(SectionVersion::Http3, head, capacity)
}
