//! Reads the frames of a message: the head for the connection's task, payload and trailers for the stream's. Must
//! never write to a stream.

use bytes::{Buf, Bytes};
use quic::stream::{Part as Received, ReadError};
use wire::h2::Outcome;
use wire::h3::{self, ErrorCode, MessagePart, Role};
use wire::http::{Fields, Framing};

use super::cell::{Arrival, Half, StreamCell};
use super::state::Shared;
use super::webtransport;
use crate::conduct;

/// Bytes of a stream taken from the connection at once.
const MOST: usize = 64 * 1024;

/// The state of a stream after all available bytes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The head was read.
    Head,
    /// Payload is available.
    Payload,
    /// The stream is no message, but one of that WebTransport session.
    Session(u64),
    /// More bytes are needed.
    Blocked,
    /// The message has ended.
    Ended,
    /// The stream has failed.
    Failed,
}

impl Shared {
    /// Reads until the head is complete.
    pub(super) fn read_head(&self, cell: &StreamCell, half: &mut Half) -> Reading {
        loop {
            match self.next_part(cell, half) {
                Reading::Payload => half.payload = Bytes::new(),
                other => return other,
            }
        }
    }

    /// Reads until payload is available, or the message has ended.
    pub(super) fn read_payload(&self, cell: &StreamCell, half: &mut Half) -> Reading {
        loop {
            match self.next_part(cell, half) {
                Reading::Payload if half.payload.is_empty() => {}
                Reading::Head => {}
                other => return other,
            }
        }
    }

    /// Takes bytes of the stream from the connection.
    fn fill(&self, cell: &StreamCell, half: &mut Half) -> Reading {
        let read = self.link.connection().read(cell.id, MOST);
        match read {
            Ok(Received::Chunk(bytes)) => {
                half.unread = bytes;
                Reading::Payload
            }
            Ok(Received::End) => self.end(cell, half),
            Err(ReadError::Blocked) => Reading::Blocked,
            Err(ReadError::Reset(code)) => {
                let state = &mut *self.state.borrow_mut();
                state.counts.errors.note(code);
                if state.role == Role::Client {
                    cell.refused.set(ErrorCode::of(code) == Some(ErrorCode::RequestRejected));
                } else if !half.complete {
                    state.note_failed_stream();
                }
                half.fail();
                Reading::Failed
            }
            Err(ReadError::Closed) => {
                half.fail();
                Reading::Failed
            }
        }
    }

    /// Handles the end of the stream.
    fn end(&self, cell: &StreamCell, half: &mut Half) -> Reading {
        if let Err(error) = half.reader.finish() {
            self.fail(cell, half, error);
            return Reading::Failed;
        }
        if half.announced.is_some_and(|left| left > 0) {
            self.fail(cell, half, h3::Error::stream(ErrorCode::MessageError));
            return Reading::Failed;
        }
        half.ended = true;
        Reading::Ended
    }

    /// Reads the next part of the message.
    fn next_part(&self, cell: &StreamCell, half: &mut Half) -> Reading {
        if half.has_failed() {
            return Reading::Failed;
        }
        if half.ended {
            return Reading::Ended;
        }
        if half.unread.is_empty() {
            match self.fill(cell, half) {
                Reading::Payload => {}
                other => return other,
            }
        }
        let unread = std::mem::take(&mut half.unread);
        let mut input = &unread[..];
        let Half { reader, head, has_head, .. } = &mut *half;
        let part = match reader.next(&mut input) {
            Ok(part) => part,
            Err(error) => {
                self.fail(cell, half, error);
                return Reading::Failed;
            }
        };
        let reading = match part {
            None => Ok(Part::Nothing),
            Some(MessagePart::Data(data)) => Ok(Part::Data(unread.slice_ref(data))),
            Some(MessagePart::Head(section)) => self.decode_head(cell, section, head).map(Part::Head),
            Some(MessagePart::Trailers(section)) => self.decode_trailers(cell, section).map(Part::Trailers),
            Some(MessagePart::TooLarge { .. }) if *has_head => Err(h3::Error::stream(ErrorCode::ExcessiveLoad)),
            Some(MessagePart::TooLarge { .. }) => Ok(Part::Head(Decoded::Refused(431))),
            Some(MessagePart::Skipped { .. }) => Ok(Part::Skipped),
            Some(MessagePart::StreamOf { session }) => Ok(Part::Session(session)),
        };
        let consumed = unread.len() - input.len();
        half.unread = unread;
        half.unread.advance(consumed);
        match reading {
            Ok(part) => self.note(cell, half, part),
            Err(error) => {
                self.fail(cell, half, error);
                Reading::Failed
            }
        }
    }

    /// Records a part that was read.
    fn note(&self, cell: &StreamCell, half: &mut Half, part: Part) -> Reading {
        match part {
            Part::Nothing => Reading::Payload,
            Part::Data(data) => {
                if let Some(left) = &mut half.announced {
                    let Some(rest) = left.checked_sub(data.len() as u64) else {
                        self.fail(cell, half, h3::Error::stream(ErrorCode::MessageError));
                        return Reading::Failed;
                    };
                    *left = rest;
                }
                let state = &mut *self.state.borrow_mut();
                state.counts.data += 1;
                if data.is_empty() {
                    state.note_idle_frame();
                }
                half.progress.note(data.len(), half.announced == Some(0));
                half.payload = data;
                Reading::Payload
            }
            Part::Trailers(trailers) => {
                half.trailers = Some(trailers).filter(|trailers| !trailers.is_empty());
                self.state.borrow_mut().counts.headers += 1;
                Reading::Payload
            }
            Part::Skipped => {
                let state = &mut *self.state.borrow_mut();
                state.note_idle_frame();
                Reading::Payload
            }
            Part::Session(session) => Reading::Session(session),
            Part::Head(decoded) => self.note_head(cell, half, decoded),
        }
    }

    /// Decodes the head of a message.
    fn decode_head(
        &self,
        cell: &StreamCell,
        section: &[u8],
        head: &mut wire::http::Head,
    ) -> Result<Decoded, h3::Error> {
        let state = &mut *self.state.borrow_mut();
        state.counts.headers += 1;
        let capacity = state.terms.capacity();
        if state.role == Role::Client {
            let mut reader = h3::response_reader(head, capacity);
            let decoded = state.decoder.decode(cell.id.number(), section, capacity, |field| reader.field(field));
            decoded.map_err(h3::Error::from)?;
            reader.finish(false)?;
            return Ok(Decoded::Answer { length: section.len() });
        }
        let mut reader = h3::request_reader(head, capacity, state.terms.extends);
        let mut priority = None;
        let decoded = state.decoder.decode(cell.id.number(), section, capacity, |field| {
            if field.name == b"priority" {
                priority = Some(wire::http::priority::Priority::parse(field.value));
            }
            reader.field(field);
        });
        decoded.map_err(h3::Error::from)?;
        // Whether the message ends with its head is not known: a message without payload has no frames after it.
        let outcome = reader.finish(false, state.terms.accept_unsafe)?;
        Ok(match outcome {
            Outcome::Request => Decoded::Request { length: section.len(), priority },
            Outcome::Invalid => Decoded::Refused(400),
            Outcome::TooMany => {
                state.charge(conduct::of_many_fields(section.len()));
                Decoded::Refused(400)
            }
            Outcome::TooLarge => Decoded::Refused(431),
        })
    }

    /// Decodes trailers.
    fn decode_trailers(&self, cell: &StreamCell, section: &[u8]) -> Result<Box<Fields>, h3::Error> {
        let state = &mut *self.state.borrow_mut();
        let (mut trailers, mut malformed) = (Box::new(Fields::new()), false);
        let capacity = state.terms.capacity();
        let mut left = capacity;
        let decoded = state.decoder.decode(cell.id.number(), section, capacity, |field| {
            malformed = malformed || h3::read_trailers(&mut trailers, &mut left, field.name, field.value).is_err();
        });
        decoded.map_err(h3::Error::from)?;
        if malformed { Err(h3::Error::stream(ErrorCode::MessageError)) } else { Ok(trailers) }
    }

    /// Records the head of a message.
    fn note_head(&self, cell: &StreamCell, half: &mut Half, decoded: Decoded) -> Reading {
        half.has_head = true;
        match decoded {
            Decoded::Answer { length } => {
                half.arrival = Arrival::Here { length };
                if half.head.status() < 200 {
                    half.has_head = false;
                    half.reader.note_interim();
                    return Reading::Head;
                }
            }
            Decoded::Refused(status) => half.arrival = Arrival::Refused { status },
            Decoded::Request { length, priority } => {
                half.arrival = Arrival::Here { length };
                if let Some(priority) = priority {
                    half.priority = priority;
                    self.link.connection().set_priority(cell.id, rank(priority));
                }
                if half.head.upgrade || half.head.known_method() == wire::http::Method::Connect {
                    half.reader.become_tunnel();
                    if webtransport::is_asked(&half.head) && self.begin_session(cell.id) == Some(false) {
                        half.arrival = Arrival::Refused { status: 429 };
                    }
                } else if let Framing::Length(length) = half.head.framing {
                    half.announced = Some(length);
                }
            }
        }
        // No task reads what follows a length of 0, or a head that is too large and may be cut short. The end of most messages
        // without payload was received with their head.
        let is_checked = half.announced == Some(0) || matches!(half.arrival, Arrival::Refused { .. });
        if is_checked && self.read_payload(cell, half) == Reading::Failed
            || !is_checked && half.unread.is_empty() && self.fill(cell, half) == Reading::Failed
        {
            return Reading::Failed;
        }
        if half.ended && half.head.framing == Framing::Chunked && self.state.borrow().role == Role::Server {
            half.head.framing = Framing::None;
        }
        Reading::Head
    }
}

/// Returns the rank of a priority among the streams of a connection: larger ones are sent first.
pub(super) fn rank(priority: wire::http::priority::Priority) -> i32 {
    3 - i32::from(priority.urgency)
}

/// A part of a message.
enum Part {
    Nothing,
    Data(Bytes),
    Head(Decoded),
    Trailers(Box<Fields>),
    Session(u64),
    Skipped,
}

/// The head of a message.
enum Decoded {
    Answer { length: usize },
    Request { length: usize, priority: Option<wire::http::priority::Priority> },
    Refused(u16),
}
