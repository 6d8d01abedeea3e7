//! A body's way through a pipe of the kernel. Owns the pipe, the choice between it and copying, and the framing around
//! what is in it: a chunk's size line goes out before the pipe, its CR LF after it. Must never let anything but payload
//! into the pipe.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::net::Pipe;

use super::{ByteSink, ByteSource, Flow, FlowError, Moved, Source};

/// Bytes that must be missing of a chunk for it to be spliced: fewer are copied, along with the framing around them.
/// A splice that moves fewer bytes makes the flow copy until a read fills its buffer. Measured: docs/performance.md.
const WORTH_SPLICING: u64 = 16 * 1024;

/// The CR LF of a chunk and the longest size line.
const LINE: usize = 2 + 18;

/// How a flow uses the kernel's pipes.
#[derive(Default)]
pub(super) struct Splicing {
    /// It was asked for, and nothing has shown that it is impossible.
    wanted: bool,
    /// Taken when it is needed first. With bytes in it, they go out after the flow's body and before its tail.
    pipe: Option<Pipe>,
    /// The source delivers small pieces: they are copied.
    small: bool,
    /// A chunk went through the pipe; its CR LF is still to be written.
    pub(super) open: bool,
}

impl Splicing {
    /// No more is spliced, and what is in the pipe is dropped.
    pub(super) fn cancel(&mut self) {
        *self = Self::default();
    }

    /// No more is spliced. The pipe must be empty.
    pub(super) fn stop(&mut self) {
        debug_assert!(self.is_empty(), "the flow was flushed");
        self.wanted = false;
        self.pipe = None;
    }

    /// Whether nothing waits in the pipe.
    pub(super) fn is_empty(&self) -> bool {
        self.pipe.as_ref().is_none_or(Pipe::is_empty)
    }

    /// Whether the body may go through a pipe.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// A read has filled its buffer, or has not.
    pub(super) fn note_read(&mut self, filled: bool) {
        self.small &= !filled;
    }

    /// Writes what is in the pipe; `more` follows it.
    pub(super) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut impl ByteSink,
        more: bool,
        moved: &mut Moved,
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
    /// Has the kernel move the payload of the rest of the body, where nothing has to see it. Without an available pipe
    /// it is copied; so are short chunks and the framing.
    pub fn splice(&mut self) {
        let possible = match self.source {
            Source::Length(_) | Source::UntilClose => !self.chunked,
            Source::Chunked(_) => true,
            Source::Unknown | Source::Ended => false,
        };
        self.splicing.wanted = possible && self.record.is_none() && self.filter_stage.is_none();
    }

    /// Whether the next bytes go through the pipe, which is taken here if need be. Everything else was written.
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

    /// Moves bytes from the source into the pipe, never beyond the body or the chunk.
    pub(super) fn poll_splice_in(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut impl ByteSource,
        moved: &mut Moved,
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

    /// So many bytes of the source were moved into the pipe.
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

    /// Puts the size line of a chunk whose data are in the pipe into `body`, after the CR LF of the one before.
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

    /// A flow that waits for its source holds no buffer of which only the framing of pieces in the pipe made use.
    pub(super) fn release_framing(&mut self) {
        if let Some(record) = &mut self.record {
            super::shrink(record);
        }
        if self.splicing.wanted && self.body.is_empty() && self.tail.is_empty() {
            (self.body, self.tail) = (Buffer::empty(), Buffer::empty());
        }
    }
}
