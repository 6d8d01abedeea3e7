//! HTTP/1 on a connection (RFC 9112): bytes become messages. Owns heads, framing and what follows a message on both sides.
//! Must never know why a message is sent.

pub mod answer;
pub mod body;
pub mod coming;
pub mod prepared;
pub mod server;
pub mod standing;

pub use answer::{Answer, Came, Found, Onward};
pub use body::{BodyEnd, Coding, RequestBody, RequestLine, UnreadBody, first_payload};
pub use coming::Coming;
pub use server::{Received, Server};
pub use standing::Standing;
pub use wire::h1::{Limits, Overflow, Scan, Spelling, Violation};
