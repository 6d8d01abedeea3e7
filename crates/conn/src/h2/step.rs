//! Steps of reading frames: their results, and which streams they may begin. Must never read a frame.

/// The newest stream that a peer may open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) last: u32,
    /// Whether the peer may open another one because it has not received the GOAWAY yet. Otherwise the limit leaves
    /// enough room for such streams.
    pub(super) is_final: bool,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A frame, or a piece of one, was handled.
    Progress,
    /// More input is needed.
    More,
    /// A client has begun a stream.
    Opened(u32),
}
