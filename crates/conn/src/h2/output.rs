//! The bytes of a connection that wait to be written: whole frames of all streams. Must never know a window.

use wire::h2::{FrameHeader, HEADER_LENGTH, Kind, flag, push_frame};

use super::stream_memory;

/// The number of sent bytes above which the rest is moved to the front.
const LONG: usize = 128 * 1024;

/// A table size update to 0, for heads that do not use the dynamic table (RFC 7541, section 6.3).
const EMPTY_TABLE: [u8; 1] = [0x20];

/// Offset of the stream identifier in a frame header.
const STREAM: usize = 5;

/// Offset of the flags in a frame header.
const FLAGS: usize = 4;

/// Bytes that wait to be written.
#[derive(Default)]
pub(super) struct Output {
    /// The bytes, of which `sent` were sent.
    bytes: Vec<u8>,
    sent: usize,
    /// The last frame queued for a message, whose END_STREAM flag may still be set.
    last: Option<LastFrame>,
}

/// A frame in the output: its stream, and its offset.
struct LastFrame {
    stream: u32,
    at: usize,
}

impl Output {
    /// Makes sure that there is memory.
    #[inline]
    fn lend(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes = stream_memory::bytes();
        }
    }

    /// Queues a frame.
    pub(super) fn push(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        self.lend();
        push_frame(&mut self.bytes, kind, flags, stream, payload);
        self.last = None;
    }

    /// Queues bytes that are no frame.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.lend();
        self.bytes.extend_from_slice(bytes);
        self.last = None;
    }

    /// Queues a frame of payload, which may be the last one of its message.
    #[inline]
    pub(super) fn push_payload(&mut self, stream: u32, payload: &[u8]) {
        self.lend();
        self.last = Some(LastFrame { stream, at: self.bytes.len() });
        push_frame(&mut self.bytes, Kind::Data, 0, stream, payload);
    }

    /// Queues frames of heads, with the stream's identifier. `resizes`: a table size update to 0 comes first.
    #[inline]
    pub(super) fn push_heads(&mut self, stream: u32, frames: &[u8], resizes: bool) {
        self.lend();
        let header = FrameHeader::parse(frames);
        if header.is_some_and(|header| header.length + HEADER_LENGTH == frames.len()) && !resizes {
            // One frame, as nearly all heads are.
            let at = self.bytes.len();
            self.last = Some(LastFrame { stream, at });
            self.bytes.extend_from_slice(frames);
            if let Some(place) = self.bytes.get_mut(at + STREAM..at + HEADER_LENGTH) {
                place.copy_from_slice(&stream.to_be_bytes());
            }
        } else {
            self.push_each(stream, frames, resizes);
        }
    }

    #[cold]
    fn push_each(&mut self, stream: u32, frames: &[u8], mut resizes: bool) {
        let mut rest = frames;
        while let Some(mut header) = FrameHeader::parse(rest) {
            let (frame, behind) = rest.split_at((HEADER_LENGTH + header.length).min(rest.len()));
            rest = behind;
            header.stream = stream;
            if header.kind == Kind::Headers {
                self.last = Some(LastFrame { stream, at: self.bytes.len() });
                if std::mem::take(&mut resizes) {
                    let flags = header.flags & flag::END_STREAM;
                    push_frame(&mut self.bytes, Kind::Headers, flags, stream, &EMPTY_TABLE);
                    header.kind = Kind::Continuation;
                    header.flags &= !flag::END_STREAM;
                }
            }
            self.bytes.extend_from_slice(&header.bytes());
            self.bytes.extend_from_slice(&frame[HEADER_LENGTH..]);
        }
    }

    /// Ends a stream's message: by a flag of its last frame if that was not sent yet, else with an empty frame.
    #[inline]
    pub(super) fn push_end(&mut self, stream: u32) {
        if let Some(last) = self.last.take()
            && last.stream == stream
            && let Some(flags) = self.bytes.get_mut(last.at + FLAGS)
        {
            *flags |= flag::END_STREAM;
        } else {
            self.push(Kind::Data, flag::END_STREAM, stream, &[]);
        }
    }

    /// The last frame is not the end of a message.
    pub(super) fn close_last(&mut self) {
        self.last = None;
    }

    /// The number of bytes that wait.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// The bytes to be written next. From now on their frames are not changed.
    pub(super) fn next(&mut self) -> &[u8] {
        self.last = None;
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Removes bytes that were sent.
    pub(super) fn note_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
        } else if self.sent > LONG {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Releases the memory if nothing waits.
    pub(super) fn rest(&mut self) {
        if self.bytes.is_empty() {
            stream_memory::keep_bytes(std::mem::take(&mut self.bytes));
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of memory that it holds.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
