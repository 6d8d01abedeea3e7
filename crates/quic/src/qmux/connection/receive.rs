//! Receiving: the effects of frames and payload. Must never write payload.

use base::moment::Moment;

use super::super::error::ErrorCode;
use super::super::frame::Frame;
use super::super::reader::Item;
use super::super::table::{direction, index};
use super::{Connection, State};
use crate::closed::Closed;
use crate::connection::Event;
use crate::stream::{Direction, StreamId};

impl Connection {
    /// Processes bytes of the peer. Those of a connection that has ended are dropped.
    pub fn receive(&mut self, now: Moment, bytes: &[u8]) {
        self.heard = now;
        let mut input = bytes;
        while self.state == State::Open {
            let processed = match self.reader.next(&mut input) {
                Ok(None) => return,
                Ok(Some(Item::Frame(frame))) => self.process(frame),
                Ok(Some(Item::Payload { bytes, is_last })) => {
                    self.take_payload(bytes, is_last);
                    Ok(())
                }
                Err(code) => Err(code),
            };
            if self.output.is_stuffed() {
                return self.fail(ErrorCode::Internal);
            }
            if let Err(code) = processed {
                self.fail(code);
            }
        }
    }

    fn process(&mut self, frame: Frame) -> Result<(), ErrorCode> {
        match frame {
            Frame::Parameters(parameters) => {
                self.most_written = parameters.max_data;
                let streams = [parameters.streams_bidirectional, parameters.streams_unidirectional];
                self.peer = Some(Box::new(parameters));
                self.events.push_back(Event::Connected);
                self.permit_streams(Direction::Bidirectional, streams[0]);
                self.permit_streams(Direction::Unidirectional, streams[1]);
            }
            Frame::Stream { stream, offset, length, is_last } => self.begin_payload(stream, offset, length, is_last)?,
            Frame::Reset { stream, code, size } => self.note_reset(stream, code, size)?,
            Frame::Stop { stream, code } => self.note_stop(stream, code)?,
            Frame::MaxData(most) => {
                self.glitches += u32::from(most <= self.most_written);
                self.most_written = self.most_written.max(most);
                self.unblock();
            }
            Frame::MaxStreamData { stream, most } => {
                self.check_sent(stream)?;
                let sending = self.streams.get(stream).and_then(|stream| stream.sending.as_mut());
                let is_more = sending.is_none_or(|sending| {
                    let is_more = most > sending.most;
                    sending.most = sending.most.max(most);
                    sending.is_reported &= !is_more;
                    is_more
                });
                self.glitches += u32::from(!is_more);
                self.unblock();
            }
            Frame::MaxStreams { direction, most } => {
                self.glitches += u32::from(most <= self.ours[index(direction)].most);
                self.permit_streams(direction, most);
            }
            Frame::StreamDataBlocked { stream } => {
                self.check_received(stream)?;
                self.received_frames.stream_data_blocked += 1;
            }
            // A peer that has to wait reports it (RFC 9000, sections 4.1 and 4.6).
            Frame::DataBlocked => self.received_frames.data_blocked += 1,
            Frame::StreamsBlocked(direction) => self.received_frames.streams_blocked[index(direction)] += 1,
            Frame::Padding | Frame::Pong => self.glitches += 1,
            Frame::Ping(sequence) => {
                self.glitches += 1;
                let pong = &mut self.owed.pong;
                *pong = Some(pong.map_or(sequence, |other| other.max(sequence)));
            }
            Frame::Close { code, is_application, .. } => self.end(match is_application {
                true => Closed::ByPeer { code, reason: [].into() },
                false => Closed::PeerTransport { code, reason: [].into() },
            }),
        }
        Ok(())
    }

    fn permit_streams(&mut self, direction: Direction, most: u64) {
        let opened = &mut self.ours[index(direction)];
        if most > opened.most {
            opened.most = most;
            self.events.push_back(Event::StreamsAvailable(direction));
        }
    }

    /// Checks that the peer may send on a stream, and creates it if it is new, with all of the same kind before it. Returns
    /// false if it is over.
    fn check_received(&mut self, id: u64) -> Result<bool, ErrorCode> {
        let (direction, count) = (direction(id), id >> 2);
        let at = index(direction);
        if self.is_ours(id) {
            return match direction {
                Direction::Bidirectional if count < self.ours[at].count => Ok(self.streams.get(id).is_some()),
                _ => Err(ErrorCode::StreamState),
            };
        }
        if count >= self.theirs[at].most {
            return Err(ErrorCode::StreamLimit);
        }
        if count < self.theirs[at].count {
            return Ok(self.streams.get(id).is_some());
        }
        let kind = id & 3;
        for number in self.theirs[at].count..=count {
            let stream = self.create(number << 2 | kind);
            self.streams.insert(stream);
        }
        self.theirs[at].count = count + 1;
        let opened = Event::StreamsOpened(direction);
        if !self.events.contains(&opened) {
            self.events.push_back(opened);
        }
        Ok(true)
    }

    /// Checks that this side may send on a stream.
    fn check_sent(&mut self, id: u64) -> Result<(), ErrorCode> {
        match direction(id) {
            Direction::Unidirectional if !self.is_ours(id) => Err(ErrorCode::StreamState),
            direction if self.is_ours(id) && id >> 2 >= self.ours[index(direction)].count => {
                Err(ErrorCode::StreamState)
            }
            _ if self.is_ours(id) => Ok(()),
            _ => self.check_received(id).map(|_| ()),
        }
    }

    /// Counts bytes of streams that were received.
    fn count_received(&mut self, count: u64) -> Result<(), ErrorCode> {
        self.received += count;
        if self.received > self.most_received { Err(ErrorCode::FlowControl) } else { Ok(()) }
    }

    /// Handles a STREAM frame, whose payload follows.
    fn begin_payload(&mut self, id: u64, offset: u64, length: u64, is_last: bool) -> Result<(), ErrorCode> {
        if !self.check_received(id)? {
            return Err(ErrorCode::StreamState);
        }
        self.count_received(length)?;
        let Some(receiving) = self.streams.get(id).and_then(|stream| stream.receiving.as_mut()) else {
            return Err(ErrorCode::StreamState);
        };
        if receiving.is_ended {
            return Err(ErrorCode::FinalSize);
        }
        if offset != receiving.received {
            return Err(ErrorCode::ProtocolViolation);
        }
        receiving.received += length;
        if receiving.received > receiving.most {
            return Err(ErrorCode::FlowControl);
        }
        self.glitches += u32::from(length == 0 && !is_last && offset > 0);
        self.current = (id, is_last);
        if length == 0 {
            self.take_payload(&[], true);
        } else {
            // It is counted with its bytes.
            receiving.received -= length;
        }
        Ok(())
    }

    /// Adds payload to its stream. `is_whole`: that of the frame is complete.
    fn take_payload(&mut self, bytes: &[u8], is_whole: bool) {
        let (id, ends) = self.current;
        let Some(stream) = self.streams.get(id) else { return };
        let Some(receiving) = &mut stream.receiving else { return };
        receiving.received += bytes.len() as u64;
        receiving.is_ended |= is_whole && ends;
        if receiving.is_stopped {
            if receiving.is_ended {
                stream.receiving = None;
            }
            self.note_taken(bytes.len() as u64);
            return self.remove_if_over(id);
        }
        receiving.unread.extend_from_slice(bytes);
        if !bytes.is_empty() || receiving.is_ended {
            self.report_readable(id);
        }
    }

    /// Reports that a stream can be read, unless it is not accepted.
    fn report_readable(&mut self, id: u64) {
        if let Some(stream) = self.streams.get(id)
            && stream.is_accepted
            && !std::mem::replace(&mut stream.is_readable, true)
            && let Some(id) = StreamId::of_number(id)
        {
            self.events.push_back(Event::Readable(id));
        }
    }

    /// Handles RESET_STREAM. Bytes that it announces are never received.
    fn note_reset(&mut self, id: u64, code: u64, size: u64) -> Result<(), ErrorCode> {
        if !self.check_received(id)? {
            return Ok(());
        }
        let Some(receiving) = self.streams.get(id).and_then(|stream| stream.receiving.as_mut()) else { return Ok(()) };
        if size < receiving.received || receiving.is_ended && size != receiving.received {
            return Err(ErrorCode::FinalSize);
        }
        if size > receiving.most {
            return Err(ErrorCode::FlowControl);
        }
        let (missing, unread) = (size - receiving.received, receiving.unread.len() as u64);
        (receiving.received, receiving.is_ended, receiving.reset) = (size, true, Some(code));
        receiving.unread = bytes::BytesMut::new();
        let is_stopped = receiving.is_stopped;
        self.count_received(missing)?;
        self.note_taken(missing + unread);
        if is_stopped {
            self.with_number(id, |stream| stream.receiving = None);
            self.remove_if_over(id);
        } else {
            self.report_readable(id);
        }
        Ok(())
    }

    /// Handles STOP_SENDING.
    fn note_stop(&mut self, id: u64, code: u64) -> Result<(), ErrorCode> {
        self.check_sent(id)?;
        let Some(stream) = self.streams.get(id) else { return Ok(()) };
        let Some(sending) = &mut stream.sending else { return Ok(()) };
        if sending.stopped.is_some() {
            self.glitches += 1;
            return Ok(());
        }
        sending.stopped = Some(code);
        if sending.is_finished {
            stream.sending = None;
        }
        if let Some(id) = StreamId::of_number(id) {
            self.events.push_back(Event::Stopped(id, code));
        }
        self.remove_if_over(id);
        Ok(())
    }
}
