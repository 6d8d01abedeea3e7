//! The frames of a request stream, in the order of a message (RFC 9114, section 4.1). Owns an incomplete HEADERS frame;
//! must never decode a field section.

use super::Role;
use super::error::{Error, ErrorCode};
use super::frame::{self, FrameHeader, FrameStream, FrameType, HeaderReader};
use super::webtransport;

/// Reads the frames of one request stream.
#[derive(Debug)]
pub struct MessageReader {
    header: HeaderReader,
    /// The missing bytes of the current payload.
    left: u64,
    payload: Payload,
    stage: Stage,
    role: Role,
    /// Maximum length of a HEADERS payload in bytes.
    longest: usize,
    /// The received part of a HEADERS payload that was split.
    section: Vec<u8>,
    /// Whether the stream may be one of a WebTransport session. `None`: there are no such streams.
    signal: Option<bool>,
}

/// The payload being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    /// None: a header is next.
    Nothing,
    Data,
    Head,
    Trailers,
    Skipped,
}

/// The received parts of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing, or only interim responses.
    Start,
    /// The head; DATA and trailers may follow.
    Body,
    /// The trailers, which are the last part.
    End,
    /// The head of CONNECT: DATA may follow.
    Tunnel,
}

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum MessagePart<'a> {
    /// The field section of a head.
    Head(&'a [u8]),
    /// The field section of the trailers.
    Trailers(&'a [u8]),
    /// The header of a HEADERS frame that is too long; its payload is skipped.
    TooLarge { length: u64 },
    /// A part of a DATA payload; empty only for an empty frame.
    Data(&'a [u8]),
    /// The header of a frame of a reserved or unknown type; its payload is skipped.
    Skipped { length: u64 },
    /// The stream is no message, but one of a WebTransport session.
    StreamOf { session: u64 },
}

impl MessageReader {
    /// Creates a reader of requests (the role of a server) or responses (that of a client), whose field sections have at
    /// most `longest` bytes.
    pub fn new(role: Role, longest: usize) -> Self {
        let (header, payload, stage) = (HeaderReader::default(), Payload::Nothing, Stage::Start);
        Self { header, left: 0, payload, stage, role, longest, section: Vec::new(), signal: None }
    }

    /// As [`Self::new`]. `recognizes`: the stream may be one of a WebTransport session, which begins with a signal.
    pub fn with_sessions(role: Role, longest: usize, recognizes: bool) -> Self {
        Self { signal: recognizes.then_some(true), ..Self::new(role, longest) }
    }

    /// Returns the next part, and advances `input`. `None`: all input is consumed.
    ///
    /// # Errors
    /// The frame, or its place in the message, violates RFC 9114.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Result<Option<MessagePart<'a>>, Error> {
        loop {
            match self.payload {
                Payload::Nothing => {
                    if !self.section.is_empty() {
                        self.section = Vec::new();
                    }
                    let Some(header) = self.header.read(input) else { return Ok(None) };
                    if let Some(part) = self.begin(header)? {
                        return Ok(Some(part));
                    }
                }
                Payload::Data => {
                    let data = frame::take(input, &mut self.left);
                    if self.left == 0 {
                        self.payload = Payload::Nothing;
                    }
                    return Ok(Some(MessagePart::Data(data)).filter(|_| !data.is_empty()));
                }
                Payload::Skipped => {
                    frame::take(input, &mut self.left);
                    if self.left > 0 {
                        return Ok(None);
                    }
                    self.payload = Payload::Nothing;
                }
                Payload::Head | Payload::Trailers => {
                    let piece = frame::take(input, &mut self.left);
                    if self.left > 0 {
                        self.section.extend_from_slice(piece);
                        return Ok(None);
                    }
                    return Ok(Some(self.complete_section(piece)));
                }
            }
        }
    }

    /// Begins a frame. Returns a part that consists of its header.
    fn begin(&mut self, header: FrameHeader) -> Result<Option<MessagePart<'static>>, Error> {
        let FrameHeader { kind, length } = header;
        let unexpected = Error::connection(ErrorCode::FrameUnexpected);
        if !kind.is_permitted_on(FrameStream::Request) {
            return Err(unexpected);
        }
        let (payload, part) = match (kind, self.stage) {
            (FrameType::Data, Stage::Body | Stage::Tunnel) if length == 0 => {
                return Ok(Some(MessagePart::Data(&[])));
            }
            (FrameType::Data, Stage::Body | Stage::Tunnel) => (Payload::Data, None),
            (FrameType::Headers, Stage::Start | Stage::Body) => self.begin_section(length),
            // This endpoint never sends MAX_PUSH_ID, so that no push ID is permitted (RFC 9114, section 7.2.5).
            (FrameType::PushPromise, _) if self.role == Role::Client => {
                return Err(Error::connection(ErrorCode::IdError));
            }
            (FrameType::StreamSignal, _) if self.signal.is_some() => return self.begin_stream(length).map(Some),
            (FrameType::Unknown | FrameType::StreamSignal, _) => {
                self.signal = self.signal.and(Some(false));
                (Payload::Skipped, Some(MessagePart::Skipped { length }))
            }
            _ => return Err(unexpected),
        };
        (self.payload, self.left) = (payload, length);
        Ok(part)
    }

    /// Interprets the signal of a WebTransport session, which is permitted at the beginning of a stream alone.
    #[cold]
    fn begin_stream(&self, session: u64) -> Result<MessagePart<'static>, Error> {
        if self.signal != Some(true) || self.stage != Stage::Start {
            return Err(Error::connection(ErrorCode::FrameError));
        }
        webtransport::session(session).map(|session| MessagePart::StreamOf { session })
    }

    fn begin_section(&mut self, length: u64) -> (Payload, Option<MessagePart<'static>>) {
        let is_head = self.stage == Stage::Start;
        self.stage = if is_head { Stage::Body } else { Stage::End };
        if length > self.longest as u64 {
            (Payload::Skipped, Some(MessagePart::TooLarge { length }))
        } else {
            (if is_head { Payload::Head } else { Payload::Trailers }, None)
        }
    }

    /// Returns a field section whose last piece was received.
    fn complete_section<'a, 'i: 'a>(&'a mut self, piece: &'i [u8]) -> MessagePart<'a> {
        let is_head = self.payload == Payload::Head;
        self.payload = Payload::Nothing;
        let section = if self.section.is_empty() {
            piece
        } else {
            self.section.extend_from_slice(piece);
            &self.section
        };
        if is_head { MessagePart::Head(section) } else { MessagePart::Trailers(section) }
    }

    /// Notes that the head was that of an interim response: another one follows.
    pub fn note_interim(&mut self) {
        self.stage = Stage::Start;
    }

    /// Notes that the head was that of a CONNECT request, or of a successful response to one: only DATA may follow
    /// (RFC 9114, section 4.4).
    pub fn become_tunnel(&mut self) {
        self.stage = Stage::Tunnel;
    }

    /// Checks that the message is complete, at the end of the stream.
    ///
    /// # Errors
    /// It ends within a frame, or without a head.
    pub fn finish(&self) -> Result<(), Error> {
        if self.header.is_partial() || self.left > 0 {
            return Err(Error::connection(ErrorCode::FrameError));
        }
        match (self.stage, self.role) {
            (Stage::Start, Role::Server) => Err(Error::stream(ErrorCode::RequestIncomplete)),
            (Stage::Start, Role::Client) => Err(Error::stream(ErrorCode::MessageError)),
            _ => Ok(()),
        }
    }

    /// The number of bytes of an incomplete field section.
    pub fn held(&self) -> usize {
        self.section.len()
    }
}
