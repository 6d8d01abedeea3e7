//! HTTP/1 on a connection (RFC 9112): bytes become messages. Owns heads, framing and what follows a message on both sides.
//! Must never know why a message is sent.

pub mod answer;
pub mod body;
pub mod coming;
pub mod server;

pub use answer::{Answer, Came, Found, Onward};
pub use body::{BodyEnd, Coding, RequestBody, RequestLine, UnreadBody};
pub use coming::Coming;
pub use server::{Received, Server};
pub use wire::h1::Overflow;
