//! The records that wait to be sent. Payload of a stream extends the record that was written last, if that is its own, so that a
//! short message is one record. Must never know a window.

use super::frame::{self, FIN, OFFSET, STREAM_WITH_LENGTH};
use super::parameters::RECORD_SIZE;
use super::varint;

/// Maximum number of waiting bytes to which payload is added.
const FULL: usize = 64 * 1024;
/// Maximum number of bytes of all frames that wait. A peer that does not read cannot cause more.
const MOST: usize = 2 * FULL;
/// Maximum number of bytes of a STREAM frame and its record besides its payload.
const OVERHEAD: usize = 2 + 1 + 8 + 8 + 2;
/// Maximum number of bytes of a record's frames.
const LARGEST: usize = RECORD_SIZE as usize;
/// Bytes of the first allocation.
const FIRST: usize = 1024;

/// The STREAM frame that was written last.
struct Last {
    stream: u64,
    /// Index of its record.
    record: usize,
    /// Index of its type.
    kind: usize,
    /// Index of its length.
    length: usize,
}

/// The records that wait.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// Index of the first byte that was not sent.
    start: usize,
    /// Number of bytes sent and removed.
    removed: u64,
    last: Option<Last>,
}

impl Output {
    /// Returns the bytes that wait.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Leaves the waiting bytes as they are: a transport may have encrypted some that it has not accepted yet.
    pub(super) fn seal(&mut self) {
        self.last = None;
    }

    /// Returns the position after the last byte that was written.
    pub(super) fn written(&self) -> u64 {
        self.removed + self.bytes.len() as u64
    }

    /// Returns the position of the first byte that was not sent.
    pub(super) fn sent(&self) -> u64 {
        self.removed + self.start as u64
    }

    /// Returns the number of bytes of payload that may be added.
    pub(super) fn room(&self) -> usize {
        FULL.saturating_sub(self.waiting().len() + OVERHEAD)
    }

    /// Whether more waits than a peer that reads may cause.
    pub(super) fn is_stuffed(&self) -> bool {
        self.waiting().len() > MOST
    }

    /// Records that the first bytes were sent.
    pub(super) fn note_sent(&mut self, count: usize) {
        self.start += count.min(self.waiting().len());
        if self.last.as_ref().is_some_and(|last| last.record < self.start) {
            self.last = None;
        }
        if self.start == self.bytes.len() {
            self.removed = self.written();
            (self.bytes, self.start, self.last) = (Vec::new(), 0, None);
        }
    }

    /// Makes space at the front.
    fn compact(&mut self) {
        if self.start >= FULL / 2 {
            self.removed += self.start as u64;
            self.bytes.drain(..self.start);
            (self.start, self.last) = (0, None);
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(FIRST);
        }
    }

    /// Adds a frame in a record of its own.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.compact();
        self.last = None;
        let record = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        write(&mut self.bytes);
        let size = varint::two_bytes(self.bytes.len() - record - 2);
        self.bytes[record..record + 2].copy_from_slice(&size);
    }

    /// Adds a frame of integers.
    pub(super) fn push_integers(&mut self, integers: &[u64]) {
        self.push(|out| integers.iter().for_each(|integer| varint::push(*integer, out)));
    }

    /// Adds payload of a stream, which begins at `offset` of it.
    pub(super) fn push_payload(&mut self, stream: u64, mut offset: u64, mut bytes: &[u8]) {
        self.compact();
        while !bytes.is_empty() {
            if self.last.as_ref().is_none_or(|last| last.stream != stream || self.left(last) == 0) {
                self.begin(stream, offset);
            }
            let Some(last) = &self.last else { return };
            let (piece, rest) = bytes.split_at(self.left(last).min(bytes.len()));
            let (record, length) = (last.record, last.length);
            self.bytes.extend_from_slice(piece);
            let end = self.bytes.len();
            self.bytes[length..length + 2].copy_from_slice(&varint::two_bytes(end - length - 2));
            self.bytes[record..record + 2].copy_from_slice(&varint::two_bytes(end - record - 2));
            offset += piece.len() as u64;
            bytes = rest;
        }
    }

    /// Returns the number of bytes that the record of the last frame has space for.
    fn left(&self, last: &Last) -> usize {
        (LARGEST + 2 + last.record).saturating_sub(self.bytes.len())
    }

    /// Begins a STREAM frame without payload.
    fn begin(&mut self, stream: u64, offset: u64) {
        let record = self.bytes.len();
        let (mut kind, mut length) = (0, 0);
        self.push(|out| {
            kind = out.len();
            out.push(STREAM_WITH_LENGTH | if offset > 0 { OFFSET } else { 0 });
            varint::push(stream, out);
            if offset > 0 {
                varint::push(offset, out);
            }
            length = out.len();
            out.extend_from_slice(&varint::two_bytes(0));
        });
        self.last = Some(Last { stream, record, kind, length });
    }

    /// Ends a stream whose payload ends at `offset`.
    pub(super) fn finish(&mut self, stream: u64, offset: u64) {
        if self.last.as_ref().is_none_or(|last| last.stream != stream) {
            self.compact();
            self.begin(stream, offset);
        }
        if let Some(last) = self.last.take() {
            self.bytes[last.kind] |= FIN;
        }
    }

    /// Adds a CONNECTION_CLOSE frame.
    pub(super) fn close(&mut self, code: u64, is_application: bool, reason: &[u8]) {
        let reason = &reason[..reason.len().min(256)];
        self.push(|out| {
            varint::push(if is_application { frame::APPLICATION_CLOSE } else { frame::CONNECTION_CLOSE }, out);
            varint::push(code, out);
            if !is_application {
                // The type of the frame that has caused it: unknown.
                varint::push(0, out);
            }
            varint::push(reason.len() as u64, out);
            out.extend_from_slice(reason);
        });
    }
}
