//! Passes what the task of a connection receives for sessions to them: streams, their events, datagrams. Must never wait.

use bytes::Bytes;
use quic::{Direction, StreamId};
use wire::h3;
use wire::h3::webtransport::BeginningReader;

use super::sessions::{RequestStreams, Sessions};
use super::side::Opened;
use crate::h3::cell::StreamCell;
use crate::h3::link::Streams;
use crate::h3::state::{Shared, State};

impl State {
    /// Calls `with` on the sessions of the connection, if it has some.
    fn with_sessions<T>(&mut self, with: impl FnOnce(&mut Sessions, RequestStreams<'_>) -> T) -> Option<T> {
        let mut sessions = self.sessions.take()?;
        let is_open = |session| self.numbered(session).is_some();
        let result = with(&mut sessions, RequestStreams { role: self.role, next: self.next, is_open: &is_open });
        let useless = sessions.take_useless();
        self.sessions = Some(sessions);
        self.note_idle_frames(useless);
        Some(result)
    }

    /// Passes an event of a stream that is no message to its session.
    ///
    /// # Errors
    /// The beginning of the stream violates the protocol.
    #[cold]
    pub(in crate::h3) fn note_of_session(&mut self, id: StreamId, streams: &mut Streams<'_>) -> Result<(), h3::Error> {
        self.with_sessions(|sessions, requests| sessions.note(id, streams, requests)).unwrap_or(Ok(()))
    }

    /// Reads the beginning of a stream that is no message, of which `bytes` were received.
    ///
    /// # Errors
    /// It violates the protocol.
    #[cold]
    pub(in crate::h3) fn begin_stream(
        &mut self,
        id: StreamId,
        reader: BeginningReader,
        bytes: Bytes,
        streams: &mut Streams<'_>,
    ) -> Result<(), h3::Error> {
        self.with_sessions(|sessions, requests| sessions.arrive(id, reader, bytes, streams, requests)).unwrap_or(Ok(()))
    }
}

impl Shared {
    /// Begins a session on the stream of a request. Returns false if there are too many; `None`: the connection has no sessions.
    #[cold]
    pub(in crate::h3) fn begin_session(&self, id: StreamId) -> Option<bool> {
        let streams = &mut self.link.connection();
        let state = &mut *self.state.borrow_mut();
        state.with_sessions(|sessions, requests| sessions.begin(id.number(), streams, requests))
    }

    /// Whether the stream of a request is that of a session.
    pub(in crate::h3) fn has_session(&self, id: StreamId) -> bool {
        let state = self.state.borrow();
        state.sessions.as_ref().is_some_and(|sessions| sessions.has(id.number()))
    }

    /// Passes a stream of a client, whose beginning was read, to its session.
    #[cold]
    pub(in crate::h3) fn take_stream(&self, cell: &StreamCell, session: u64) {
        let unread = std::mem::take(&mut cell.half().unread);
        let streams = &mut self.link.connection();
        let state = &mut *self.state.borrow_mut();
        state.remove(cell.id);
        let others = state.with_sessions(|sessions, requests| {
            sessions.place(session, Opened { id: cell.id, unread }, streams, requests);
            sessions.streams()
        });
        if let Some(count) = others.and_then(|others| state.raise_grant_by(others)) {
            streams.set_max_streams(Direction::Bidirectional, count);
        }
    }

    /// As [`State::note_of_session`].
    ///
    /// # Errors
    /// As there.
    #[cold]
    pub(in crate::h3) fn note_of_session(&self, id: StreamId) -> Result<(), h3::Error> {
        let streams = &mut self.link.connection();
        self.state.borrow_mut().note_of_session(id, streams)
    }

    /// Notes that the peer permits more streams.
    pub(in crate::h3) fn note_room(&self) {
        if let Some(sessions) = &self.state.borrow().sessions {
            sessions.note_room();
        }
    }

    /// Passes the datagrams that were received to their sessions.
    ///
    /// # Errors
    /// A datagram cannot be parsed.
    pub(in crate::h3) fn receive_messages(&self) -> Result<(), h3::Error> {
        let streams = &mut self.link.connection();
        self.state.borrow_mut().with_sessions(|sessions, _| sessions.receive(streams)).unwrap_or(Ok(()))
    }
}
