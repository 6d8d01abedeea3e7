//! Sealed bytes that were not sent yet. Must never keep memory while there are none.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use rt::net::Stream;
use tls::connection::{LARGEST, OVERHEAD};
use tls::{Connection, Failure};

/// The most plain bytes sealed for one write.
pub(super) const SEAL_SIZE: usize = 4 * LARGEST;
/// The number of buffers that a worker keeps for other connections.
const KEPT: usize = 64;

thread_local! {
    static OUTPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Sealed bytes that were not sent. The memory is returned to the worker when there are none.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent: usize,
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(super) fn vec(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0
            && let Some(kept) = OUTPUTS.with_borrow_mut(Vec::pop)
        {
            self.bytes = kept;
        }
        &mut self.bytes
    }

    /// Counts the bytes sent.
    pub(super) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.is_empty() {
            let mut bytes = std::mem::take(&mut self.bytes);
            self.sent = 0;
            bytes.clear();
            OUTPUTS.with_borrow_mut(|kept| {
                if kept.len() < KEPT && bytes.capacity() <= SEAL_SIZE + SEAL_SIZE / 2 {
                    kept.push(bytes);
                }
            });
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>, stream: &mut Stream, more: bool) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let slices = [IoSlice::new(&self.bytes[self.sent..])];
            let count = ready!(stream.poll_write_slices(cx, &slices, more))?;
            self.advance(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the bytes without waiting. Returns false if some are left.
    pub(super) fn try_flush(&mut self, stream: &mut Stream, more: bool) -> io::Result<bool> {
        while !self.is_empty() {
            let Some(count) = stream.try_write(&self.bytes[self.sent..], more)? else { return Ok(false) };
            self.advance(count);
        }
        Ok(true)
    }
}

/// Appends records of the first bytes of these slices, and returns the number of plain bytes: all, or the most of one
/// write.
pub(super) fn seal_all(
    connection: &mut Connection,
    slices: &[IoSlice<'_>],
    out: &mut Vec<u8>,
) -> Result<usize, Failure> {
    let whole = slices.iter().map(|slice| slice.len()).sum::<usize>().min(SEAL_SIZE);
    out.reserve(whole + whole.div_ceil(LARGEST) * OVERHEAD);
    // Where the next record begins: the index of the slice, and the offset in it.
    let (mut covered, mut at, mut gone) = (0, 0, 0);
    while covered < whole {
        while let Some(slice) = slices.get(at).filter(|slice| slice.len() <= gone) {
            (at, gone) = (at + 1, gone - slice.len());
        }
        let rest = slices.get(at).map_or(&[][..], |slice| &slice[gone..]);
        let next = slices.get(at + 1).map_or(&[][..], |slice| slice);
        let sent = connection.send([rest, next], whole - covered, out)?;
        (covered, gone) = (covered + sent, gone + sent);
    }
    Ok(covered)
}
