//! One direction of a stream of a session: bytes, its end or a reset from one connection to the other. Must never hold more than what
//! it has read at once.

use bytes::Bytes;
use quic::StreamId;
use quic::stream::{Part, ReadError, WriteError};
use wire::h3::webtransport::SESSION_GONE;

use crate::quic::TimedConnection;

/// Bytes that are read at once.
const MOST: usize = 64 * 1024;

/// A stream of one connection.
pub(super) struct End<'a> {
    pub(super) connection: &'a mut TimedConnection,
    pub(super) id: StreamId,
}

/// How far a direction has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowState {
    /// It waits for either connection.
    Waits,
    /// Other streams are to be moved first.
    Exhausted,
    /// Its end was sent.
    Finished,
    /// It was reset, or is not read any further.
    Over,
}

/// Payload that was moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) read: usize,
    pub(super) written: usize,
}

/// A direction of a stream.
#[derive(Debug)]
pub(super) struct Flow {
    /// The beginning of the stream, and payload after it, that were not sent.
    pieces: [Bytes; 2],
    has_ended: bool,
}

impl Flow {
    /// Begins with the beginning of a stream, and payload that was received.
    pub(super) fn new(beginning: Vec<u8>, unread: Bytes) -> Self {
        Self { pieces: [beginning.into(), unread], has_ended: false }
    }

    /// Moves what can be moved. Codes of resets and of STOP_SENDING pass as they are: both connections use those of HTTP/3, into
    /// which those of sessions are mapped.
    pub(super) fn advance(&mut self, from: &mut End<'_>, to: &mut End<'_>, moved: &mut Moved) -> FlowState {
        if let Some(code) = to.connection.stopped(to.id) {
            return stop(from, to, code);
        }
        let limit = moved.read.saturating_add(MOST);
        loop {
            if self.pieces.iter().any(|piece| !piece.is_empty()) {
                match self.write(to, moved) {
                    Ok(()) => continue,
                    Err(WriteError::Blocked) => return FlowState::Waits,
                    Err(WriteError::Stopped(code)) => return stop(from, to, code),
                    // The connection has ended.
                    Err(WriteError::Closed) => return stop(from, to, SESSION_GONE),
                }
            }
            if self.has_ended {
                return match to.connection.finish(to.id) {
                    Ok(()) => FlowState::Finished,
                    Err(_) => FlowState::Over,
                };
            }
            if moved.read >= limit {
                return FlowState::Exhausted;
            }
            match from.connection.read(from.id, MOST) {
                Ok(Part::Chunk(bytes)) => {
                    moved.read += bytes.len();
                    self.pieces = [Bytes::new(), bytes];
                }
                Ok(Part::End) => self.has_ended = true,
                Err(ReadError::Blocked) => return FlowState::Waits,
                Err(ReadError::Reset(code)) => {
                    to.connection.reset(to.id, code);
                    return FlowState::Over;
                }
                Err(ReadError::Closed) => {
                    to.connection.reset(to.id, SESSION_GONE);
                    return FlowState::Over;
                }
            }
        }
    }

    fn write(&mut self, to: &mut End<'_>, moved: &mut Moved) -> Result<(), WriteError> {
        let beginning = self.pieces[0].len();
        let written = to.connection.write_pieces(to.id, &mut self.pieces)?;
        moved.written += written - (beginning - self.pieces[0].len());
        Ok(())
    }
}

/// Ends a direction that its receiver does not read any further.
fn stop(from: &mut End<'_>, to: &mut End<'_>, code: u64) -> FlowState {
    from.connection.stop(from.id, code);
    to.connection.reset(to.id, code);
    FlowState::Over
}
