//! HTTP/1 on a connection (RFC 9112): bytes become messages. Owns heads, framing and the reuse of a connection after a
//! message, on both sides. Must never know why a message is sent.

pub mod expected_body;
pub mod prepared_answer;
pub mod server;
pub mod unread;

pub use expected_body::ExpectedBody;
pub use server::{ReadResult, Reuse, Server};
pub use unread::{BodyEnd, UnreadBody, first_payload};
pub use wire::h1::{HeadLimits, Overflow, Scan, Spelling, Violation};
