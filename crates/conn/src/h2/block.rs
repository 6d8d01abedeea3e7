//! Field blocks, assembled from frames: heads of requests, heads of answers, trailers. Must never touch a frame.

use std::rc::Rc;

use wire::h2::{
    Capacity, DecodeError, Decoder, ErrorCode, FrameHeader, MAX_WINDOW, Outcome, RequestReader, ResponseReader, flag,
    read_trailers,
};
use wire::http::priority::Priority;
use wire::http::{Fields, Framing, Head};

use super::Role;
use super::cell::StreamCell;
use super::counts;
use super::state::{Fault, State};
use super::step::{Event, Limit};
use super::stream_half::{Arrival, Half};
use super::stream_memory;
use crate::conduct::{self, FAILED_STREAM};

/// A block being received.
pub(super) struct Block {
    stream: u32,
    ends_stream: bool,
    depends_on_itself: bool,
    pub(super) bytes: Vec<u8>,
    /// The number of frames received.
    pub(super) pieces: u32,
}

/// A complete block.
pub(super) struct Whole<'b> {
    stream: u32,
    ends_stream: bool,
    depends_on_itself: bool,
    bytes: &'b [u8],
    pieces: u32,
}

impl Block {
    /// Begins a block with a HEADERS frame; `bytes` is memory for it.
    pub(super) fn of(frame: FrameHeader, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        let ends_stream = frame.has(flag::END_STREAM);
        Self { stream: frame.stream, ends_stream, depends_on_itself: false, bytes, pieces: 0 }
    }

    /// The stream that it belongs to.
    pub(super) fn stream(&self) -> u32 {
        self.stream
    }

    /// Removes padding and priority from the first piece.
    pub(super) fn unwrap(&mut self, frame: FrameHeader) -> Result<(), Fault> {
        let (from, to, depends_on_itself) = unwrap(frame, &self.bytes)?;
        self.depends_on_itself = depends_on_itself;
        self.bytes.truncate(to);
        self.bytes.drain(..from);
        Ok(())
    }

    /// Returns the block, which is complete.
    pub(super) fn whole(&self) -> Whole<'_> {
        let Self { stream, ends_stream, depends_on_itself, bytes, pieces } = self;
        let (stream, ends_stream, pieces) = (*stream, *ends_stream, *pieces);
        Whole { stream, ends_stream, depends_on_itself: *depends_on_itself, bytes, pieces }
    }
}

/// Returns the range of the block in the payload of a HEADERS frame, between its priority and its padding, and whether
/// the stream depends on itself.
fn unwrap(frame: FrameHeader, bytes: &[u8]) -> Result<(usize, usize, bool), Fault> {
    let protocol = Fault::Connection(ErrorCode::ProtocolError);
    let (mut from, mut to, mut depends_on_itself) = (0, bytes.len(), false);
    if frame.has(flag::PADDED) {
        let padding = usize::from(*bytes.first().ok_or(Fault::Connection(ErrorCode::FrameSizeError))?);
        from = 1;
        to = to.checked_sub(padding).filter(|to| *to >= from).ok_or(protocol)?;
    }
    if frame.has(flag::PRIORITY) {
        let priority = bytes.get(from..to).and_then(<[u8]>::first_chunk::<5>);
        let [one, two, three, four, _] = *priority.ok_or(Fault::Connection(ErrorCode::FrameSizeError))?;
        depends_on_itself = u32::from_be_bytes([one, two, three, four]) & MAX_WINDOW == frame.stream;
        from += 5;
    }
    Ok((from, to, depends_on_itself))
}

impl<'b> Whole<'b> {
    /// The block of a HEADERS frame that contains all of it, from the frame's payload.
    pub(super) fn of(frame: FrameHeader, payload: &'b [u8]) -> Result<Self, Fault> {
        let (from, to, depends_on_itself) = unwrap(frame, payload)?;
        let bytes = payload.get(from..to).unwrap_or_default();
        Ok(Self { stream: frame.stream, ends_stream: frame.has(flag::END_STREAM), depends_on_itself, bytes, pieces: 1 })
    }

    /// Decodes the block, even if its stream is refused: later blocks may refer to it. `limit`: streams above it are
    /// not accepted.
    pub(super) fn read(&self, decoder: &mut Decoder, limit: Limit, state: &mut State) -> Result<Event, Fault> {
        self.count_pieces(state);
        if self.stream.is_multiple_of(2) {
            return Err(Fault::Connection(ErrorCode::ProtocolError));
        }
        match (state.role, self.stream > state.newest) {
            (Role::Server, true) => self.read_request(decoder, limit, state),
            (Role::Client, true) => Err(Fault::Connection(ErrorCode::ProtocolError)),
            (Role::Client, false) => match state.stream(self.stream) {
                Some(cell) if !cell.half().has_head => self.read_answer(decoder, &cell, state),
                _ => self.read_trailers(decoder, state),
            },
            (Role::Server, false) => self.read_trailers(decoder, state),
        }
    }

    /// Counts a block received in many small pieces.
    #[inline]
    fn count_pieces(&self, state: &mut State) {
        let glitches = counts::of_pieces(self.pieces.saturating_sub(1), self.bytes.len());
        if glitches > 0 {
            state.note_glitches(glitches);
            state.charge(FAILED_STREAM * glitches);
        }
    }

    fn read_request(&self, decoder: &mut Decoder, limit: Limit, state: &mut State) -> Result<Event, Fault> {
        let stream = self.stream;
        if stream > limit.last && !limit.is_final {
            return Err(Fault::Connection(ErrorCode::EnhanceYourCalm));
        }
        state.newest = stream;
        // The frame is too small for its mandatory contents (RFC 9113, section 4.2).
        if self.bytes.is_empty() {
            return Err(Fault::Connection(ErrorCode::FrameSizeError));
        }
        let cell = state.fresh();
        let half = &mut *cell.half();
        let capacity = state.terms.capacity();
        let mut reader = RequestReader::new(&mut half.head, capacity, state.terms.extends);
        let mut priority = None;
        let decoded = decoder.decode_fields(self.bytes, capacity, |field| {
            if field.name == b"priority" {
                priority = Some(Priority::parse(field.value));
            }
            reader.field(field);
        });
        decoded.map_err(broken)?;
        let outcome = reader.finish(self.ends_stream, state.terms.accept_unsafe);
        if self.depends_on_itself {
            return Err(Fault::Connection(ErrorCode::ProtocolError));
        }
        let refused = if stream > limit.last {
            Some(ErrorCode::RefusedStream)
        } else if state.open() >= state.terms.max_streams {
            state.note_excess(stream);
            Some(ErrorCode::RefusedStream)
        } else if outcome.is_err() {
            Some(ErrorCode::ProtocolError)
        } else {
            None
        };
        if let Some(code) = refused {
            half.shrink();
            stream_memory::keep(Rc::clone(&cell));
            state.counts().malformed += 1;
            return Err(Fault::Stream(stream, code));
        }
        half.arrival = match outcome {
            Ok(Outcome::Request) => Arrival::Here { length: self.bytes.len(), alone: self.ends_stream },
            Ok(Outcome::Invalid) => Arrival::Refused { status: 400 },
            Ok(Outcome::TooMany) => {
                state.charge(conduct::of_many_fields(self.bytes.len()));
                Arrival::Refused { status: 400 }
            }
            Ok(Outcome::TooLarge) | Err(_) => Arrival::Refused { status: 431 },
        };
        half.has_head = true;
        half.ended = self.ends_stream;
        half.incoming.announced = match half.head.framing {
            Framing::Length(length) if !self.ends_stream => Some(length),
            _ => None,
        };
        if state.queue.has_announced() || priority.is_some() {
            let priority = state.queue.take_announced(stream).or(priority).unwrap_or_default();
            half.priority = priority;
            state.queue.note(priority);
        }
        state.begin(stream, Rc::clone(&cell));
        if !self.ends_stream {
            state.welcome_payload(stream, half);
        }
        Ok(Event::Opened(stream))
    }

    fn read_answer(&self, decoder: &mut Decoder, cell: &StreamCell, state: &State) -> Result<Event, Fault> {
        let half = &mut *cell.half();
        let is_next = half.arrival == Arrival::Nothing;
        let mut later = None;
        let head = if is_next { &mut half.head } else { later.insert(Head::new()) };
        let capacity = state.terms.capacity();
        let mut reader = ResponseReader::new(head, capacity);
        let longest = Capacity { fields: usize::MAX, ..capacity };
        decoder.decode_fields(self.bytes, longest, |field| reader.field(field)).map_err(broken)?;
        let malformed = reader.finish(self.ends_stream).is_err();
        let is_final = head.status() >= 200;
        if half.failed || half.ended || malformed {
            return self.refuse_answer(half, is_next);
        }
        half.has_head = is_final;
        half.ended = self.ends_stream;
        let arrival = Arrival::Here { length: self.bytes.len(), alone: self.ends_stream };
        if let Some(head) = later {
            if !half.add_head(head, arrival) {
                return Err(Fault::Stream(self.stream, ErrorCode::EnhanceYourCalm));
            }
        } else {
            half.arrival = arrival;
        }
        half.wake();
        Ok(Event::Progress)
    }

    /// Drops the head of an answer that is malformed, or received after its stream has ended.
    #[cold]
    fn refuse_answer(&self, half: &mut Half, is_next: bool) -> Result<Event, Fault> {
        if is_next {
            half.head.clear();
        }
        if half.failed {
            return Ok(Event::Progress);
        }
        if half.ended {
            return Err(Fault::Stream(self.stream, ErrorCode::StreamClosed));
        }
        if is_next {
            half.arrival = Arrival::Refused { status: 502 };
        }
        Err(Fault::Stream(self.stream, ErrorCode::ProtocolError))
    }

    /// Reads trailers, or a head where none is allowed.
    #[inline(never)]
    fn read_trailers(&self, decoder: &mut Decoder, state: &mut State) -> Result<Event, Fault> {
        let (mut trailers, mut malformed) = (Fields::new(), false);
        let mut capacity = state.terms.capacity();
        let longest = capacity.bytes;
        let decoded = decoder.decode(self.bytes, longest, |name, value| {
            malformed = malformed || read_trailers(&mut trailers, &mut capacity, name, value).is_err();
        });
        decoded.map_err(broken)?;
        let was_reset = state.was_reset(self.stream);
        let cell = state.stream(self.stream).filter(|cell| !(was_reset && cell.half().failed));
        let Some(cell) = cell else {
            return if was_reset { Ok(Event::Progress) } else { Err(Fault::Connection(ErrorCode::StreamClosed)) };
        };
        let half = &mut *cell.half();
        // A second head, or trailers without END_STREAM: such a client violates the protocol.
        if half.ended && state.role == Role::Server {
            return Err(Fault::Connection(ErrorCode::StreamClosed));
        }
        if !self.ends_stream && state.role == Role::Server || self.depends_on_itself {
            return Err(Fault::Connection(ErrorCode::ProtocolError));
        }
        if half.ended || half.failed {
            return Err(Fault::Stream(self.stream, ErrorCode::StreamClosed));
        }
        if malformed || !self.ends_stream {
            // In addition to the stream's fault, because a request was served for it.
            state.charge(2 * FAILED_STREAM);
            return Err(Fault::Stream(self.stream, ErrorCode::ProtocolError));
        }
        if !trailers.is_empty() {
            half.rare.get_or_insert_default().trailers = Some(Box::new(trailers));
        }
        end_message(self.stream, half, state)?;
        Ok(Event::Progress)
    }
}

fn broken(_: DecodeError) -> Fault {
    Fault::Connection(ErrorCode::CompressionError)
}

/// Handles the end of the peer's message.
pub(super) fn end_message(stream: u32, half: &mut Half, state: &mut State) -> Result<(), Fault> {
    if half.incoming.announced.is_some_and(|missing| missing > 0) {
        return Err(Fault::Stream(stream, ErrorCode::ProtocolError));
    }
    half.ended = true;
    half.wake();
    if half.draining.is_some() {
        state.forget_half(stream, half);
    }
    Ok(())
}
