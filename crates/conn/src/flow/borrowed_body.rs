//! Bodies in memory that outlives their transfer, such as stored responses: they are written from there, after their
//! head, many pieces with one call. A sink that encrypts or frames takes them from there as well. Must never copy
//! payload, and never hold a buffer.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;

use super::{ByteSink, ByteSource, Flow, FlowError, FlowProgress, FlowStep, Source};

/// The number of slices in one call: a head, and a megabyte in pieces of a buffer's size.
const SLICES: usize = 1 + 64;

/// The number of calls in one poll.
const CALLS: usize = 2;

impl Flow {
    /// Continues a message that was sent in part: with the rest of its head, and `left` bytes of its body.
    pub fn go_on(&mut self, head: Buffer, left: u64) {
        self.head = head;
        self.source = if left == 0 { Source::Ended } else { Source::Length(left) };
    }

    /// Continues a message that was received whole and sent in part: with the rest of its head and of its body.
    pub fn go_on_with(&mut self, head: Buffer, body: Buffer) {
        (self.head, self.body, self.source) = (head, body, Source::Ended);
    }

    /// Whether the body can be written from its own memory: without a filter, a recording or framing.
    pub(super) fn may_lend(&self, source: &impl ByteSource, sink: &impl ByteSink) -> bool {
        source.can_lend()
            && sink.takes_slices()
            && matches!(self.source, Source::Length(_))
            && !self.chunked
            && self.filter_stage.is_none()
            && self.record.is_none()
            && !self.splicing.is_wanted()
            && self.body.is_empty()
            && self.tail.is_empty()
    }

    /// Moves as many bytes as possible, as [`Flow::poll`] does.
    pub(super) fn poll_lent(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        sink: &mut impl ByteSink,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        for _ in 0..CALLS {
            let Source::Length(remaining) = self.source else { return Ok(FlowStep::Finished) };
            if sink.parts_heads() && !self.head.is_empty() {
                match sink.poll_write(cx, &mut self.head, &mut Buffer::empty(), true) {
                    Poll::Ready(Ok(written)) => moved.written += written,
                    Poll::Ready(Err(error)) => return Err(FlowError::Write(error)),
                    Poll::Pending => return Ok(FlowStep::AwaitsSink),
                }
                self.head = Buffer::empty();
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            slices[0] = IoSlice::new(self.head.data());
            let lent = source.slices(&mut slices[1..]).min(SLICES - 1);
            let payload: u64 = slices[1..=lent].iter().map(|slice| slice.len() as u64).sum();
            if payload == 0 {
                return Err(FlowError::Truncated);
            }
            if payload > remaining {
                return Err(FlowError::Read(io::ErrorKind::InvalidData.into()));
            }
            let last = self.closes && payload == remaining;
            let from = usize::from(self.head.is_empty());
            let written = match sink.poll_write_slices(cx, &slices[from..=lent], last) {
                Poll::Ready(Ok(written)) => written,
                Poll::Ready(Err(error)) => return Err(FlowError::Write(error)),
                Poll::Pending => return Ok(FlowStep::AwaitsSink),
            };
            moved.written += written;
            let of_head = written.min(self.head.len());
            self.head.consume(of_head);
            if self.head.is_empty() {
                self.head = Buffer::empty();
            }
            let of_body = written - of_head;
            moved.read += of_body;
            moved.completes |= of_body > 0;
            source.advance(of_body);
            self.source = match remaining.saturating_sub(of_body as u64) {
                0 => Source::Ended,
                left => Source::Length(left),
            };
        }
        Ok(if self.source_ended() { FlowStep::Finished } else { FlowStep::Exhausted })
    }
}
