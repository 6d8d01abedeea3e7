//! One direction of a message's body, from one stream to the other. Owns how the end of the body is found, its framing
//! for the sink, and the buffer in between. A full buffer pauses the source. Must never know why the body flows.

mod body_filter;
mod borrowed_body;
mod buffers;
mod bulk;
mod chunks;
mod ends;
mod error;
mod flow_progress;
mod framing_space;
mod intake;
mod recode;
mod splice;
mod whole;

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::http::{Fields, Framing};

pub use body_filter::{BodyFilter, Discard, FilterOutput, Filtered, forward, make_output};
use body_filter::{FilterStage, StepResult};
use buffers::split_off;
pub use buffers::{body_buffer, expand, large_body_buffer, shrink};
use chunks::Chunks;
pub use chunks::Trailers;
pub use ends::{ByteSink, ByteSource};
pub use error::FlowError;
pub use flow_progress::FlowProgress;
use framing_space::{HEADROOM, TAILROOM};
use intake::Intake;
use splice::Splicing;
pub(crate) use whole::BodyDelimiter;

/// How the source is delimited.
enum Source {
    /// Unknown: the flow was not started.
    Unknown,
    /// By its length in bytes.
    Length(u64),
    Chunked(Box<Chunks>),
    /// By the end of the stream.
    UntilClose,
    /// It has ended.
    Ended,
}

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowStep {
    /// Everything was written.
    Finished,
    /// The budget of this event-loop iteration is used up; there is more to do.
    Exhausted,
    /// Waits for the source.
    AwaitsSource,
    /// Waits for the sink.
    AwaitsSink,
    /// Waits for the time of [`Flow::held_until`]: a filter holds bytes back.
    Held,
}

pub struct Flow {
    source: Source,
    /// An error of the source while a head waited to be written; returned after the head was written.
    failed: Option<Box<FlowError>>,
    /// Whether the sink is framed in chunks.
    chunked: bool,
    /// Bytes written first: a head.
    head: Buffer,
    /// Bytes written after the head.
    body: Buffer,
    /// Bytes written last: the end of a chunked body that did not fit in `body`.
    tail: Buffer,
    /// Trailers for a sink that takes them separately from the body.
    last: Option<Box<Fields>>,
    /// Trailers as received, independent of the sink's form.
    came: Option<Box<Fields>>,
    /// Bytes received after the end of the body: the next message.
    rest: Buffer,
    /// Whether the last read filled its buffer: the next one gets a large buffer.
    large: bool,
    /// Whether the last read was short.
    faltered: bool,
    /// The source's receive low-water mark in bytes; 0: the normal one.
    mark: u64,
    /// How much the sink accepts.
    intake: Intake,
    /// Use of the kernel to move the body (`option splice-*`).
    splicing: Splicing,
    /// The filter of the body.
    filter_stage: Option<Box<FilterStage>>,
    /// Everything written after the head, so that it can be sent again (`retry-on`). Dropped when it does not fit.
    record: Option<Buffer>,
    /// Whether the sink closes after this body: the last write may carry the FIN.
    pub closes: bool,
    /// The handling of trailers; to be set before the flow is started.
    pub trailers: Trailers,
}

impl Flow {
    /// Creates a flow that writes nothing but a head until it is started. It does not count as ended, so callers cannot
    /// take it for a body that was read.
    pub fn idle() -> Self {
        Self {
            source: Source::Unknown,
            failed: None,
            chunked: false,
            head: Buffer::empty(),
            body: Buffer::empty(),
            tail: Buffer::empty(),
            last: None,
            came: None,
            rest: Buffer::empty(),
            large: false,
            faltered: false,
            mark: 0,
            intake: Intake::default(),
            splicing: Splicing::default(),
            filter_stage: None,
            record: None,
            closes: false,
            trailers: Trailers::default(),
        }
    }

    /// Starts to record what is written after the head, as long as it fits in one buffer. To be called before any of
    /// the body is written.
    pub fn record(&mut self) {
        self.splicing.cancel();
        self.record = Some(rt::buffer());
        self.note();
    }

    /// Moves the received part of a short body into a buffer of its size, for a flow that has to wait before anything
    /// is written.
    pub fn shrink(&mut self) {
        shrink(&mut self.body);
        if let Some(filter_stage) = &mut self.filter_stage {
            filter_stage.shrink();
        }
    }

    /// Whether everything written after the head is still recorded.
    pub fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Drops the recording.
    pub fn forget_record(&mut self) {
        self.record = None;
    }

    /// Queues the recorded bytes again, after a new head and before the bytes still to be received. Returns false if
    /// they were not recorded.
    pub fn rewind(&mut self) -> bool {
        let Some(record) = &self.record else { return false };
        (self.head, self.body, self.tail) = (Buffer::empty(), Buffer::empty(), Buffer::empty());
        if !record.is_empty() {
            self.body = rt::buffer();
            return self.body.push(record.data());
        }
        true
    }

    /// Records the bytes just admitted.
    fn note(&mut self) {
        if let Some(record) = &mut self.record {
            if record.room() < self.body.len() + self.tail.len() {
                // It may have been shrunk.
                expand(record);
            }
            if !(record.push(self.body.data()) && record.push(self.tail.data())) {
                self.record = None;
            }
        }
    }

    /// The buffer of the head, which is written before the body. Allocated when there is none.
    pub fn head_mut(&mut self) -> &mut Buffer {
        if self.head.capacity() == 0 {
            self.head = rt::buffer();
        }
        &mut self.head
    }

    /// Sets the bytes that are written before the body.
    pub fn set_head(&mut self, head: Buffer) {
        self.head = head;
    }

    /// Takes back the bytes of [`Flow::head_mut`] that were not sent yet.
    pub fn take_head(&mut self) -> Buffer {
        std::mem::replace(&mut self.head, Buffer::empty())
    }

    /// Starts a message's body: `input` is what was read after the received head; `chunked` frames the sink in chunks.
    /// Returns the number of bytes of `input` that belong to the body.
    ///
    /// # Errors
    /// [`FlowError::Malformed`] if the bytes of `input` break the chunked coding.
    pub fn start(&mut self, input: Buffer, framing: Framing, chunked: bool) -> Result<usize, FlowError> {
        self.source = match framing {
            Framing::None | Framing::Length(0) => Source::Ended,
            Framing::Length(length) => Source::Length(length),
            Framing::Chunked => Source::Chunked(Box::new(Chunks::new())),
            Framing::UntilClose => Source::UntilClose,
        };
        self.chunked = chunked;
        self.body = input;
        self.large = false;
        self.mark = 0;
        self.splicing.cancel();
        if matches!(self.source, Source::Ended) {
            self.rest = std::mem::replace(&mut self.body, Buffer::empty());
            return Ok(0);
        }
        let length = self.body.len();
        if length > 0 {
            let _ = self.admit().inspect_err(|_| self.drop_unframed())?;
        }
        Ok(length - self.surplus())
    }

    /// Drops the bytes read last of a failed source, which were not decoded and must not be written; other bytes still
    /// may be.
    fn drop_unframed(&mut self) {
        self.body = Buffer::empty();
        self.rest = Buffer::empty();
        if let Some(filter_stage) = &mut self.filter_stage {
            filter_stage.drop_held();
        }
    }

    /// The number of bytes read after the end of the body.
    fn surplus(&self) -> usize {
        if self.source_ended() { self.rest.len() } else { 0 }
    }

    /// Whether the source has ended and nothing is left to write.
    pub fn is_finished(&self) -> bool {
        self.no_more_comes() && self.is_flushed()
    }

    /// Whether nothing will be added to the bytes that wait to be written.
    fn no_more_comes(&self) -> bool {
        self.source_ended() && self.filter_stage.as_ref().is_none_or(|filter_stage| filter_stage.is_done())
    }

    /// Whether the end of the source was seen; false for a flow that was not started.
    pub fn source_ended(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    /// The length of the body if all of it was received and nothing was written. `ended`: nothing is left to be read of
    /// its source.
    pub fn whole_length(&self, ended: bool) -> Option<u64> {
        let waits = self.body.len() + self.tail.len();
        let whole = self.no_more_comes() || ended && self.filter_stage.is_none();
        (whole && self.splicing.is_empty()).then_some(waits as u64)
    }

    /// Whether nothing waits to be written.
    pub fn is_flushed(&self) -> bool {
        let spliced = self.splicing.is_empty() && !self.splicing.open;
        let sifted = self.filter_stage.as_ref().is_none_or(|filter_stage| filter_stage.is_empty());
        spliced && sifted && self.head.is_empty() && self.body.is_empty() && self.tail.is_empty()
    }

    /// Whether a part of the head waits to be written.
    pub fn head_pending(&self) -> bool {
        !self.head.is_empty()
    }

    /// The number of bytes of the head that wait to be written.
    pub fn head_length(&self) -> usize {
        self.head.len()
    }

    /// Takes the trailers of a body that has ended, for a sink that is not chunked.
    pub fn take_trailers(&mut self) -> Option<Box<Fields>> {
        match &mut self.record {
            // A body that may be sent again keeps its trailers, and its record waits in a buffer of its size.
            Some(record) => {
                shrink(record);
                self.last.clone()
            }
            None => self.last.take(),
        }
    }

    /// Takes the trailers of a body that has ended, as received.
    pub fn take_received_trailers(&mut self) -> Option<Box<Fields>> {
        self.came.take()
    }

    /// Takes the bytes after the body: the source's next message.
    pub fn take_rest(&mut self) -> Buffer {
        std::mem::replace(&mut self.rest, Buffer::empty())
    }

    /// Drops the bytes that wait to be written, because the sink was closed.
    pub fn abandon_sink(&mut self) {
        self.splicing.cancel();
        self.filter_stage = None;
        self.record = None;
        self.head = Buffer::empty();
        self.body = Buffer::empty();
        self.tail = Buffer::empty();
    }

    /// Moves as many bytes as possible. Never reads while bytes wait to be written. A call makes at most eight rounds.
    ///
    /// # Errors
    /// See [`FlowError`]; the flow must not be polled again.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        sink: &mut impl ByteSink,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        if let Some(filter_stage) = &mut self.filter_stage {
            filter_stage.begin();
        }
        if self.may_lend(source, sink) {
            return self.poll_lent(cx, source, sink, moved);
        }
        self.gather(cx, source, sink, moved);
        self.gather_at_hand(cx, source, moved);
        let rounds = self.poll_rounds(cx, source, sink, moved);
        let mut step = match rounds {
            Ok(step) => step,
            Err(error) => {
                if !matches!(error, FlowError::Write(_)) {
                    self.drop_unframed();
                    // What was received before a source's failure is complete; as much as the sink accepts now is
                    // written.
                    if self.splicing.open {
                        let _ = self.poll_flush(cx, sink, moved);
                    }
                }
                return Err(error);
            }
        };
        if self.splicing.open && !matches!(step, FlowStep::AwaitsSink | FlowStep::Exhausted) {
            // No data follows at once that could carry the end of the chunk.
            match self.poll_flush(cx, sink, moved) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Err(FlowError::Write(error)),
                Poll::Pending => step = FlowStep::AwaitsSink,
            }
        }
        if step == FlowStep::AwaitsSource {
            self.release_framing();
        }
        Ok(step)
    }

    fn poll_rounds(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        sink: &mut impl ByteSink,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        for _ in 0..8 {
            match self.poll_flush_ready(cx, sink, moved) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Err(FlowError::Write(error)),
                Poll::Pending => {
                    self.wait_for_sink();
                    return Ok(FlowStep::AwaitsSink);
                }
            }
            self.failed.take().map_or(Ok(()), |error| Err(*error))?;
            if self.filter_stage.is_some() {
                self.splicing.stop();
                match self.sift() {
                    StepResult::Output => {
                        self.note();
                        continue;
                    }
                    StepResult::Held => return Ok(FlowStep::Held),
                    StepResult::Again => return Ok(FlowStep::Exhausted),
                    StepResult::Refused => return Err(FlowError::Refused),
                    StepResult::Hungry | StepResult::Finished => {}
                }
            }
            if self.source_ended() {
                self.lower_mark(source);
                return Ok(FlowStep::Finished);
            }
            let filled = if sink.can_splice() && self.may_splice() {
                self.poll_splice_in(cx, source, moved)?
            } else {
                self.fit_to_sink(sink);
                self.poll_fill(cx, source, moved)?
            };
            if filled.is_pending() {
                return Ok(FlowStep::AwaitsSource);
            }
            if self.record.is_some() {
                self.note();
            }
        }
        Ok(FlowStep::Exhausted)
    }

    /// Writes all bytes that wait.
    ///
    /// # Errors
    /// The sink's.
    pub fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut impl ByteSink,
        moved: &mut FlowProgress,
    ) -> Poll<io::Result<()>> {
        self.close_chunk();
        self.poll_flush_ready(cx, sink, moved)
    }

    /// Writes head, body, pipe and tail, in that order. The end of a chunk that went through the pipe may be left, to
    /// be written with the data that follows.
    fn poll_flush_ready(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut impl ByteSink,
        moved: &mut FlowProgress,
    ) -> Poll<io::Result<()>> {
        let last = self.closes && self.no_more_comes();
        while !self.head.is_empty() || !self.body.is_empty() {
            let more = !self.splicing.is_empty() || !self.tail.is_empty() || last;
            let written = std::task::ready!(sink.poll_write(cx, &mut self.head, &mut self.body, more))?;
            moved.written += written;
            self.intake.capacity = self.intake.capacity.saturating_sub(written);
        }
        if self.head.capacity() > 0 {
            self.head = Buffer::empty();
        }
        std::task::ready!(self.splicing.poll_flush(cx, sink, !self.tail.is_empty() || last, moved))?;
        while !self.tail.is_empty() {
            let written = std::task::ready!(sink.poll_write(cx, &mut self.tail, &mut Buffer::empty(), last))?;
            moved.written += written;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and drops the body up to its end, because its sink was closed.
    ///
    /// # Errors
    /// As [`Flow::poll`].
    pub fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        self.splicing.cancel();
        self.filter_stage = None;
        self.record = None;
        self.intake.capacity = usize::MAX;
        for _ in 0..8 {
            self.head = Buffer::empty();
            self.body.clear();
            self.tail = Buffer::empty();
            if self.source_ended() {
                self.lower_mark(source);
                return Ok(FlowStep::Finished);
            }
            if self.poll_fill(cx, source, moved)?.is_pending() {
                return Ok(FlowStep::AwaitsSource);
            }
        }
        Ok(FlowStep::Exhausted)
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        moved: &mut FlowProgress,
    ) -> Result<Poll<()>, FlowError> {
        if matches!(self.source, Source::Unknown) {
            // A flow that was not started has no known end.
            return Err(FlowError::Truncated);
        }
        if self.body.capacity() == 0 && rt::poll_memory(cx, rt::Stage::Underway).is_pending() {
            return Ok(Poll::Pending);
        }
        self.prepare();
        let room = self.body.room();
        match source.poll_read(cx, &mut self.body) {
            Poll::Pending => {
                // A flow that waits holds no buffer, unless a part of a chunk's line was read.
                let body = std::mem::replace(&mut self.body, Buffer::empty());
                self.rest = if body.is_empty() { Buffer::empty() } else { body };
                Ok(Poll::Pending)
            }
            Poll::Ready(Err(error)) => Err(FlowError::Read(error)),
            Poll::Ready(Ok(0)) => {
                self.body = Buffer::empty();
                if matches!(self.source, Source::UntilClose) {
                    self.source = Source::Ended;
                    self.finish_chunks(source.take_trailers().as_deref());
                    Ok(Poll::Ready(()))
                } else {
                    Err(FlowError::Truncated)
                }
            }
            Poll::Ready(Ok(read)) => {
                self.adapt(source, read, room);
                self.splicing.note_read(read == room);
                let admitted = self.admit();
                moved.read += read.saturating_sub(self.surplus());
                moved.completes |= admitted? && source.completes();
                Ok(Poll::Ready(()))
            }
        }
    }

    /// Gets a buffer to read into: a large one for the bulk of a long body if available, with space around the data for
    /// chunk framing.
    fn prepare(&mut self) {
        let capacity = self.body.capacity();
        if capacity == 0 || capacity < rt::buffer_size() || self.large != (capacity > rt::buffer_size()) {
            self.body = if self.large { self.large_piece() } else { rt::buffer() };
        }
        self.body.clear();
        if self.chunked || matches!(self.source, Source::Chunked(_)) {
            self.body.reserve_around(HEADROOM, TAILROOM);
            // The part of a chunk's line that was read before comes first.
            let line = self.take_rest();
            let placed = self.body.push(line.data());
            debug_assert!(placed, "the decoder bounds its lines below a buffer's size");
        } else if self.large {
            self.limit_piece();
        }
    }

    /// The number of bytes known to follow.
    fn remaining(&self) -> u64 {
        match &self.source {
            Source::Length(remaining) => *remaining,
            Source::Chunked(_) | Source::UntilClose | Source::Unknown | Source::Ended => 0,
        }
    }

    /// Decodes the bytes just read: those of the body stay in `body`, those after it go to `rest`. Returns whether they
    /// contain payload or the end of the body.
    fn admit(&mut self) -> Result<bool, FlowError> {
        let admitted = self.unframe();
        self.hold();
        admitted
    }

    fn unframe(&mut self) -> Result<bool, FlowError> {
        match &mut self.source {
            Source::Length(remaining) => {
                let length = self.body.len() as u64;
                if length > *remaining {
                    let keep = *remaining as usize;
                    self.rest = split_off(&mut self.body, keep);
                }
                *remaining = remaining.saturating_sub(length);
                if *remaining == 0 {
                    self.source = Source::Ended;
                }
                if self.chunked {
                    self.frame_chunk();
                    if self.source_ended() {
                        self.finish_chunks(None);
                    }
                }
                Ok(true)
            }
            Source::UntilClose => {
                if self.chunked {
                    self.frame_chunk();
                }
                Ok(true)
            }
            Source::Chunked(_) => self.admit_chunks(),
            Source::Unknown | Source::Ended => Ok(false),
        }
    }
}
