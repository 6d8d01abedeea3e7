//! The bulk of a long body: large reads, cut to whole segments, and a source that wakes us for large amounts only. Owns
//! how much is read at a time; must never write.

use std::task::{Context, Poll};

use base::buffer::Buffer;

use super::{ByteSink, ByteSource, Flow, FlowProgress, Source};

/// A body with at least this many bytes left is read in large pieces.
const BULK: u64 = 64 * 1024;

/// A body with at most this many bytes left may raise the source's low-water mark before its sink is known.
const LITTLE: u64 = 1024 * 1024;

impl Flow {
    /// Whether the source's low-water mark is raised; [`Flow::lower_mark`] must be called soon after the source pauses.
    pub fn is_bulk(&self) -> bool {
        self.mark > 0
    }

    /// Restores the source's low-water mark. Otherwise bytes of a sender that pauses below the mark would never be
    /// read.
    pub fn lower_mark(&mut self, source: &mut impl ByteSource) {
        if self.mark > 0 {
            self.mark = 0;
            // A socket that refuses its normal state is broken; the next read returns the error.
            let _ = source.set_receive_low_water(1);
        }
    }

    /// Appends what the source already has to the part of a long body that was read with its head, in one large read:
    /// this saves a write and a segment that is almost empty.
    pub(super) fn gather(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        sink: &impl ByteSink,
        moved: &mut FlowProgress,
    ) {
        let waits = !self.head.is_empty() && !self.body.is_empty() && self.body.capacity() <= rt::buffer_size();
        if !waits || self.chunked || self.splicing.is_wanted() || self.record.is_some() || self.filter_stage.is_some() {
            return;
        }
        if !matches!(self.source, Source::Length(remaining) if remaining >= BULK) || source.is_quiet() {
            return;
        }
        self.intake.keeps_buffers = sink.keeps_buffers();
        let mut piece = self.large_piece();
        if piece.capacity() <= rt::buffer_size() || !piece.push(self.body.data()) {
            return;
        }
        self.large = true;
        self.fit_to_sink(sink);
        if !self.large {
            return;
        }
        self.body = piece;
        self.limit_piece();
        let room = self.body.room();
        // The next read returns an end or an error again, after these bytes were written.
        if let Poll::Ready(Ok(read)) = source.poll_read(cx, &mut self.body)
            && read > 0
        {
            moved.read += read;
            moved.completes = true;
            self.adapt(source, read, room);
            if let Source::Length(remaining) = &mut self.source {
                *remaining = remaining.saturating_sub(read as u64);
                if *remaining == 0 {
                    self.source = Source::Ended;
                }
            }
        }
    }

    /// Reads the first payload of a source whose data is in memory before the head is written: one write for both.
    pub(super) fn gather_at_hand(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        moved: &mut FlowProgress,
    ) {
        let waits = !self.head.is_empty() && self.body.is_empty() && self.tail.is_empty();
        if !waits || !source.is_at_hand() || self.filter_stage.is_some() || self.source_ended() || self.failed.is_some()
        {
            return;
        }
        match self.poll_fill(cx, source, moved) {
            Ok(Poll::Ready(())) if self.record.is_some() => self.note(),
            Ok(_) => {}
            // The head is written first.
            Err(error) => {
                self.body = Buffer::empty();
                self.failed = Some(Box::new(error));
            }
        }
    }

    /// Limits a large read to what the sink accepts: bytes beyond that would stay in memory as long as the sink's peer
    /// is slow. A sink that is almost full gets ordinary reads. Its segment size is queried once.
    pub(super) fn fit_to_sink(&mut self, sink: &impl ByteSink) {
        if !self.large {
            return;
        }
        let is_known = self.intake.segment > 0;
        if !is_known {
            self.intake.segment = sink.segment_size().unwrap_or(1).max(1);
            self.intake.keeps_buffers = sink.keeps_buffers();
        }
        // Bytes written since then have used some of that capacity, and bytes acknowledged by the peer have freed some.
        if self.intake.capacity < rt::large_buffer_size() {
            self.intake.capacity = sink.send_capacity().unwrap_or(usize::MAX);
            self.intake.largest_capacity = self.intake.largest_capacity.max(self.intake.capacity);
            self.intake.is_quick = is_known && self.intake.capacity >= self.intake.largest_capacity / 2;
        }
        self.large = self.intake.capacity.saturating_sub(self.head.len() + self.body.len()) as u64 >= BULK;
        self.intake.is_quick &= self.large;
    }

    /// Whether `remaining` bytes may be read in large amounts. The kernel makes the source's receive buffer twice as large as its mark and
    /// as what is read in a round trip, for as long as the connection lasts. A slow reader would let it fill up. So the sink
    /// accepts all that comes, or has shown that it accepts what it gets.
    fn suits_sink(&self, remaining: u64) -> bool {
        let waiting = (self.head.len() + self.body.len()) as u64;
        match self.intake.segment {
            0 => remaining <= LITTLE,
            _ => self.intake.is_quick || remaining.saturating_add(waiting) <= self.intake.capacity as u64,
        }
    }

    /// Returns an empty buffer for a large read.
    pub(super) fn large_piece(&self) -> Buffer {
        if self.intake.keeps_buffers { rt::piece_buffer() } else { rt::bulk_buffer() }
    }

    /// Moves the rest of a large piece into a buffer of its size when the sink accepts no more, so that the large
    /// buffer can be used by another flow.
    pub(super) fn wait_for_sink(&mut self) {
        let kept = if self.intake.keeps_buffers { rt::buffer_size() } else { BULK as usize };
        if self.body.capacity() <= rt::buffer_size() || self.body.len() > kept {
            return;
        }
        let left = self.body.data();
        let mut small = if left.len() > rt::buffer_size() { Buffer::with_capacity(left.len()) } else { rt::buffer() };
        let whole = small.push(left);
        debug_assert!(whole, "it has the size");
        self.body = small;
    }

    /// Reserves space in the buffer so that the next large read has the right length: never past the end of the body,
    /// because the bytes after it must fit in one buffer; otherwise cut so that whole segments are sent, without a
    /// short one at the end.
    pub(super) fn limit_piece(&mut self) {
        let room = self.body.room();
        let remaining = match self.source {
            Source::Length(remaining) => usize::try_from(remaining).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let waiting = self.head.len() + self.body.len();
        let mut usable = room.min(self.intake.capacity.saturating_sub(waiting));
        if matches!(self.source, Source::Length(remaining) if !self.suits_sink(remaining)) {
            usable = usable.min(BULK as usize);
        }
        let most =
            if remaining <= usable { remaining } else { in_whole_segments(waiting, usable, self.intake.segment) };
        self.body.reserve_behind(room - most);
    }

    /// Adapts the size of reads after a read: a filled buffer makes the next one large, a short read makes it small
    /// again; for a body of unknown length two short reads do, because long runs of bytes end with a short one. While
    /// reads are large, a long rest is known and the sink is no slow reader, the low-water mark lets the source wake us only when all of the next
    /// piece is there.
    pub(super) fn adapt(&mut self, source: &mut impl ByteSource, read: usize, room: usize) {
        let short = read < room && read <= rt::buffer_size();
        let remaining = self.remaining().saturating_sub(read as u64);
        self.large = !self.chunked
            && self.filter_stage.is_none()
            && match self.source {
                Source::Length(_) => !short && remaining >= BULK,
                Source::UntilClose => !short || (self.large && !self.faltered),
                Source::Chunked(_) | Source::Unknown | Source::Ended => false,
            };
        self.faltered = short;
        let piece = in_whole_segments(0, rt::large_buffer_size(), self.intake.segment) as u64;
        let mark = if self.large && self.suits_sink(remaining) { remaining.min(piece) } else { 0 };
        if mark < BULK {
            self.lower_mark(source);
        } else if mark != self.mark && source.set_receive_low_water(mark as usize).is_ok() {
            self.mark = mark;
        }
    }
}

/// The part of `room` that makes whole segments together with the bytes that are `waiting`; all of it if no segment
/// fits.
fn in_whole_segments(waiting: usize, room: usize, segment: usize) -> usize {
    let short = (waiting + room) % segment.max(1);
    if short < room { room - short } else { room }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_a_segment_ends() {
        for (waiting, room, segment, expected) in [
            (0, 1000, 100, 1000),
            (0, 1099, 100, 1000),
            (30, 1000, 100, 970),
            (30, 60, 100, 60),
            (130, 60, 100, 60),
            (130, 70, 100, 70),
            (0, 1000, 1, 1000),
            (0, 1000, 0, 1000),
        ] {
            let most = in_whole_segments(waiting, room, segment);
            assert_eq!(most, expected, "{waiting} waiting, room for {room}, segments of {segment}");
        }
    }
}
