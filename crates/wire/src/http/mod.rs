//! The representation of HTTP messages that the rest of the program uses, for all protocol versions.
//!
//! Must never parse or write the syntax of a protocol version: `h1` (and later `h2`, `h3`) does.

pub mod authentication;
pub mod coding;
pub mod error_pages;
pub(crate) mod fields;
pub mod forwarded;
pub(crate) mod head;
mod meta_variable;
mod method;
pub(crate) mod name;
pub mod priority;
mod status;
pub mod target;

pub use fields::Fields;
pub use head::{Head, PART};
pub use meta_variable::is_same_meta_variable;
pub use method::Method;
pub use name::Name;
pub use status::reason;

/// The protocol version of a message's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Version {
    /// HTTP/1.0, or older where the configuration accepts that.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

/// How the end of a message's body is determined (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Framing {
    /// There is no body, and no field describes one.
    #[default]
    None,
    /// `content-length`, in bytes; zero is sent too.
    Length(u64),
    /// `transfer-encoding: chunked`.
    Chunked,
    /// Responses only: the body ends with the connection.
    UntilClose,
}

impl Framing {
    /// Whether any byte of body can follow.
    pub fn has_body(self) -> bool {
        !matches!(self, Framing::None | Framing::Length(0))
    }
}

/// Options of the Connection field (RFC 9110 section 7.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ConnectionOptions {
    /// `close`.
    pub close: bool,
    /// `keep-alive`.
    pub keep_alive: bool,
    /// `upgrade`.
    pub upgrade: bool,
}
