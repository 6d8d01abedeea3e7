//! The frames of the peer's control stream (RFC 9114, section 6.2.1; RFC 9218, section 7.2). Owns the IDs that the peer
//! may not change at will; must never apply a frame.

use super::Role;
use super::error::{Error, ErrorCode};
use super::frame::{self, FrameHeader, FrameStream, FrameType, HeaderReader, frame_header};
use super::settings::Settings;
use super::varint;

/// Maximum length of a payload that is read, in bytes.
const LONGEST: u64 = 1024;

/// Reads the frames of a control stream.
#[derive(Debug)]
pub struct ControlReader {
    role: Role,
    header: HeaderReader,
    /// The frame whose payload is being read.
    current: Option<FrameHeader>,
    /// The missing bytes of its payload.
    left: u64,
    /// The received part of a payload that was split.
    payload: Vec<u8>,
    has_settings: bool,
    /// The ID of the last GOAWAY.
    last_go_away: Option<u64>,
    /// The ID of the last MAX_PUSH_ID.
    max_push: Option<u64>,
}

/// A frame of a control stream.
#[derive(Debug, PartialEq, Eq)]
pub enum ControlFrame<'a> {
    /// The settings of the peer, always the first frame.
    Settings(Settings),
    /// The peer does not process requests (of a server: streams) or pushes (of a client) from this ID on.
    GoAway(u64),
    /// The largest push ID that a server may use.
    MaxPushId(u64),
    /// The new priority of the request on a stream, in the syntax of the Priority field.
    PriorityUpdate { stream: u64, value: &'a [u8] },
    /// The header of a frame of a reserved or unknown type; its payload is skipped.
    Skipped { length: u64 },
}

impl ControlReader {
    /// Creates a reader for an endpoint's role.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            header: HeaderReader::default(),
            current: None,
            left: 0,
            payload: Vec::new(),
            has_settings: false,
            last_go_away: None,
            max_push: None,
        }
    }

    /// Returns the next frame, and advances `input`. `None`: all input is consumed.
    ///
    /// # Errors
    /// The frame, its place or its ID is not permitted.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Result<Option<ControlFrame<'a>>, Error> {
        loop {
            let Some(header) = self.current else {
                if !self.payload.is_empty() {
                    self.payload = Vec::new();
                }
                let Some(header) = self.header.read(input) else { return Ok(None) };
                self.check(header)?;
                (self.current, self.left) = (Some(header), header.length);
                if header.kind.is_ignored() {
                    return Ok(Some(ControlFrame::Skipped { length: header.length }));
                }
                continue;
            };
            let piece = frame::take(input, &mut self.left);
            let is_skipped = header.kind.is_ignored();
            if self.left > 0 {
                if !is_skipped {
                    self.payload.extend_from_slice(piece);
                }
                return Ok(None);
            }
            self.current = None;
            if !is_skipped {
                return self.complete(header.kind, piece).map(Some);
            }
        }
    }

    /// Checks the type and the length of a frame.
    fn check(&mut self, header: FrameHeader) -> Result<(), Error> {
        let FrameHeader { kind, length } = header;
        if !self.has_settings && kind != FrameType::Settings {
            return Err(Error::connection(ErrorCode::MissingSettings));
        }
        let is_of_client =
            matches!(kind, FrameType::MaxPushId | FrameType::PriorityUpdate | FrameType::PushPriorityUpdate);
        if self.has_settings && kind == FrameType::Settings
            || !kind.is_permitted_on(FrameStream::Control)
            || is_of_client && self.role == Role::Client
        {
            return Err(Error::connection(ErrorCode::FrameUnexpected));
        }
        self.has_settings = true;
        let is_id = matches!(kind, FrameType::GoAway | FrameType::MaxPushId | FrameType::CancelPush);
        if is_id && length > varint::LONGEST as u64 {
            return Err(Error::connection(ErrorCode::FrameError));
        }
        if !kind.is_ignored() && length > LONGEST {
            return Err(Error::connection(ErrorCode::ExcessiveLoad));
        }
        Ok(())
    }

    /// Interprets a frame whose last piece was received.
    fn complete<'a, 'i: 'a>(&'a mut self, kind: FrameType, piece: &'i [u8]) -> Result<ControlFrame<'a>, Error> {
        let mut payload = if self.payload.is_empty() {
            piece
        } else {
            self.payload.extend_from_slice(piece);
            &self.payload
        };
        if kind == FrameType::Settings {
            return Settings::parse(payload).map(ControlFrame::Settings);
        }
        let id = varint::read(&mut payload).ok_or(Error::connection(ErrorCode::FrameError))?;
        let wrong_id = Error::connection(ErrorCode::IdError);
        // Client-initiated bidirectional streams carry requests (RFC 9000, section 2.1).
        let is_request = id.is_multiple_of(4);
        match kind {
            FrameType::PriorityUpdate if is_request => Ok(ControlFrame::PriorityUpdate { stream: id, value: payload }),
            FrameType::GoAway | FrameType::MaxPushId | FrameType::CancelPush if !payload.is_empty() => {
                Err(Error::connection(ErrorCode::FrameError))
            }
            FrameType::GoAway => {
                let before = self.last_go_away.replace(id);
                let is_valid = is_request || self.role == Role::Server;
                let fits = before.is_none_or(|before| id <= before);
                if is_valid && fits { Ok(ControlFrame::GoAway(id)) } else { Err(wrong_id) }
            }
            FrameType::MaxPushId => {
                let before = self.max_push.replace(id);
                let fits = before.is_none_or(|before| id >= before);
                if fits { Ok(ControlFrame::MaxPushId(id)) } else { Err(wrong_id) }
            }
            // There are no pushes: neither does this endpoint promise one, nor does it permit the peer to.
            _ => Err(wrong_id),
        }
    }
}

/// Appends a GOAWAY frame with an ID, at most [`varint::MAX`].
pub fn push_go_away(id: u64, out: &mut Vec<u8>) {
    let id = id.min(varint::MAX);
    out.extend_from_slice(frame_header(FrameType::GoAway, varint::length(id) as u64).as_slice());
    varint::push(id, out);
}

/// Appends a PRIORITY_UPDATE frame for the request on a stream, with a value in the syntax of the Priority field.
pub fn push_priority_update(stream: u64, value: &[u8], out: &mut Vec<u8>) {
    let stream = stream.min(varint::MAX);
    let length = (varint::length(stream) + value.len()) as u64;
    out.extend_from_slice(frame_header(FrameType::PriorityUpdate, length).as_slice());
    varint::push(stream, out);
    out.extend_from_slice(value);
}
