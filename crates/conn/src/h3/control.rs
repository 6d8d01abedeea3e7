//! The unidirectional streams of a connection: the control streams of both sides and those of QPACK. Must never serve a
//! request.

use bytes::{Buf, Bytes};
use quic::stream::{Part, ReadError};
use quic::{Direction, StreamId};
use wire::h3::qpack::AcknowledgmentReader;
use wire::h3::webtransport::BeginningReader;
use wire::h3::{self, ControlFrame, ControlReader, ErrorCode, PeerStreams, Role, Settings, StreamType, TypeReader};
use wire::http::priority::Priority;

use super::Terms;
use super::link::{Link, Streams};
use super::reading::rank;
use super::state::State;
use super::webtransport::MOST_SESSIONS;

/// Bytes of a stream taken from the connection at once.
const MOST: usize = 4096;

/// Bytes of our control stream that may wait: GOAWAY frames only.
const LARGEST_OUTPUT: usize = 1024;

/// A stream of the peer.
struct PeerStream {
    id: StreamId,
    name: TypeReader,
    /// Its type, once that was received.
    kind: Option<StreamType>,
}

/// The unidirectional streams.
pub(super) struct Control {
    /// Our control stream, once it is open.
    own: Option<StreamId>,
    /// Bytes of it that were not sent.
    output: Vec<u8>,
    streams: Vec<PeerStream>,
    peer: PeerStreams,
    reader: ControlReader,
    acknowledgments: AcknowledgmentReader,
}

impl Control {
    /// Begins with our SETTINGS.
    pub(super) fn new(role: Role, terms: &Terms) -> Self {
        let mut output = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut output);
        let settings = Settings {
            max_section: Some(terms.max_head as u64),
            extended_connect: terms.extends || terms.webtransport && role == Role::Server,
            datagrams: terms.webtransport,
            sessions: if terms.webtransport { MOST_SESSIONS } else { 0 },
            ..Settings::default()
        };
        h3::push_settings(&settings, &mut output);
        Self {
            own: None,
            output,
            streams: Vec::new(),
            peer: PeerStreams::new(role),
            reader: ControlReader::new(role),
            acknowledgments: AcknowledgmentReader::default(),
        }
    }

    /// Announces that requests from this identifier on are not processed.
    pub(super) fn go_away(&mut self, next: u64) {
        if self.output.len() < LARGEST_OUTPUT {
            h3::push_go_away(next, &mut self.output);
        }
    }

    /// Sends what waits on our control stream.
    pub(super) fn send(&mut self, connection: &mut Streams<'_>) {
        if self.output.is_empty() {
            return;
        }
        let own = match self.own {
            Some(own) => own,
            None => match connection.open(Direction::Unidirectional) {
                Some(own) => *self.own.insert(own),
                None => return,
            },
        };
        if let Ok(written) = connection.write(own, &self.output) {
            self.output.drain(..written);
        }
        if self.output.is_empty() {
            self.output = Vec::new();
        }
    }

    /// Whether everything was handed to the connection.
    pub(super) fn is_sent(&self) -> bool {
        self.output.is_empty()
    }

    /// Handles STOP_SENDING for one of our unidirectional streams.
    ///
    /// # Errors
    /// It is the control stream, which has to stay open (RFC 9114, section 6.2.1).
    pub(super) fn note_stopped(&self, id: StreamId) -> Result<(), h3::Error> {
        if self.own == Some(id) { Err(h3::Error::connection(ErrorCode::ClosedCriticalStream)) } else { Ok(()) }
    }

    /// Accepts the streams that the client has opened.
    pub(super) fn accept(&mut self, connection: &mut Streams<'_>, state: &mut State) -> Result<(), h3::Error> {
        while let Some(id) = connection.accept(Direction::Unidirectional) {
            self.streams.push(PeerStream { id, name: TypeReader::default(), kind: None });
            self.read(id, connection, state)?;
        }
        Ok(())
    }

    /// Reads what a stream has received.
    ///
    /// # Errors
    /// The client has violated the protocol.
    pub(super) fn read(
        &mut self,
        id: StreamId,
        connection: &mut Streams<'_>,
        state: &mut State,
    ) -> Result<(), h3::Error> {
        let Some(position) = self.streams.iter().position(|stream| stream.id == id) else {
            return state.note_of_session(id, connection);
        };
        loop {
            match connection.read(id, MOST) {
                Ok(Part::Chunk(bytes)) => {
                    if !self.take(position, bytes, connection, state)? {
                        return Ok(());
                    }
                }
                Err(ReadError::Blocked) => return Ok(()),
                Ok(Part::End) | Err(ReadError::Reset(_) | ReadError::Closed) => {
                    let ended = self.streams.remove(position);
                    return ended.kind.map_or(Ok(()), |kind| self.peer.close(kind));
                }
            }
        }
    }

    /// Processes bytes of a stream. Returns false if no more of it are read.
    fn take(
        &mut self,
        position: usize,
        mut bytes: Bytes,
        connection: &mut Streams<'_>,
        state: &mut State,
    ) -> Result<bool, h3::Error> {
        let Some(stream) = self.streams.get_mut(position) else { return Ok(false) };
        let id = stream.id;
        let kind = match stream.kind {
            Some(kind) => kind,
            None => {
                let mut input = &bytes[..];
                let Some(kind) = stream.name.read(&mut input) else { return Ok(true) };
                let rest = input.len();
                bytes.advance(bytes.len() - rest);
                if kind == StreamType::WebTransport && state.sessions.is_some() {
                    self.streams.remove(position);
                    state.begin_stream(id, BeginningReader::after_type(), bytes, connection)?;
                    return Ok(false);
                }
                stream.kind = Some(kind);
                if let Err(error) = self.peer.open(kind) {
                    return self.refuse(position, error, connection, state);
                }
                kind
            }
        };
        match kind {
            StreamType::Control => self.read_control(&bytes, connection, state)?,
            StreamType::QpackEncoder => state.decoder.read_instructions(&bytes)?,
            StreamType::QpackDecoder => self.acknowledgments.read(&bytes)?,
            StreamType::Push | StreamType::WebTransport | StreamType::Unknown(_) => {}
        }
        Ok(true)
    }

    /// Refuses a stream; the connection goes on unless the error is one of it.
    fn refuse(
        &mut self,
        position: usize,
        error: h3::Error,
        connection: &mut Streams<'_>,
        state: &mut State,
    ) -> Result<bool, h3::Error> {
        if error.scope == h3::Scope::Connection {
            return Err(error);
        }
        let stream = self.streams.remove(position);
        connection.stop(stream.id, error.code.number());
        state.note_idle_frame();
        Ok(false)
    }

    fn read_control(&mut self, bytes: &[u8], connection: &mut Streams<'_>, state: &mut State) -> Result<(), h3::Error> {
        let mut input = bytes;
        while let Some(frame) = self.reader.next(&mut input)? {
            match frame {
                ControlFrame::Settings(settings) => {
                    state.counts.settings += 1;
                    state.note_settings(&settings);
                }
                ControlFrame::GoAway(next) => {
                    state.counts.departures += 1;
                    if state.role == Role::Client {
                        state.note_departure(next);
                    }
                }
                ControlFrame::MaxPushId(_) => {
                    state.counts.push_limits += 1;
                    state.note_idle_frame();
                }
                ControlFrame::Skipped { .. } => {
                    state.note_idle_frame();
                }
                // RFC 9218, section 7.2.
                ControlFrame::PriorityUpdate { stream, .. } if state.is_beyond_limit(stream) => {
                    return Err(h3::Error::connection(ErrorCode::IdError));
                }
                ControlFrame::PriorityUpdate { stream, value } => {
                    let priority = Priority::parse(value);
                    state.note_idle_frame();
                    if let Some(cell) = state.numbered(stream) {
                        cell.half().priority = priority;
                        connection.set_priority(cell.id, rank(priority));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Closes the connection with an error.
pub(super) fn close(link: &Link, code: ErrorCode) {
    link.close(code.number(), code.name().as_bytes());
}
