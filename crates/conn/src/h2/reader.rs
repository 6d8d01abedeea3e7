//! Reads a peer's frames, piece by piece: payload is passed to its stream at once, blocks and small frames are
//! assembled first. Owns the state of the frame being received. Must never write.

use base::buffer::Buffer;
use wire::h2::{Decoder, ErrorCode, FrameHeader, HEADER_LENGTH, Kind, MAX_FRAME_SIZE, MAX_WINDOW, Setting, flag};
use wire::http::priority::Priority;

use super::Role;
use super::block::{self, Block, Whole};
use super::state::{Fault, State};
use super::step::{Event, Limit};
use super::stream_memory;
use crate::conduct::EARNED;

/// The most bytes of frames other than payload and heads that are read.
const MOST_CONTROL: usize = 1024;

/// The least window in bytes that is worth a frame. Smaller ones are paid for by the payload sent.
const LEAST_WINDOW: u32 = 1024;

/// The most frames of a head.
const MOST_PIECES: u32 = 32;

/// Size of the dynamic table before it is set (RFC 9113, section 6.5.2).
const TABLE_SIZE: u32 = 4096;

/// Contents of the PING after a GOAWAY: its acknowledgement shows that everything which the peer sent before it
/// received the GOAWAY has arrived.
pub(super) const DEPARTING: &[u8; 8] = b"departed";

pub(super) struct Reader {
    decoder: Decoder,
    /// The frame whose header was read, and the number of its bytes not handled yet.
    frame: Option<(FrameHeader, usize)>,
    /// Whether the frame was not judged yet: it is judged once, however often its bytes are waited for.
    unjudged: bool,
    /// Padding at the end of the frame, after its length was read.
    padding: Option<u8>,
    /// A block of several pieces; nearly all are contained in one frame and are never stored.
    block: Option<Box<Block>>,
    /// Whether the peer has sent its SETTINGS.
    begun: bool,
    /// No stream above it is accepted.
    pub(super) limit: Limit,
}

impl Reader {
    pub(super) fn new(table_size: usize) -> Self {
        Self {
            // A peer may use the protocol's default until it has read our settings.
            decoder: Decoder::new(table_size.max(TABLE_SIZE as usize)),
            frame: None,
            unjudged: false,
            padding: None,
            block: None,
            begun: false,
            limit: Limit { last: u32::MAX, is_final: false },
        }
    }

    /// Handles the next frame of the input, or a piece of it.
    #[inline]
    pub(super) fn take(&mut self, input: &mut Buffer, state: &mut State) -> Result<Event, Fault> {
        if self.frame.is_none()
            && self.begun
            && self.block.is_none()
            && let Some(frame) = FrameHeader::parse(input.data())
            && frame.length <= MAX_FRAME_SIZE
            && frame.stream != 0
            && let Some(payload) = input.data().get(HEADER_LENGTH..HEADER_LENGTH + frame.length)
        {
            // A whole frame, as nearly all are.
            match frame.kind {
                Kind::Headers if frame.has(flag::END_HEADERS) => {
                    count(frame, state);
                    let event = self.take_whole_block(frame, payload, state);
                    input.consume(HEADER_LENGTH + frame.length);
                    return event;
                }
                Kind::Data if !frame.has(flag::PADDED) && is_plain_payload(frame, state) => {
                    count(frame, state);
                    state.note_received(frame.length);
                    let event = take_plain_payload(frame, payload, state);
                    input.consume(HEADER_LENGTH + frame.length);
                    return event;
                }
                _ => {}
            }
        }
        self.take_piece(input, state)
    }

    /// Reads a block that is contained in one frame.
    #[inline]
    fn take_whole_block(&mut self, frame: FrameHeader, payload: &[u8], state: &mut State) -> Result<Event, Fault> {
        let event = Whole::of(frame, payload).and_then(|block| block.read(&mut self.decoder, self.limit, state));
        if matches!(event, Err(Fault::Connection(_))) {
            state.counts().fatal += 1;
        }
        event
    }

    /// Handles the next frame of the input, or a piece of it, whatever it is.
    #[inline(never)]
    fn take_piece(&mut self, input: &mut Buffer, state: &mut State) -> Result<Event, Fault> {
        let (frame, left) = match self.frame {
            Some(known) => known,
            None => match self.take_header(input, state)? {
                Some(known) => known,
                None => return Ok(Event::More),
            },
        };
        match frame.kind {
            Kind::Data => self.take_payload(frame, left, input, state),
            Kind::Headers | Kind::Continuation => {
                let taken = self.take_block(frame, left, input, state);
                if matches!(taken, Err(Fault::Connection(_))) {
                    state.counts().fatal += 1;
                }
                taken
            }
            Kind::GoAway if state.role == Role::Client && left == frame.length => {
                self.take_departure(frame, input, state)
            }
            Kind::Unknown | Kind::PushPromise | Kind::GoAway if left > 0 || frame.kind == Kind::Unknown => {
                self.skip(frame, left, input)
            }
            _ => {
                if input.len() < left {
                    return Ok(Event::More);
                }
                self.frame = None;
                let event = control(frame, &input.data()[..left], state);
                input.consume(left);
                event
            }
        }
    }

    /// Reads the header of a frame, and refuses one that is not allowed here.
    fn take_header(&mut self, input: &mut Buffer, state: &mut State) -> Result<Option<(FrameHeader, usize)>, Fault> {
        let Some(frame) = FrameHeader::parse(input.data()) else { return Ok(None) };
        input.consume(HEADER_LENGTH);
        let protocol = Err(Fault::Connection(ErrorCode::ProtocolError));
        if !self.begun && (frame.kind != Kind::Settings || frame.has(flag::ACK)) {
            return protocol;
        }
        self.begun = true;
        count(frame, state);
        let of_connection = matches!(frame.kind, Kind::Settings | Kind::Ping | Kind::GoAway | Kind::PriorityUpdate);
        let of_either = matches!(frame.kind, Kind::WindowUpdate | Kind::Unknown);
        let is_servers =
            frame.kind == Kind::PushPromise || frame.kind == Kind::PriorityUpdate && state.role == Role::Client;
        if !of_either && of_connection != (frame.stream == 0) || is_servers {
            return protocol;
        }
        let continues = self.block.as_deref().map(Block::stream);
        if continues.is_some_and(|stream| frame.kind != Kind::Continuation || frame.stream != stream)
            || continues.is_none() && frame.kind == Kind::Continuation
        {
            return protocol;
        }
        let fits = match frame.kind {
            Kind::Settings => frame.length % 6 == 0 && frame.length <= MOST_CONTROL,
            Kind::Ping => frame.length == 8,
            Kind::WindowUpdate | Kind::RstStream => frame.length == 4,
            // A longer frame contains no known parameters.
            Kind::PriorityUpdate if (MOST_CONTROL..=MAX_FRAME_SIZE).contains(&frame.length) => {
                self.drop_frame(frame);
                return Ok(self.frame);
            }
            Kind::PriorityUpdate => (4..MOST_CONTROL).contains(&frame.length),
            Kind::GoAway => frame.length >= 8 && frame.length <= MAX_FRAME_SIZE,
            Kind::Priority => frame.length == 5,
            _ => frame.length <= MAX_FRAME_SIZE,
        };
        if !fits {
            return Err(Fault::Connection(ErrorCode::FrameSizeError));
        }
        self.padding = None;
        self.unjudged = true;
        self.frame = Some((frame, frame.length));
        Ok(self.frame)
    }

    /// Skips the unused rest of a frame. A client's GOAWAY concerns streams that this side would begin.
    fn skip(&mut self, frame: FrameHeader, left: usize, input: &mut Buffer) -> Result<Event, Fault> {
        let count = left.min(input.len());
        input.consume(count);
        if count < left {
            self.frame = Some((frame, left - count));
            return Ok(if count > 0 { Event::Progress } else { Event::More });
        }
        self.frame = None;
        Ok(Event::Progress)
    }

    /// Handles a server's GOAWAY: no more requests can begin.
    fn take_departure(&mut self, frame: FrameHeader, input: &mut Buffer, state: &mut State) -> Result<Event, Fault> {
        let Some(last) = input.data().get(..8).and_then(<[u8]>::first_chunk) else { return Ok(Event::More) };
        state.go_away(u32::from_be_bytes(*last) & MAX_WINDOW);
        input.consume(8);
        self.frame = Some((FrameHeader { kind: Kind::Unknown, ..frame }, frame.length - 8));
        Ok(Event::Progress)
    }

    /// Passes payload to its stream.
    fn take_payload(
        &mut self,
        frame: FrameHeader,
        left: usize,
        input: &mut Buffer,
        state: &mut State,
    ) -> Result<Event, Fault> {
        if std::mem::take(&mut self.unjudged) {
            self.judge_payload(frame, state)?;
            if self.frame.is_some_and(|(frame, _)| frame.kind != Kind::Data) {
                return Ok(Event::Progress);
            }
        }
        let mut left = left;
        if self.padding.is_none() {
            let mut length = 0;
            if frame.has(flag::PADDED) {
                if left == 0 {
                    return Err(Fault::Connection(ErrorCode::FrameSizeError));
                }
                let Some(first) = input.data().first().copied() else { return Ok(Event::More) };
                length = first;
                if usize::from(length) >= left {
                    return Err(Fault::Connection(ErrorCode::ProtocolError));
                }
                input.consume(1);
                left -= 1;
            }
            self.padding = Some(length);
            let padding = usize::from(length);
            // Bytes that are not payload are credited to the window at once.
            let overhead = padding + usize::from(frame.has(flag::PADDED));
            if overhead > 0 {
                if let Some(cell) = state.stream(frame.stream) {
                    state.note_taken(frame.stream, &mut cell.half(), overhead);
                }
                state.note_payload(left - padding, frame.has(flag::END_STREAM));
            }
        }
        let padding = usize::from(self.padding.unwrap_or(0));
        let count = left.min(input.len());
        let payload = count.min(left.saturating_sub(padding));
        if count == 0 && left > 0 {
            self.frame = Some((frame, left));
            return Ok(Event::More);
        }
        let rest = left.saturating_sub(padding) as u64;
        if let Err(fault) = pass_payload(frame.stream, &input.data()[..payload], rest, state) {
            self.frame = Some((FrameHeader { kind: Kind::Unknown, ..frame }, left));
            return Err(fault);
        }
        input.consume(count);
        left -= count;
        self.frame = (left > 0).then_some((frame, left));
        if left == 0
            && frame.has(flag::END_STREAM)
            && let Some(cell) = state.stream(frame.stream)
        {
            block::end_message(frame.stream, &mut cell.half(), state)?;
        }
        Ok(Event::Progress)
    }

    /// Checks whether the stream may receive that payload, by its state and its windows.
    fn judge_payload(&mut self, frame: FrameHeader, state: &mut State) -> Result<(), Fault> {
        state.note_received(frame.length);
        let (role, newest, was_reset) = (state.role, state.newest, state.was_reset(frame.stream));
        let Some(cell) = state.stream(frame.stream) else {
            return match frame.stream {
                stream if stream > newest || stream.is_multiple_of(2) => {
                    Err(Fault::Connection(ErrorCode::ProtocolError))
                }
                _ if was_reset => {
                    self.drop_payload(frame, state);
                    Ok(())
                }
                _ => Err(Fault::Connection(ErrorCode::StreamClosed)),
            };
        };
        let half = &mut *cell.half();
        if half.failed && was_reset {
            self.drop_payload(frame, state);
            return Ok(());
        }
        if half.ended || half.failed {
            self.drop_frame(frame);
            return Err(Fault::Stream(frame.stream, ErrorCode::StreamClosed));
        }
        if role == Role::Client && !half.has_head {
            self.drop_frame(frame);
            return Err(Fault::Stream(frame.stream, ErrorCode::ProtocolError));
        }
        half.credit -= frame.length as i64;
        if half.credit < 0 {
            self.drop_frame(frame);
            return Err(Fault::Stream(frame.stream, ErrorCode::FlowControlError));
        }
        Ok(())
    }

    /// Drops payload of a stream that was reset. Padding counts as a frame without use.
    fn drop_payload(&mut self, frame: FrameHeader, state: &mut State) {
        if frame.has(flag::PADDED) {
            state.note_idle_frame();
        }
        self.drop_frame(frame);
    }

    /// Skips the rest of a frame.
    fn drop_frame(&mut self, frame: FrameHeader) {
        self.frame = Some((FrameHeader { kind: Kind::Unknown, ..frame }, frame.length));
    }

    /// Appends to a block, and reads it once it is complete.
    fn take_block(
        &mut self,
        frame: FrameHeader,
        left: usize,
        input: &mut Buffer,
        state: &mut State,
    ) -> Result<Event, Fault> {
        if std::mem::take(&mut self.unjudged) {
            self.begin_piece(frame)?;
        }
        let Some(block) = &mut self.block else { return Err(Fault::Connection(ErrorCode::InternalError)) };
        let largest = state.terms.max_head.saturating_mul(2);
        let count = left.min(input.len());
        if block.bytes.len() + count > largest.saturating_add(MAX_FRAME_SIZE) {
            return Err(Fault::Connection(ErrorCode::EnhanceYourCalm));
        }
        block.bytes.extend_from_slice(&input.data()[..count]);
        input.consume(count);
        if count < left {
            self.frame = Some((frame, left - count));
            return Ok(if count > 0 { Event::Progress } else { Event::More });
        }
        self.frame = None;
        if frame.kind == Kind::Headers {
            block.unwrap(frame)?;
        }
        if !frame.has(flag::END_HEADERS) {
            return if block.bytes.len() > largest {
                Err(Fault::Connection(ErrorCode::EnhanceYourCalm))
            } else {
                Ok(Event::Progress)
            };
        }
        let Some(block) = self.block.take() else { return Ok(Event::Progress) };
        let event = block.whole().read(&mut self.decoder, self.limit, state);
        stream_memory::keep_bytes(block.bytes);
        event
    }

    /// Bytes of memory that it holds.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.bytes.capacity()) + self.decoder.table_size()
    }

    fn begin_piece(&mut self, frame: FrameHeader) -> Result<(), Fault> {
        if frame.kind == Kind::Headers && self.block.is_none() {
            self.block = Some(Box::new(Block::of(frame, stream_memory::bytes())));
        }
        if let Some(block) = &mut self.block {
            block.pieces += 1;
            if block.pieces > MOST_PIECES {
                return Err(Fault::Connection(ErrorCode::EnhanceYourCalm));
            }
        }
        Ok(())
    }
}

/// Passes a piece of a frame's payload to its stream; `rest` bytes of the frame's payload were not handled before it.
///
/// # Errors
/// The frame has more payload than was announced. It is dropped whole: otherwise its message would seem to be complete.
fn pass_payload(stream: u32, payload: &[u8], rest: u64, state: &mut State) -> Result<(), Fault> {
    let Some(cell) = state.stream(stream) else { return Ok(()) };
    let half = &mut *cell.half();
    if half.incoming.announced.is_some_and(|announced| rest > announced) {
        return Err(Fault::Stream(stream, ErrorCode::ProtocolError));
    }
    half.incoming.announced = half.incoming.announced.map(|announced| announced - payload.len() as u64);
    let is_served = half.draining.is_none();
    if is_served {
        half.incoming.push(payload);
        half.incoming.progress.note(payload.len(), payload.len() as u64 == rest);
    }
    if !payload.is_empty() {
        half.wake();
    }
    if !is_served && state.drain(stream, half, payload.len()) {
        state.forget_half(stream, half);
    }
    Ok(())
}

/// Whether a frame of payload is of a stream that receives it whole: nothing about it has to be refused or dropped.
#[inline]
fn is_plain_payload(frame: FrameHeader, state: &State) -> bool {
    let Some(cell) = state.find(frame.stream) else { return false };
    let half = cell.half();
    let is_expected = half.incoming.announced.is_none_or(|announced| frame.length as u64 <= announced);
    let is_open = !half.ended && !half.failed && (state.role == Role::Server || half.has_head);
    is_open && is_expected && half.draining.is_none() && frame.length as i64 <= half.credit
}

/// Passes on a whole frame of payload ([`is_plain_payload`]).
#[inline]
fn take_plain_payload(frame: FrameHeader, payload: &[u8], state: &State) -> Result<Event, Fault> {
    let Some(cell) = state.find(frame.stream) else { return Ok(Event::Progress) };
    let half = &mut *cell.half();
    half.credit -= payload.len() as i64;
    half.incoming.announced = half.incoming.announced.map(|announced| announced - payload.len() as u64);
    half.incoming.push(payload);
    half.incoming.progress.note(payload.len(), true);
    if frame.has(flag::END_STREAM) {
        if half.incoming.announced.is_some_and(|missing| missing > 0) {
            half.wake();
            return Err(Fault::Stream(frame.stream, ErrorCode::ProtocolError));
        }
        half.ended = true;
    }
    // Empty payload lets no task go on.
    if half.ended || !payload.is_empty() {
        half.wake();
    }
    Ok(Event::Progress)
}

/// Handles a small frame, which is complete.
fn control(frame: FrameHeader, bytes: &[u8], state: &mut State) -> Result<Event, Fault> {
    let number = bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let is_idle = frame.stream > state.newest || frame.stream != 0 && frame.stream.is_multiple_of(2);
    match frame.kind {
        Kind::Settings if frame.has(flag::ACK) && frame.length > 0 => {
            return Err(Fault::Connection(ErrorCode::FrameSizeError));
        }
        Kind::Settings if frame.has(flag::ACK) => state.note_read_settings(),
        Kind::Settings => {
            let mut window = None;
            for setting in bytes.chunks_exact(6) {
                apply(setting, state, &mut window)?;
            }
            // Once per frame, because every stream is changed.
            if let Some(window) = window {
                state.set_stream_window(window)?;
            }
            state.note_settings();
            state.push(Kind::Settings, flag::ACK, 0, &[]);
        }
        Kind::Ping if !frame.has(flag::ACK) => state.push(Kind::Ping, flag::ACK, 0, bytes),
        Kind::Ping if bytes == DEPARTING => state.closing.is_known = true,
        Kind::Ping if std::mem::take(&mut state.life.pinged) => state.life.pongs = state.life.pongs.wrapping_add(1),
        Kind::WindowUpdate | Kind::RstStream if is_idle => return Err(Fault::Connection(ErrorCode::ProtocolError)),
        Kind::WindowUpdate => match (number & MAX_WINDOW, frame.stream) {
            (0, 0) => return Err(Fault::Connection(ErrorCode::ProtocolError)),
            (0, stream) => return Err(Fault::Stream(stream, ErrorCode::ProtocolError)),
            (by, stream) => {
                if by < LEAST_WINDOW {
                    state.note_idle_frame();
                }
                state.grow(stream, by)?;
            }
        },
        Kind::RstStream => {
            state.note_cancel(frame.stream);
            state.abort(frame.stream, number == ErrorCode::RefusedStream as u32);
        }
        // This side never pushes, so its streams cannot get a priority.
        Kind::PriorityUpdate if (number & MAX_WINDOW).is_multiple_of(2) => {
            return Err(Fault::Connection(ErrorCode::ProtocolError));
        }
        Kind::PriorityUpdate => state.prioritize(number & MAX_WINDOW, Priority::parse(&bytes[4..])),
        Kind::Priority if number & MAX_WINDOW == frame.stream => {
            return Err(Fault::Connection(ErrorCode::ProtocolError));
        }
        _ => {}
    }
    Ok(Event::Progress)
}

/// Counts a received frame.
#[inline]
fn count(frame: FrameHeader, state: &mut State) {
    let counts = state.counts();
    match frame.kind {
        Kind::Headers => {
            counts.headers += 1;
            state.conduct.earn(EARNED);
        }
        Kind::Data => {
            counts.data += 1;
            // The length of the padding is not known yet.
            if !frame.has(flag::PADDED) {
                state.note_payload(frame.length, frame.has(flag::END_STREAM));
            }
        }
        Kind::RstStream => counts.resets += 1,
        Kind::GoAway => {
            counts.departures += 1;
            state.note_idle_frame();
        }
        Kind::Settings => {
            counts.settings += 1;
            state.note_idle_frame();
        }
        Kind::Ping | Kind::Priority | Kind::PriorityUpdate | Kind::Unknown => state.note_idle_frame(),
        Kind::Continuation | Kind::WindowUpdate | Kind::PushPromise => {}
    }
}

/// Applies a setting.
fn apply(setting: &[u8], state: &mut State, window: &mut Option<u32>) -> Result<(), Fault> {
    let [high, low, value @ ..] = setting else { return Ok(()) };
    let value = value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let protocol = Err(Fault::Connection(ErrorCode::ProtocolError));
    match Setting::of(u16::from_be_bytes([*high, *low])) {
        Some(Setting::EnablePush | Setting::EnableConnectProtocol) if value > 1 => protocol,
        Some(Setting::MaxFrameSize) if !(MAX_FRAME_SIZE as u32..1 << 24).contains(&value) => protocol,
        Some(Setting::InitialWindowSize) if value > MAX_WINDOW => Err(Fault::Connection(ErrorCode::FlowControlError)),
        Some(Setting::InitialWindowSize) => {
            *window = Some(value);
            Ok(())
        }
        Some(Setting::HeaderTableSize) => {
            state.peer.owes_table_size |= value < TABLE_SIZE;
            Ok(())
        }
        Some(Setting::EnableConnectProtocol) => {
            state.peer.extends = Some(value == 1);
            Ok(())
        }
        Some(Setting::MaxConcurrentStreams) => {
            state.peer.streams = value;
            Ok(())
        }
        _ => Ok(()),
    }
}
