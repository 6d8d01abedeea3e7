//! How much a sink accepts. Owns what is known of it; must never ask the sink.

/// How much a sink accepts, as far as it was asked.
#[derive(Default)]
pub(super) struct Intake {
    /// Bytes of its segments; 0: it was not asked yet.
    pub(super) segment: usize,
    /// Bytes that it accepts at least, since it was asked last, before a large read.
    pub(super) capacity: usize,
    /// The largest of all answers.
    pub(super) largest_capacity: usize,
    /// It keeps the storage of buffers, see [`super::ByteSink::keeps_buffers`].
    pub(super) keeps_buffers: bool,
    /// It had accepted most of what it got by the time it was asked again.
    pub(super) is_quick: bool,
}
