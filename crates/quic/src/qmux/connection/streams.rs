//! The streams as their owner uses them: opened, accepted, read and written. Must never process a frame.

use bytes::BytesMut;

use super::super::frame;
use super::super::stream::{Sending, Stream};
use super::super::table::index;
use super::{Connection, State};
use crate::stream::{Direction, Part, ReadError, StreamId, WriteError, code};

impl Connection {
    pub(super) fn with_number(&mut self, id: u64, change: impl FnOnce(&mut Stream)) {
        if let Some(stream) = self.streams.get(id) {
            change(stream);
        }
    }

    /// Returns the next stream that the peer has opened.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let opened = &mut self.theirs[index(direction)];
        if opened.accepted >= opened.count {
            return None;
        }
        let count = opened.accepted;
        opened.accepted += 1;
        let id = count << 2 | (index(direction) as u64) << 1 | u64::from(!self.is_server);
        self.with_number(id, |stream| stream.is_accepted = true);
        StreamId::of_number(id)
    }

    /// Opens a stream. `None`: the peer permits no more now, which an event ends.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let opened = self.ours[index(direction)];
        if opened.count >= opened.most || self.state == State::Closed {
            return None;
        }
        let id = self.number(direction, opened.count);
        self.ours[index(direction)].count += 1;
        let stream = self.create(id);
        self.streams.insert(stream);
        StreamId::of_number(id)
    }

    /// Reads at most `most` bytes as one piece.
    ///
    /// # Errors
    /// There is nothing to read.
    pub fn read(&mut self, id: StreamId, most: usize) -> Result<Part, ReadError> {
        let window = u64::from(self.settings.stream_window);
        let Some(stream) = self.streams.get(id.number()) else { return Err(ReadError::Closed) };
        let Some(receiving) = stream.receiving.as_mut().filter(|receiving| !receiving.is_stopped) else {
            return Err(ReadError::Closed);
        };
        if let Some(code) = receiving.reset {
            stream.receiving = None;
            self.remove_if_over(id.number());
            return Err(ReadError::Reset(code));
        }
        if receiving.unread.is_empty() {
            if !receiving.is_ended {
                return Err(ReadError::Blocked);
            }
            stream.receiving = None;
            self.remove_if_over(id.number());
            return Ok(Part::End);
        }
        let length = receiving.unread.len().min(most);
        let bytes = match length == receiving.unread.len() {
            // The stream keeps no memory for bytes that may never be received.
            true => std::mem::take(&mut receiving.unread).freeze(),
            false => receiving.unread.split_to(length).freeze(),
        };
        if receiving.credit(window).is_some() && !std::mem::replace(&mut receiving.owes_credit, true) {
            self.owed.credits.push(id.number());
        }
        self.note_taken(length as u64);
        Ok(Part::Chunk(bytes))
    }

    /// Counts bytes of streams that were read or dropped: the peer may send as many more.
    pub(super) fn note_taken(&mut self, count: u64) {
        self.taken += count;
        let window = u64::from(self.settings.window);
        self.owed.max_data |= self.taken + window >= self.most_received + window.div_ceil(2);
    }

    fn sending(&mut self, id: StreamId) -> Result<&mut Sending, WriteError> {
        let stream = self.streams.get(id.number()).ok_or(WriteError::Closed)?;
        let sending = stream.sending.as_mut().ok_or(WriteError::Closed)?;
        match sending.stopped {
            Some(code) => Err(WriteError::Stopped(code)),
            None if sending.is_finished => Err(WriteError::Closed),
            None => Ok(sending),
        }
    }

    /// Writes a copy of the first bytes. Returns their number.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, WriteError> {
        if self.state == State::Closed {
            return Err(WriteError::Closed);
        }
        let room = self.output.room() as u64;
        let connection = self.most_written - self.written;
        let sending = self.sending(id)?;
        let stream = sending.most.saturating_sub(sending.written);
        let count = room.min(connection).min(stream).min(bytes.len() as u64);
        if count == 0 && !bytes.is_empty() {
            self.block(id, room, stream);
            return Err(WriteError::Blocked);
        }
        let offset = sending.written;
        sending.written += count;
        self.written += count;
        // No more than there are bytes.
        self.output.push_payload(id.number(), offset, &bytes[..count as usize]);
        Ok(count as usize)
    }

    /// Records that a stream has to wait, and informs the peer if that is because of the window of its stream.
    fn block(&mut self, id: StreamId, room: u64, window: u64) {
        let Ok(sending) = self.sending(id) else { return };
        let is_new = !std::mem::replace(&mut sending.is_blocked, true);
        let most = sending.most;
        let is_reported = window > 0 || room == 0 || std::mem::replace(&mut sending.is_reported, true);
        if is_new {
            self.blocked.push_back(id.number());
        }
        if !is_reported {
            self.output.push_integers(&[frame::STREAM_DATA_BLOCKED, id.number(), most]);
        }
    }

    /// Ends a stream in order.
    ///
    /// # Errors
    /// The peer has stopped it, or it has ended.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        if self.state == State::Closed {
            return Err(WriteError::Closed);
        }
        let sending = self.sending(id)?;
        sending.is_finished = true;
        let offset = sending.written;
        self.output.finish(id.number(), offset);
        self.ends.push_back((id.number(), self.output.written()));
        Ok(())
    }

    /// Abandons the sending side of a stream with a code of the application. One that has ended is left alone.
    pub fn reset(&mut self, id: StreamId, number: u64) {
        let Some(stream) = self.streams.get(id.number()).filter(|_| self.state == State::Open) else { return };
        if stream.sending.as_ref().is_none_or(|sending| sending.is_finished) {
            return;
        }
        let written = stream.sending.take().map_or(0, |sending| sending.written);
        self.output.push_integers(&[frame::RESET_STREAM, id.number(), code(number).into(), written]);
        self.remove_if_over(id.number());
    }

    /// Asks the peer to send no more on a stream, with a code of the application; what arrives is dropped. One that has ended
    /// is left alone.
    pub fn stop(&mut self, id: StreamId, number: u64) {
        let Some(stream) = self.streams.get(id.number()).filter(|_| self.state == State::Open) else { return };
        let Some(receiving) = stream.receiving.as_mut().filter(|receiving| !receiving.is_stopped) else { return };
        let unread = receiving.unread.len() as u64;
        receiving.unread = BytesMut::new();
        receiving.is_stopped = true;
        let is_ended = receiving.is_ended;
        if is_ended {
            stream.receiving = None;
        } else {
            self.output.push_integers(&[frame::STOP_SENDING, id.number(), code(number).into()]);
        }
        self.note_taken(unread);
        self.remove_if_over(id.number());
    }

    /// Sets the priority of a stream: of those that wait, the ones with larger priorities write first.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) {
        if let Ok(sending) = self.sending(id) {
            sending.priority = priority;
        }
    }

    /// Sets how many streams the peer may have open at a time. Those that it was allowed before remain allowed.
    pub fn set_max_streams(&mut self, direction: Direction, count: u32) {
        let at = index(direction);
        self.theirs[at].at_once = self.theirs[at].at_once.max(count.into());
        self.owed.max_streams[at] = true;
    }
}
