//! Messages whose body has not started to flow: a caller that has both ends at hand can pass them on in one step. Must
//! never read or write.

use base::buffer::Buffer;

use super::{Flow, FlowProgress, Source};

/// How the end of a body is delimited of which nothing has flowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyDelimiter {
    /// By its length in bytes.
    Length(u64),
    /// By the end of the source.
    UntilEnd,
}

impl Flow {
    /// Returns the head to be sent and how the body ends, if the body is not filtered, recorded or framed and none of
    /// it was received. `None`: it has to flow.
    pub(crate) fn untouched(&mut self) -> Option<(&mut Buffer, BodyDelimiter)> {
        let end = match self.source {
            Source::Ended => BodyDelimiter::Length(0),
            Source::Length(length) => BodyDelimiter::Length(length),
            Source::UntilClose => BodyDelimiter::UntilEnd,
            Source::Unknown | Source::Chunked(_) => return None,
        };
        let is_seen = self.filter_stage.is_some() || self.record.is_some() || self.chunked;
        let is_under_way = !self.body.is_empty() || !self.tail.is_empty() || !self.rest.is_empty();
        let is_spliced = self.splicing.open || !self.splicing.is_empty();
        if is_seen || is_under_way || is_spliced || self.head.is_empty() {
            return None;
        }
        Some((&mut self.head, end))
    }

    /// Returns the unsent head and the bytes after it, of a body that was received to its end and is not filtered or
    /// recorded. `None`: it has to flow.
    pub(crate) fn at_hand(&mut self) -> Option<(&mut Buffer, &mut Buffer)> {
        let is_seen = self.filter_stage.is_some() || self.record.is_some();
        let is_spliced = self.splicing.open || !self.splicing.is_empty();
        let is_here = self.source_ended() && self.tail.is_empty() && self.mark == 0 && !self.head.is_empty();
        (is_here && !is_seen && !is_spliced).then_some((&mut self.head, &mut self.body))
    }

    /// Records that some of these bytes were written. Returns whether all of them were.
    pub(crate) fn note_flushed(&mut self) -> bool {
        let is_out = self.head.is_empty() && self.body.is_empty();
        if is_out {
            self.head = Buffer::empty();
        }
        is_out
    }

    /// Records that the head was written, followed by the whole body of `payload` bytes.
    pub(crate) fn note_passed(&mut self, head: usize, payload: usize, moved: &mut FlowProgress) {
        moved.read += payload;
        moved.completes |= payload > 0;
        moved.written += head + payload;
        self.source = Source::Ended;
        self.head = Buffer::empty();
    }
}
