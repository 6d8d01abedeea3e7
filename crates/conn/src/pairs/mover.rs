//! Frames between a connection and its streams: reads and writes them, whichever side of the protocol this is. Must never
//! know what a head says.

use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::frame::{self, HEADER, Kind};
use super::half::Shared;
use crate::transport::Transport;

/// Bytes of frames that wait to be written, above which nothing is read.
const BACKLOG: usize = 16 * 1024;

/// Moves the frames of one connection.
pub(super) struct Mover {
    pub(super) shared: Rc<Shared>,
    /// What waits to be written.
    pub(super) output: Vec<u8>,
    /// What was read and not used.
    pub(super) input: Vec<u8>,
}

/// What reading brought.
pub(super) enum Read {
    /// Bytes.
    More,
    /// The connection has ended.
    End,
}

impl Mover {
    /// Writes what streams have left, and credit for what they have taken.
    pub(super) fn write(&mut self, cx: &mut Context<'_>, transport: &mut Transport) -> Result<(), ()> {
        loop {
            let mut halves = self.shared.halves.borrow_mut();
            for half in halves.iter_mut() {
                if self.output.len() > BACKLOG {
                    break;
                }
                if half.owed > 0 && !half.ended {
                    self.output.extend_from_slice(&frame::header(Kind::Credit, half.number, half.owed));
                }
                half.owed = 0;
                if !half.outgoing.is_empty() {
                    self.output.append(&mut half.outgoing);
                    half.wake();
                }
            }
            halves.retain(|half| !half.left || !half.outgoing.is_empty());
            drop(halves);
            if self.output.is_empty() {
                return Ok(());
            }
            match transport.poll_write_slices(cx, &[IoSlice::new(&self.output)], false) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(written)) => drop(self.output.drain(..written)),
                Poll::Ready(Err(_)) => return Err(()),
            }
        }
    }

    /// Reads what there is, unless too much waits to be written.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, transport: &mut Transport) -> Poll<Read> {
        if self.output.len() > BACKLOG {
            return Poll::Pending;
        }
        let mut buffer = rt::buffer();
        match std::task::ready!(transport.poll_read(cx, &mut buffer)) {
            Ok(1..) => self.input.extend_from_slice(buffer.data()),
            _ => return Poll::Ready(Read::End),
        }
        Poll::Ready(Read::More)
    }

    /// Takes a whole frame of what was read: its kind, its stream, its bytes. What is no head is done. The error: the peer
    /// breaks the protocol.
    pub(super) fn take_frame(&mut self) -> Result<Option<(Kind, u8, Vec<u8>)>, ()> {
        let Some(header) = frame::parse(&self.input) else { return Ok(None) };
        let (kind, number, length) = header?;
        let size = if kind == Kind::Credit { HEADER } else { HEADER + length };
        if self.input.len() < size {
            return Ok(None);
        }
        let bytes = self.input[HEADER..size].to_vec();
        self.input.drain(..size);
        // What comes for a stream that has ended is dropped.
        self.shared.with(number, |half| half.take(kind, length, &bytes)).unwrap_or(Ok(()))?;
        Ok(Some((kind, number, bytes)))
    }
}
