//! The one HTTP message that the rest of the program sees, whatever version spoke.
//!
//! This module never parses or writes a protocol version's syntax: `h1` (and later `h2`, `h3`) does.

pub mod authentication;
pub mod coding;
pub mod error_pages;
pub(crate) mod fields;
pub mod forwarded;
pub(crate) mod head;
mod method;
pub(crate) mod name;
pub mod priority;
mod status;
pub mod target;

pub use fields::Fields;
pub use head::{Head, PART};
pub use method::Method;
pub use name::Name;
pub use status::reason;

/// The version that a message's sender spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Version {
    /// HTTP/1.0, or older where the configuration lets that through.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

/// How the end of a message's body is known (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Framing {
    /// There is no body, and no field announces one.
    #[default]
    None,
    /// `content-length`, in bytes; zero is announced too.
    Length(u64),
    /// `transfer-encoding: chunked`.
    Chunked,
    /// Only a response: the body ends with the connection.
    UntilClose,
}

impl Framing {
    /// Whether any byte of body can follow.
    pub fn has_body(self) -> bool {
        !matches!(self, Framing::None | Framing::Length(0))
    }
}

/// What the Connection field asked for (RFC 9110 section 7.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ConnectionOptions {
    /// `close`.
    pub close: bool,
    /// `keep-alive`.
    pub keep_alive: bool,
    /// `upgrade`.
    pub upgrade: bool,
}
