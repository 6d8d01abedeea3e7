//! A complete response that the proxy generates. Must never send it.

use std::borrow::Cow;
use wire::h1::canonical_head;

/// A response, head and body.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply<'t> {
    /// The complete response. Empty: the connection is closed without a response.
    pub text: Cow<'t, [u8]>,
    /// Offset of the end of the head, if it is already in canonical form ([`canonical_head`]).
    pub head: Option<usize>,
}

impl<'t> Reply<'t> {
    /// Creates a response from a text, which is examined once.
    pub fn new(text: impl Into<Cow<'t, [u8]>>) -> Self {
        let text = text.into();
        Self { head: canonical_head(&text), text }
    }

    /// Returns a copy that owns its text.
    pub fn into_owned(self) -> Reply<'static> {
        Reply { text: Cow::Owned(self.text.into_owned()), head: self.head }
    }

    /// Returns a copy that borrows the text.
    pub fn lend(&self) -> Reply<'_> {
        Reply { text: Cow::Borrowed(&self.text), head: self.head }
    }
}
