//! The body of a request before anything has read it. Owns the proof that a request was read to its end, without which
//! no other one is read on its connection. Must never read a byte.

use base::buffer::Buffer;
use wire::http::{Framing, Head, Version};

/// Proof that a request was read to its end: the next request follows on the connection. Made only in this crate: here,
/// for a head that announces no body, and in [`crate::exchange`], for a body whose end was seen.
#[derive(Debug)]
#[must_use]
pub struct BodyEnd(());

impl BodyEnd {
    /// Called when the end of a request's body was read.
    pub(crate) fn seen() -> Self {
        Self(())
    }
}

/// The body of a request whose head was just taken from the client's input: its first byte, if it has any, comes next.
/// There is one for each head, and every way to end the request consumes it.
#[derive(Debug)]
#[must_use]
pub struct UnreadBody {
    pub(crate) framing: Framing,
    /// Whether the client may wait for `100 Continue` before it sends the body, or not send it at all (RFC 9110,
    /// section 10.1.1).
    pub(crate) expects: bool,
    /// Whether it is received as payload without a coding: on a stream.
    pub(crate) uncoded: bool,
}

impl UnreadBody {
    /// Takes a parsed head of `length` bytes from the input; the body follows it.
    pub(super) fn after(head: &Head, length: usize, input: &mut Buffer) -> Self {
        input.consume(length);
        let expects = head.expect_continue && head.version() == Version::Http11;
        Self { framing: head.framing, expects, uncoded: false }
    }

    /// The body of a request received on a stream.
    pub(crate) fn uncoded(head: &Head) -> Self {
        Self { framing: head.framing, expects: false, uncoded: true }
    }

    /// The body of that length that has replaced it in the input ([`crate::downstream::Downstream::replace_body`]).
    pub fn replaced(self, length: u64) -> Self {
        Self { framing: Framing::Length(length), expects: false, uncoded: self.uncoded }
    }

    /// Whether there is no body.
    pub fn is_absent(&self) -> bool {
        !self.framing.has_body()
    }

    /// Returns the end of a request without a body.
    ///
    /// # Errors
    /// It has a body.
    pub fn absent(self) -> Result<BodyEnd, Self> {
        if self.framing.has_body() { Err(self) } else { Ok(BodyEnd(())) }
    }
}

/// The payload at the beginning of a body, in the bytes received after its head: at most the first chunk.
pub fn first_payload(framing: Framing, received: &[u8]) -> &[u8] {
    match framing {
        Framing::Length(length) => &received[..received.len().min(usize::try_from(length).unwrap_or(usize::MAX))],
        Framing::Chunked => first_chunk(received),
        Framing::None | Framing::UntilClose => &[],
    }
}

/// The received part of a body's first chunk.
fn first_chunk(input: &[u8]) -> &[u8] {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return &[] };
    let digits = input[..end].iter().take_while(|byte| byte.is_ascii_hexdigit());
    let size = digits.fold(0_usize, |size, digit| {
        size.saturating_mul(16).saturating_add(base::hex::digit(*digit).unwrap_or_default().into())
    });
    let chunk = &input[end + 1..];
    &chunk[..chunk.len().min(size)]
}
