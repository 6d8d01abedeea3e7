//! The sessions of a connection: assigns streams and datagrams to them. A stream may be received before the request of its session
//! and waits for that. Must never move payload.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::{Buf, Bytes};
use quic::StreamId;
use quic::stream::{Part, ReadError};
use wire::h3::webtransport::{self, BUFFERED_STREAM_REJECTED, BeginningReader, SESSION_GONE};
use wire::h3::{self, Role};

use super::side::{Opened, Side};
use super::{MOST_SESSIONS, MOST_WAITING};
use crate::h3::link::Streams;

/// Bytes of a stream that are taken from the connection to read its beginning.
const MOST: usize = 4096;

/// A stream of which a part of the beginning was received.
struct Arriving {
    id: StreamId,
    reader: BeginningReader,
}

/// The sessions of a connection.
#[derive(Default)]
pub(in crate::h3) struct Sessions {
    sides: BTreeMap<u64, Rc<Side>>,
    /// The session of each stream that has one.
    owners: BTreeMap<StreamId, Rc<Side>>,
    arriving: Vec<Arriving>,
    /// Streams whose session has not begun.
    waiting: VecDeque<Waiting>,
    /// The identifier after that of the newest session.
    next: u64,
    /// Streams and datagrams of the peer that no session takes.
    useless: u32,
}

struct Waiting {
    session: u64,
    opened: Opened,
}

/// The requests of a connection.
#[derive(Clone, Copy)]
pub(super) struct RequestStreams<'a> {
    pub(super) role: Role,
    /// The identifier after that of the newest one.
    pub(super) next: u64,
    /// Whether the stream with that number is one.
    pub(super) is_open: &'a dyn Fn(u64) -> bool,
}

impl RequestStreams<'_> {
    /// Whether the request of a session may still be received, or its head.
    fn may_begin(&self, session: u64) -> bool {
        session >= self.next || (self.is_open)(session)
    }
}

/// Ends a stream that no session takes.
fn refuse(streams: &mut Streams<'_>, id: StreamId, code: u64) {
    streams.stop(id, code);
    streams.reset(id, code);
}

impl Sessions {
    /// Begins a session on the stream of a request. Returns false if there are too many.
    pub(super) fn begin(&mut self, session: u64, streams: &mut Streams<'_>, requests: RequestStreams<'_>) -> bool {
        self.tidy(streams, requests);
        if self.sides.len() as u64 >= MOST_SESSIONS {
            return false;
        }
        let side = Rc::new(Side::new(session));
        self.next = self.next.max(session + 1);
        self.sides.insert(session, Rc::clone(&side));
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.session == session {
                self.owners.insert(waiting.opened.id, Rc::clone(&side));
                side.open(waiting.opened);
            } else {
                self.waiting.push_back(waiting);
            }
        }
        true
    }

    /// Returns a session that has not ended.
    pub(super) fn side(&self, session: u64) -> Option<Rc<Side>> {
        self.sides.get(&session).filter(|side| !side.received().is_over).map(Rc::clone)
    }

    /// Whether the stream of a request is that of a session.
    pub(super) fn has(&self, session: u64) -> bool {
        self.sides.contains_key(&session)
    }

    /// Notes that the peer permits more streams.
    pub(super) fn note_room(&self) {
        self.sides.values().for_each(|side| side.note_room());
    }

    /// Returns the number of streams of all sessions, those that wait included.
    pub(super) fn streams(&self) -> usize {
        self.owners.len() + self.waiting.len() + self.arriving.len()
    }

    /// Assigns a stream that this side has opened.
    pub(super) fn own(&mut self, id: StreamId, side: &Rc<Side>) {
        self.owners.insert(id, Rc::clone(side));
    }

    /// Forgets a stream that has ended.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.owners.remove(&id);
    }

    /// Reads the beginning of a stream that the peer has opened, of which `bytes` were received.
    ///
    /// # Errors
    /// It violates the protocol.
    pub(super) fn arrive(
        &mut self,
        id: StreamId,
        mut reader: BeginningReader,
        mut bytes: Bytes,
        streams: &mut Streams<'_>,
        requests: RequestStreams<'_>,
    ) -> Result<(), h3::Error> {
        loop {
            let mut input = &bytes[..];
            if let Some(session) = reader.read(&mut input)? {
                let rest = input.len();
                bytes.advance(bytes.len() - rest);
                self.place(session, Opened { id, unread: bytes }, streams, requests);
                return Ok(());
            }
            match streams.read(id, MOST) {
                Ok(Part::Chunk(more)) => bytes = more,
                Err(ReadError::Blocked) if self.arriving.len() < MOST_WAITING => {
                    self.arriving.push(Arriving { id, reader });
                    return Ok(());
                }
                Err(ReadError::Blocked) => {
                    self.refuse(streams, id, BUFFERED_STREAM_REJECTED);
                    return Ok(());
                }
                Ok(Part::End) | Err(ReadError::Reset(_) | ReadError::Closed) => {
                    self.refuse(streams, id, SESSION_GONE);
                    return Ok(());
                }
            }
        }
    }

    pub(super) fn place(
        &mut self,
        session: u64,
        opened: Opened,
        streams: &mut Streams<'_>,
        requests: RequestStreams<'_>,
    ) {
        if self.has(session) && !(requests.is_open)(session) {
            self.tidy(streams, requests);
        }
        match self.sides.get(&session) {
            Some(side) if side.received().is_over => self.refuse(streams, opened.id, SESSION_GONE),
            Some(side) => {
                self.owners.insert(opened.id, Rc::clone(side));
                side.open(opened);
            }
            None if requests.role == Role::Server && requests.may_begin(session) => {
                if self.waiting.len() >= MOST_WAITING
                    && let Some(oldest) = self.waiting.pop_front()
                {
                    self.refuse(streams, oldest.opened.id, BUFFERED_STREAM_REJECTED);
                }
                self.waiting.push_back(Waiting { session, opened });
            }
            None => self.refuse(streams, opened.id, SESSION_GONE),
        }
    }

    /// Ends a stream that no session takes, as one of the peer's without use.
    fn refuse(&mut self, streams: &mut Streams<'_>, id: StreamId, code: u64) {
        self.useless = self.useless.saturating_add(1);
        refuse(streams, id, code);
    }

    /// Takes the number of streams and datagrams that no session has taken.
    pub(super) fn take_useless(&mut self) -> u32 {
        std::mem::take(&mut self.useless)
    }

    /// Forgets sessions whose request has ended, and refuses the streams that waited for them.
    fn tidy(&mut self, streams: &mut Streams<'_>, requests: RequestStreams<'_>) {
        self.sides.retain(|session, side| {
            let remains = (requests.is_open)(*session);
            if !remains {
                side.received().is_over = true;
            }
            remains
        });
        self.owners.retain(|id, side| {
            let is_over = side.received().is_over;
            if is_over {
                refuse(streams, *id, SESSION_GONE);
            }
            !is_over
        });
        self.waiting.retain(|waiting| {
            let may_begin = requests.may_begin(waiting.session);
            if !may_begin {
                refuse(streams, waiting.opened.id, SESSION_GONE);
            }
            may_begin
        });
    }

    /// Passes an event of a stream to its session.
    ///
    /// # Errors
    /// The beginning of the stream violates the protocol.
    pub(super) fn note(
        &mut self,
        id: StreamId,
        streams: &mut Streams<'_>,
        requests: RequestStreams<'_>,
    ) -> Result<(), h3::Error> {
        if let Some(side) = self.owners.get(&id) {
            side.touch(id);
            return Ok(());
        }
        let Some(position) = self.arriving.iter().position(|arriving| arriving.id == id) else { return Ok(()) };
        let Arriving { id, reader } = self.arriving.swap_remove(position);
        self.arrive(id, reader, Bytes::new(), streams, requests)
    }

    /// Passes the datagrams that were received to their sessions. Those of others are dropped (RFC 9297, section 2.1): the peer may
    /// have sent them before it knew of the end of a session.
    ///
    /// # Errors
    /// A datagram cannot be parsed.
    pub(super) fn receive(&mut self, streams: &mut Streams<'_>) -> Result<(), h3::Error> {
        while let Some(mut datagram) = streams.receive_message() {
            let mut input = &datagram[..];
            let session = webtransport::read_datagram(&mut input)?;
            let rest = input.len();
            datagram.advance(datagram.len() - rest);
            match self.sides.get(&session) {
                Some(side) => side.receive(datagram),
                None if session < self.next => {}
                None => self.useless = self.useless.saturating_add(1),
            }
        }
        Ok(())
    }
}
