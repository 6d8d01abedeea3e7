//! Messages as field sections: what HTTP/2 (RFC 9113) and HTTP/3 (RFC 9114) share. Fields become a
//! [`crate::http::Head`], and a head becomes fields.
//!
//! Must never know a frame, or the index of an entry of a static table.

pub(crate) mod budget;
pub(crate) mod field;
pub(crate) mod huffman;
pub(crate) mod integer;
mod request;
mod response;
pub(crate) mod strings;
pub(crate) mod table;
pub(crate) mod write;

pub use field::{Capacity, HeaderField, Malformed, read_trailers};
pub use request::{Outcome, RequestReader};
pub use response::ResponseReader;

/// The version of HTTP that a field section belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionVersion {
    Http2,
    Http3,
}

impl SectionVersion {
    /// The version as logs and `req.ver` show it.
    fn text(self) -> &'static [u8] {
        match self {
            Self::Http2 => b"HTTP/2.0",
            Self::Http3 => b"HTTP/3.0",
        }
    }
}
