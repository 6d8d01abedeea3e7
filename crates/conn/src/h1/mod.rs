//! HTTP/1 on a connection (RFC 9112): bytes become messages. Owns heads, framing and the reuse of a connection after a
//! message, on both sides. Must never know why a message is sent.

pub mod coming;
pub mod prepared;
pub mod server;
pub mod unread;

pub use coming::Coming;
pub use server::{Received, Reuse, Server};
pub use unread::{BodyEnd, UnreadBody, first_payload};
pub use wire::h1::{HeadLimits, Overflow, Scan, Spelling, Violation};
