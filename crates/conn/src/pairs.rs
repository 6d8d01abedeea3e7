//! A protocol for tests: two streams at a time on one connection, with clients and with servers. Must never be part of the
//! product.
//!
//! A connection begins with [`PREFACE`]. A frame is its kind, the number of its stream, two bytes of length, and so many
//! bytes. Heads are texts of HTTP/1 without framing fields other than `content-length`; payload is uncoded, and each side
//! sends at most [`WINDOW`] bytes of it for which it got no credit yet.

mod connection;
mod frame;
mod half;
mod mover;
mod requests;
mod stream;

pub use crate::h1::preface::PREFACE;
pub use connection::Connection;
pub use frame::{Kind, frame};
pub(crate) use requests::encode as encode_request;
pub use requests::{Request, Requests, ServerConnection};
pub use stream::{Stream, encode};

/// Streams at a time.
pub const MOST_STREAMS: usize = 2;

/// Bytes of payload that may be on their way in each direction of a stream.
pub const WINDOW: usize = 4096;

/// Frames that are read in a turn.
const FRAMES: usize = 64;
