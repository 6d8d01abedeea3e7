//! Moving a body through a kernel pipe. Owns the pipe, the choice between splicing and copying, and the framing of the
//! bytes in the pipe: a chunk's size line is written before them, its CR LF after them. Must never let anything but
//! payload into the pipe.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::net::Pipe;

use super::{ByteSink, ByteSource, Flow, FlowError, FlowProgress, Source};

/// The least number of bytes left in a chunk for it to be spliced: fewer are copied, along with the framing around
/// them. A splice that moves fewer bytes makes the flow copy until a read fills its buffer. Measured:
/// docs/performance.md.
const WORTH_SPLICING: u64 = 16 * 1024;

/// Length of the CR LF of a chunk and the longest size line.
const LINE: usize = 2 + 18;

/// State of splicing in a flow.
#[derive(Default)]
pub(super) struct Splicing {
    /// Whether splicing was requested, and has not proved impossible.
    wanted: bool,
    /// Created on first use. Its bytes are written after the flow's body and before its tail.
    pipe: Option<Pipe>,
    /// Whether the source delivers small pieces, which are copied.
    small: bool,
    /// Whether a chunk went through the pipe whose CR LF is still to be written.
    pub(super) open: bool,
}

impl Splicing {
    /// Stops splicing and drops the bytes in the pipe.
    pub(super) fn cancel(&mut self) {
        *self = Self::default();
    }

    /// Stops splicing. The pipe must be empty.
    pub(super) fn stop(&mut self) {
        debug_assert!(self.is_empty(), "the flow was flushed");
        self.wanted = false;
        self.pipe = None;
    }

    /// Whether the pipe is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.pipe.as_ref().is_none_or(Pipe::is_empty)
    }

    /// Whether the body may go through a pipe.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Records whether a read has filled its buffer.
    pub(super) fn note_read(&mut self, filled: bool) {
        self.small &= !filled;
    }

    /// Writes the bytes in the pipe; `more`: data follows them.
    pub(super) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut impl ByteSink,
        more: bool,
        moved: &mut FlowProgress,
    ) -> Poll<io::Result<()>> {
        while let Some(pipe) = self.pipe.as_mut().filter(|pipe| !pipe.is_empty()) {
            let spliced = std::task::ready!(sink.poll_splice_from(cx, pipe, more))?;
            moved.written += spliced;
            moved.spliced += spliced;
        }
        Poll::Ready(Ok(()))
    }
}

impl Flow {
    /// Lets the kernel move the payload of the rest of the body, if nothing has to see it. The payload is copied if no
    /// pipe is available; short chunks and the framing always are.
    pub fn splice(&mut self) {
        let possible = match self.source {
            Source::Length(_) | Source::UntilClose => !self.chunked,
            Source::Chunked(_) => true,
            Source::Unknown | Source::Ended => false,
        };
        self.splicing.wanted = possible && self.record.is_none() && self.filter_stage.is_none();
    }

    /// Whether the next bytes go through the pipe, which is created here if necessary. Everything else was written.
    pub(super) fn may_splice(&mut self) -> bool {
        if !self.splicing.wanted {
            return false;
        }
        if let Source::Chunked(chunks) = &self.source
            && (self.splicing.small || !self.rest.is_empty() || chunks.remaining() < WORTH_SPLICING)
        {
            return false;
        }
        if self.splicing.pipe.is_none() {
            self.splicing.pipe = Pipe::new().ok();
            self.splicing.wanted = self.splicing.pipe.is_some();
        }
        self.splicing.wanted
    }

    /// Moves bytes from the source into the pipe, never past the end of the body or of the chunk.
    pub(super) fn poll_splice_in(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        moved: &mut FlowProgress,
    ) -> Result<Poll<()>, FlowError> {
        let Some(pipe) = &mut self.splicing.pipe else { return Ok(Poll::Ready(())) };
        let most = match &self.source {
            Source::Length(remaining) => usize::try_from(*remaining).unwrap_or(usize::MAX),
            Source::Chunked(chunks) => usize::try_from(chunks.remaining()).unwrap_or(usize::MAX),
            Source::Unknown | Source::UntilClose | Source::Ended => usize::MAX,
        };
        match source.poll_splice_into(cx, pipe, most) {
            Poll::Pending => Ok(Poll::Pending),
            // These two cannot be spliced: copy.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => {
                self.splicing.stop();
                Ok(Poll::Ready(()))
            }
            Poll::Ready(Err(error)) => Err(FlowError::Read(error)),
            Poll::Ready(Ok(0)) if matches!(self.source, Source::UntilClose) => {
                self.source = Source::Ended;
                Ok(Poll::Ready(()))
            }
            Poll::Ready(Ok(0)) => Err(FlowError::Truncated),
            Poll::Ready(Ok(read)) => {
                moved.read += read;
                moved.completes = true;
                self.account_spliced(read as u64);
                Ok(Poll::Ready(()))
            }
        }
    }

    /// Accounts for `read` bytes moved from the source into the pipe.
    fn account_spliced(&mut self, read: u64) {
        match &mut self.source {
            Source::Length(remaining) => {
                *remaining = remaining.saturating_sub(read);
                if *remaining == 0 {
                    self.source = Source::Ended;
                }
            }
            Source::Chunked(chunks) => {
                chunks.skip(read);
                self.splicing.small = read < WORTH_SPLICING;
                if self.chunked {
                    self.open_chunk(read);
                }
            }
            Source::Unknown | Source::UntilClose | Source::Ended => {}
        }
    }

    /// Writes into `body` the size line of a chunk whose data is in the pipe, after the CR LF of the previous chunk.
    fn open_chunk(&mut self, length: u64) {
        if self.body.capacity() == 0 {
            self.body = Buffer::with_capacity(LINE);
        }
        self.body.clear();
        let end: &[u8] = if self.splicing.open { b"\r\n" } else { b"" };
        let mut line = [0; 18];
        let placed = self.body.push(end) && self.body.push(wire::h1::chunk_header(length, &mut line));
        debug_assert!(placed, "an empty buffer takes a line");
        self.splicing.open = true;
    }

    /// Appends the CR LF of a chunk that went through the pipe, if it is still to be written.
    pub(super) fn close_chunk(&mut self) {
        if std::mem::take(&mut self.splicing.open) {
            if self.body.capacity() == 0 {
                self.body = Buffer::with_capacity(LINE);
            }
            self.push_tail(b"\r\n");
        }
    }

    /// Releases buffers that held only the framing of pieces in the pipe, for a flow that waits for its source.
    pub(super) fn release_framing(&mut self) {
        if let Some(record) = &mut self.record {
            super::shrink(record);
        }
        if self.splicing.wanted && self.body.is_empty() && self.tail.is_empty() {
            (self.body, self.tail) = (Buffer::empty(), Buffer::empty());
        }
    }
}
