//! Heads to bytes: canonical lines, with framing and connection fields rebuilt.

use crate::http::{Framing, Head, Version};

/// Somewhere to write a head.
pub trait Output {
    /// The free room at the end.
    fn spare(&mut self) -> &mut [u8];
    /// The first `count` bytes of the room are now data.
    fn advance(&mut self, count: usize);
}

/// The head does not fit; nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// The Connection field to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectionLine<'a> {
    /// None: the version's default holds.
    #[default]
    Nothing,
    /// `connection: close`.
    Close,
    /// `connection: keep-alive`.
    KeepAlive,
    /// `connection: upgrade` and `upgrade:` with this value.
    Upgrade(&'a [u8]),
}

/// What is rebuilt instead of copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edits<'a> {
    /// The Connection field.
    pub connection: ConnectionLine<'a>,
    /// The framing fields.
    pub framing: Framing,
    /// The version of the start line.
    pub version: Version,
}

/// Writes a request's head.
pub fn encode_request(_head: &Head, _edits: &Edits<'_>, _out: &mut impl Output) -> Result<(), Overflow> {
    Err(Overflow)
}

/// Writes a response's head.
pub fn encode_response(_head: &Head, _edits: &Edits<'_>, _out: &mut impl Output) -> Result<(), Overflow> {
    Err(Overflow)
}
