//! Messages that are whole before anything of them has flowed: who has both ends at hand may pass them on in one step. Must never read
//! or write.

use base::buffer::Buffer;

use super::{Flow, Moved, Source};

/// How the end of a body is known of which nothing has flowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untouched {
    /// It has that many bytes.
    Length(u64),
    /// Its source tells.
    UntilEnd,
}

impl Flow {
    /// The head that goes out, and the end of its body, where nothing has to see that or to frame it, and nothing of it is here. `None`:
    /// it has to flow.
    pub(crate) fn untouched(&mut self) -> Option<(&mut Buffer, Untouched)> {
        let end = match self.source {
            Source::Ended => Untouched::Length(0),
            Source::Length(length) => Untouched::Length(length),
            Source::UntilClose => Untouched::UntilEnd,
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

    /// What goes out of a body whose end is here, and that nothing has to see or to frame: its head, and what is behind it. `None`: it
    /// has to flow.
    pub(crate) fn at_hand(&mut self) -> Option<(&mut Buffer, &mut Buffer)> {
        let is_seen = self.filter_stage.is_some() || self.record.is_some();
        let is_spliced = self.splicing.open || !self.splicing.is_empty();
        let is_here = self.source_ended() && self.tail.is_empty() && self.mark == 0 && !self.head.is_empty();
        (is_here && !is_seen && !is_spliced).then_some((&mut self.head, &mut self.body))
    }

    /// Something of that has gone out. Whether all of it has.
    pub(crate) fn note_flushed(&mut self) -> bool {
        let is_out = self.head.is_empty() && self.body.is_empty();
        if is_out {
            self.head = Buffer::empty();
        }
        is_out
    }

    /// The head has gone out, and `payload` bytes of a body behind it, which were all.
    pub(crate) fn note_passed(&mut self, head: usize, payload: usize, moved: &mut Moved) {
        moved.read += payload;
        moved.completes |= payload > 0;
        moved.written += head + payload;
        self.source = Source::Ended;
        self.head = Buffer::empty();
    }
}
