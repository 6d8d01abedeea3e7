//! HTTP/2 frames (RFC 9113) of a connection, as the load generator and the origin read and write them: frames of the
//! connection itself are answered here. Must never interpret a message.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use base::Buffer;
use conn::transport::Transport;
use wire::h2::{
    Decoder, ErrorCode, FrameHeader, HEADER_LENGTH, INITIAL_WINDOW, Kind, MAX_FRAME_SIZE, MAX_WINDOW, PREFACE, Setting,
    flag, push_frame,
};

/// Maximum length of a string in a field block, in bytes.
const LONGEST: usize = 64 * 1024;
/// Maximum size of a field block, in bytes.
const LARGEST_BLOCK: usize = 256 * 1024;
/// Default size of the dynamic table (SETTINGS_HEADER_TABLE_SIZE), in bytes.
const TABLE: usize = 4096;
/// Maximum size of queued replies to PING and SETTINGS frames, in bytes: a peer that sends more and reads nothing is
/// disconnected.
const MOST_WAITING: usize = 4 << 20;

/// A received event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A head, or trailers: [`Frames::decode`] returns the fields.
    Head {
        stream: u32,
        /// END_STREAM is set.
        ends: bool,
    },
    /// DATA, including padding; the payload is dropped.
    Payload {
        stream: u32,
        /// Length, in bytes.
        length: usize,
        /// END_STREAM is set.
        ends: bool,
    },
    /// RST_STREAM.
    Reset {
        stream: u32,
        /// The peer has not processed the stream.
        refused: bool,
    },
    /// WINDOW_UPDATE of a stream.
    Window {
        /// The stream; 0 means all of them.
        stream: u32,
        /// Increment, in bytes.
        by: u32,
    },
    /// The peer's settings.
    Settings {
        /// Change of the send window of each open stream, in bytes.
        more: i64,
    },
    /// GOAWAY: no stream above `last` is processed.
    GoAway {
        /// The last processed stream.
        last: u32,
    },
}

/// Settings announced by this side.
#[derive(Debug, Clone, Copy)]
pub struct Announced {
    /// Initial receive window of a stream, in bytes.
    pub window: u32,
    /// Receive window of the connection, in bytes.
    pub shared: u32,
    /// Maximum number of concurrent streams; announced by servers only.
    pub streams: Option<u32>,
}

/// The frames of one connection, in both directions.
pub struct Frames {
    decoder: Decoder,
    /// The frame whose header was read, and the number of its bytes still to be read.
    frame: Option<(FrameHeader, usize)>,
    block: Vec<u8>,
    /// Stream of the incomplete field block, and whether it ends the message.
    coming: Option<(u32, bool)>,
    /// The peer's SETTINGS frame has been received.
    begun: bool,
    output: Vec<u8>,
    sent: usize,
    /// Send window of the connection, in bytes.
    window: i64,
    /// Initial send window of a stream, in bytes.
    stream_window: i64,
    /// The peer's maximum number of concurrent streams.
    peer_streams: u32,
    announced: Announced,
    /// Received payload for which no WINDOW_UPDATE was sent, in bytes.
    owed: u32,
}

impl Frames {
    /// Creates the client side: its preface is sent first.
    #[must_use]
    pub fn of_client(announced: Announced) -> Self {
        Self::new(announced, true)
    }

    /// Creates the server side; the client's preface must have been read.
    #[must_use]
    pub fn of_server(announced: Announced) -> Self {
        Self::new(announced, false)
    }

    fn new(announced: Announced, asks: bool) -> Self {
        let mut output = Vec::new();
        let mut settings = Setting::InitialWindowSize.bytes(announced.window).to_vec();
        if asks {
            output.extend_from_slice(PREFACE);
            settings.extend_from_slice(&Setting::EnablePush.bytes(0));
        }
        if let Some(streams) = announced.streams {
            settings.extend_from_slice(&Setting::MaxConcurrentStreams.bytes(streams));
        }
        push_frame(&mut output, Kind::Settings, 0, 0, &settings);
        if announced.shared > INITIAL_WINDOW {
            push_frame(&mut output, Kind::WindowUpdate, 0, 0, &(announced.shared - INITIAL_WINDOW).to_be_bytes());
        }
        Self {
            decoder: Decoder::new(TABLE),
            frame: None,
            block: Vec::new(),
            coming: None,
            begun: false,
            output,
            sent: 0,
            window: i64::from(INITIAL_WINDOW),
            stream_window: i64::from(INITIAL_WINDOW),
            peer_streams: u32::MAX,
            announced,
            owed: 0,
        }
    }

    /// Whether the peer's SETTINGS frame has been received.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns the peer's maximum number of concurrent streams.
    #[must_use]
    pub fn peer_streams(&self) -> u32 {
        self.peer_streams
    }

    /// Returns the current send window of the connection, in bytes.
    #[must_use]
    pub fn window(&self) -> i64 {
        self.window
    }

    /// Returns the initial send window of a stream, in bytes.
    #[must_use]
    pub fn stream_window(&self) -> i64 {
        self.stream_window
    }

    /// Returns the number of bytes queued for writing.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Parses the next event from the input; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The peer violates the protocol.
    pub fn next(&mut self, input: &mut Buffer) -> Result<Option<Event>, ErrorCode> {
        loop {
            let Some((frame, left)) = self.frame else {
                let Some(frame) = FrameHeader::parse(input.data()) else { return Ok(None) };
                self.judge(frame)?;
                input.consume(HEADER_LENGTH);
                self.frame = Some((frame, frame.length));
                continue;
            };
            if frame.kind == Kind::Data {
                let count = left.min(input.len());
                if count == 0 && left > 0 {
                    return Ok(None);
                }
                input.consume(count);
                self.frame = (count < left).then_some((frame, left - count));
                self.note_received(count);
                let ends = count == left && frame.has(flag::END_STREAM);
                return Ok(Some(Event::Payload { stream: frame.stream, length: count, ends }));
            }
            let Some(payload) = input.data().get(..left) else { return Ok(None) };
            self.frame = None;
            let event = self.whole(frame, payload)?;
            input.consume(left);
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    fn judge(&mut self, frame: FrameHeader) -> Result<(), ErrorCode> {
        if frame.length > MAX_FRAME_SIZE {
            return Err(ErrorCode::FrameSizeError);
        }
        let continues =
            self.coming.is_some_and(|(stream, _)| frame.kind == Kind::Continuation && frame.stream == stream);
        let misplaced = (self.coming.is_some() || frame.kind == Kind::Continuation) && !continues;
        let of_connection = matches!(frame.kind, Kind::Data | Kind::Headers) && frame.stream == 0;
        if misplaced || of_connection || !self.begun && frame.kind != Kind::Settings || self.waiting() > MOST_WAITING {
            return Err(ErrorCode::ProtocolError);
        }
        self.begun = true;
        Ok(())
    }

    /// Processes a complete frame other than DATA.
    fn whole(&mut self, frame: FrameHeader, payload: &[u8]) -> Result<Option<Event>, ErrorCode> {
        let number = || payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or(ErrorCode::FrameSizeError);
        match frame.kind {
            Kind::Headers => {
                self.block.clear();
                self.block.extend_from_slice(unwrap(frame, payload)?);
                self.coming = Some((frame.stream, frame.has(flag::END_STREAM)));
                Ok(self.end_block(frame))
            }
            Kind::Continuation => {
                self.block.extend_from_slice(payload);
                if self.block.len() > LARGEST_BLOCK {
                    return Err(ErrorCode::EnhanceYourCalm);
                }
                Ok(self.end_block(frame))
            }
            Kind::Settings if frame.has(flag::ACK) => Ok(None),
            Kind::Settings => {
                let before = self.stream_window;
                payload.chunks_exact(6).try_for_each(|setting| self.apply(setting))?;
                push_frame(&mut self.output, Kind::Settings, flag::ACK, 0, &[]);
                Ok(Some(Event::Settings { more: self.stream_window - before }))
            }
            Kind::Ping if !frame.has(flag::ACK) => {
                push_frame(&mut self.output, Kind::Ping, flag::ACK, 0, payload);
                Ok(None)
            }
            Kind::RstStream => {
                Ok(Some(Event::Reset { stream: frame.stream, refused: number()? == ErrorCode::RefusedStream as u32 }))
            }
            Kind::WindowUpdate => {
                let by = number()? & MAX_WINDOW;
                if frame.stream == 0 {
                    self.window += i64::from(by);
                }
                Ok(Some(Event::Window { stream: frame.stream, by }))
            }
            Kind::GoAway => Ok(Some(Event::GoAway { last: number()? & MAX_WINDOW })),
            Kind::PushPromise => Err(ErrorCode::ProtocolError),
            _ => Ok(None),
        }
    }

    fn end_block(&mut self, frame: FrameHeader) -> Option<Event> {
        if !frame.has(flag::END_HEADERS) {
            return None;
        }
        self.coming.take().map(|(stream, ends)| Event::Head { stream, ends })
    }

    fn apply(&mut self, setting: &[u8]) -> Result<(), ErrorCode> {
        let [high, low, value @ ..] = setting else { return Ok(()) };
        let value = value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        match Setting::of(u16::from_be_bytes([*high, *low])) {
            Some(Setting::InitialWindowSize) if value > MAX_WINDOW => return Err(ErrorCode::FlowControlError),
            Some(Setting::InitialWindowSize) => self.stream_window = i64::from(value),
            Some(Setting::MaxConcurrentStreams) => self.peer_streams = value,
            _ => {}
        }
        Ok(())
    }

    /// Decodes the fields of the received head. Each head must be decoded, even if its stream is ignored.
    ///
    /// # Errors
    /// The field block is invalid.
    pub fn decode(&mut self, field: impl FnMut(&[u8], &[u8])) -> Result<(), ErrorCode> {
        self.decoder.decode(&self.block, LONGEST, field).map_err(|_| ErrorCode::CompressionError)
    }

    fn note_received(&mut self, bytes: usize) {
        self.owed += bytes as u32;
        if self.owed >= self.announced.shared.max(INITIAL_WINDOW) / 2 {
            let owed = std::mem::take(&mut self.owed);
            self.push_window(0, owed);
        }
    }

    /// Records received payload of an open stream. `owed` is the payload so far for which no WINDOW_UPDATE was sent.
    pub fn note_taken(&mut self, stream: u32, bytes: usize, owed: &mut u32) {
        *owed += bytes as u32;
        if *owed >= self.announced.window / 2 {
            self.push_window(stream, std::mem::take(owed));
        }
    }

    fn push_window(&mut self, stream: u32, by: u32) {
        push_frame(&mut self.output, Kind::WindowUpdate, 0, stream, &by.to_be_bytes());
    }

    /// Queues the frames of a head, and sets their stream number.
    pub fn push_head(&mut self, stream: u32, frames: &[u8]) {
        let mut at = self.output.len();
        self.output.extend_from_slice(frames);
        while let Some(header) = self.output.get(at..).and_then(FrameHeader::parse) {
            if let Some(place) = self.output.get_mut(at + 5..at + HEADER_LENGTH) {
                place.copy_from_slice(&stream.to_be_bytes());
            }
            at += HEADER_LENGTH + header.length;
        }
    }

    /// Returns the output buffer, for frames of a head that already have their stream number.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Queues a DATA frame of at most [`MAX_FRAME_SIZE`] bytes, and counts it against the connection's window.
    pub fn push_payload(&mut self, stream: u32, payload: &[u8], ends: bool) {
        let flags = if ends { flag::END_STREAM } else { 0 };
        push_frame(&mut self.output, Kind::Data, flags, stream, payload);
        self.window -= payload.len() as i64;
    }

    /// Queues RST_STREAM.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        push_frame(&mut self.output, Kind::RstStream, 0, stream, &code.bytes());
    }

    /// Queues GOAWAY: no stream above `last` is processed.
    pub fn go_away(&mut self, last: u32, code: ErrorCode) {
        let [one, two, three, four] = last.to_be_bytes();
        let [five, six, seven, eight] = code.bytes();
        push_frame(&mut self.output, Kind::GoAway, 0, 0, &[one, two, three, four, five, six, seven, eight]);
    }

    /// Writes queued bytes. Ready when all are written.
    ///
    /// # Errors
    /// Those of the transport.
    pub fn poll_flush(&mut self, context: &mut Context<'_>, transport: &mut Transport) -> Poll<io::Result<()>> {
        while self.waiting() > 0 {
            let rest = self.output.get(self.sent..).unwrap_or_default();
            self.sent += ready!(transport.poll_write_slices(context, &[IoSlice::new(rest)], false))?;
        }
        self.sent = 0;
        self.output.clear();
        Poll::Ready(Ok(()))
    }

    /// Frees the buffers if nothing is queued.
    pub fn rest(&mut self) {
        if self.output.is_empty() {
            self.output = Vec::new();
            self.block = Vec::new();
        }
    }
}

/// Returns the field block of a HEADERS frame, without padding and priority.
fn unwrap(frame: FrameHeader, payload: &[u8]) -> Result<&[u8], ErrorCode> {
    let mut block = payload;
    if frame.has(flag::PADDED) {
        let (padding, rest) = block.split_first().ok_or(ErrorCode::FrameSizeError)?;
        let length = rest.len().checked_sub(usize::from(*padding)).ok_or(ErrorCode::ProtocolError)?;
        block = rest.get(..length).unwrap_or_default();
    }
    if frame.has(flag::PRIORITY) {
        block = block.get(5..).ok_or(ErrorCode::FrameSizeError)?;
    }
    Ok(block)
}

/// Reads more bytes into the input, which has no buffer while it is empty and nothing is received; 0 means the end.
///
/// # Errors
/// Those of the transport.
pub fn poll_read(context: &mut Context<'_>, transport: &mut Transport, input: &mut Buffer) -> Poll<io::Result<usize>> {
    if input.capacity() == 0 {
        ready!(transport.poll_readable(context));
        *input = rt::bulk_buffer();
    }
    input.compact();
    let read = transport.poll_read(context, input);
    if read.is_pending() && input.is_empty() {
        *input = Buffer::empty();
    }
    read
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const ANNOUNCED: Announced = Announced { window: 100, shared: 200_000, streams: Some(7) };

    fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_frame(&mut bytes, kind, flags, stream, payload);
        bytes
    }

    /// Returns the events of bytes that are received in pieces of that size.
    fn events(bytes: &[u8], piece: usize) -> Result<Vec<Event>, ErrorCode> {
        let mut frames = Frames::of_server(ANNOUNCED);
        let mut input = Buffer::with_capacity(64 * 1024);
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            input.compact();
            assert!(input.push(piece));
            while let Some(event) = frames.next(&mut input)? {
                if matches!(event, Event::Head { .. }) {
                    frames.decode(|_, _| {})?;
                }
                found.push(event);
            }
        }
        Ok(found)
    }

    #[test]
    fn frames_are_what_they_are_in_any_pieces() {
        let settings = [Setting::InitialWindowSize.bytes(70_000), Setting::MaxConcurrentStreams.bytes(3)].concat();
        let bytes = [
            frame(Kind::Settings, 0, 0, &settings),
            frame(Kind::Headers, 0, 1, &[0x82]),
            frame(Kind::Continuation, flag::END_HEADERS, 1, &[0x84]),
            // Padded by two bytes, with a priority.
            frame(
                Kind::Headers,
                flag::END_HEADERS | flag::END_STREAM | flag::PADDED | flag::PRIORITY,
                3,
                &[2, 0, 0, 0, 0, 9, 0x82, 0, 0],
            ),
            frame(Kind::Data, flag::END_STREAM, 1, b""),
            frame(Kind::Unknown, 0, 1, b"anything"),
            frame(Kind::RstStream, 0, 1, &[0, 0, 0, 7]),
            frame(Kind::WindowUpdate, 0, 3, &[0, 0, 1, 0]),
            frame(Kind::GoAway, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]),
        ]
        .concat();
        let expected = [
            Event::Settings { more: 70_000 - 65_535 },
            Event::Head { stream: 1, ends: false },
            Event::Head { stream: 3, ends: true },
            Event::Payload { stream: 1, length: 0, ends: true },
            Event::Reset { stream: 1, refused: true },
            Event::Window { stream: 3, by: 256 },
            Event::GoAway { last: 3 },
        ];
        for piece in [1, 2, 9, 10, usize::MAX] {
            assert_eq!(events(&bytes, piece).as_deref(), Ok(&expected[..]), "in pieces of {piece}");
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_refused() {
        let settings = frame(Kind::Settings, 0, 0, &[]);
        let behind = |more: Vec<u8>| [settings.clone(), more].concat();
        let open = frame(Kind::Headers, 0, 1, &[0x82]);
        for (bytes, code) in [
            (frame(Kind::Ping, 0, 0, &[0; 8]), ErrorCode::ProtocolError),
            (behind(frame(Kind::Data, 0, 0, &[0])), ErrorCode::ProtocolError),
            (behind(frame(Kind::Data, 0, 1, &[0; MAX_FRAME_SIZE + 1])), ErrorCode::FrameSizeError),
            (behind(frame(Kind::Continuation, 0, 1, &[0x82])), ErrorCode::ProtocolError),
            (behind([open.clone(), frame(Kind::Ping, 0, 0, &[0; 8])].concat()), ErrorCode::ProtocolError),
            (behind([open, frame(Kind::Continuation, 0, 3, &[])].concat()), ErrorCode::ProtocolError),
            (behind(frame(Kind::Headers, flag::PADDED, 1, &[9, 0x82])), ErrorCode::ProtocolError),
            (behind(frame(Kind::Headers, flag::END_HEADERS, 1, &[0x80])), ErrorCode::CompressionError),
            (behind(frame(Kind::PushPromise, 0, 1, &[0; 4])), ErrorCode::ProtocolError),
            (behind(frame(Kind::WindowUpdate, 0, 1, &[0; 3])), ErrorCode::FrameSizeError),
        ] {
            assert_eq!(events(&bytes, usize::MAX), Err(code), "{bytes:x?}");
        }
    }

    #[test]
    fn windows_are_given_back_when_half_of_them_is_used() {
        let mut frames = Frames::of_server(ANNOUNCED);
        frames.output.clear();
        let mut owed = 0;
        frames.note_taken(5, 49, &mut owed);
        assert_eq!((owed, frames.waiting()), (49, 0));
        frames.note_taken(5, 1, &mut owed);
        assert_eq!((owed, &frames.output[..]), (0, &frame(Kind::WindowUpdate, 0, 5, &[0, 0, 0, 50])[..]));
        frames.output.clear();
        frames.note_received(99_999);
        assert_eq!(frames.waiting(), 0);
        frames.note_received(1);
        assert_eq!(frames.output, frame(Kind::WindowUpdate, 0, 0, &[0, 1, 0x86, 0xa0]));
    }
}
