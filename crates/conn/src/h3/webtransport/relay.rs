//! The streams and datagrams of one session, between a client's connection and a server's. Must never hold more of a stream than its
//! peer accepts at once.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::task::Context;

use bytes::Bytes;
use quic::{Direction, StreamId};
use wire::h3::webtransport::{SESSION_GONE, push_beginning, push_datagram};

use super::flow::{End, Flow, FlowState, Moved};
use super::side::{Opened, Received, Side};
use crate::flow::FlowProgress;
use crate::h3::server::Requests;
use crate::h3::state::Shared;
use crate::h3::{Request, Stream};

/// Bytes that are moved in one call before other tasks run.
const MOST: usize = 256 * 1024;

/// A connection of a session.
enum Connection {
    Client(Rc<Shared>),
    Server(Requests),
}

impl Connection {
    fn shared(&self) -> &Shared {
        match self {
            Self::Client(shared) => shared,
            Self::Server(requests) => requests.shared(),
        }
    }
}

/// A connection, and the session on it.
struct Place {
    connection: Connection,
    side: Rc<Side>,
    /// Streams of the peer that have no counterpart, because the other peer permits no more.
    unopened: VecDeque<Opened>,
}

/// A stream on both connections: that of the client's and that of the server's. A direction that has ended is `None`.
struct Pair {
    ids: [StreamId; 2],
    flows: [Option<Flow>; 2],
    /// Whether it is in the queue of those that can go on.
    is_queued: bool,
}

impl Pair {
    /// Moves both directions. Returns what is left to do, and whether the end was sent to each side.
    fn advance(&mut self, places: &[Place; 2], moved: &mut [Moved; 2]) -> (FlowState, [bool; 2]) {
        let (mut state, mut finished) = (FlowState::Over, [false; 2]);
        let [client, server] = places.each_ref().map(|place| place.connection.shared().link.quic());
        let (Some(mut client), Some(mut server)) = (client, server) else { return (state, finished) };
        let mut client = End { connection: &mut client, id: self.ids[0] };
        let mut server = End { connection: &mut server, id: self.ids[1] };
        for at in [0, 1] {
            let Some(flow) = &mut self.flows[at] else { continue };
            let step = match at {
                0 => flow.advance(&mut client, &mut server, &mut moved[at]),
                _ => flow.advance(&mut server, &mut client, &mut moved[at]),
            };
            match step {
                FlowState::Waits if state == FlowState::Exhausted => {}
                FlowState::Waits | FlowState::Exhausted => state = step,
                FlowState::Finished | FlowState::Over => {
                    self.flows[at] = None;
                    finished[1 - at] = step == FlowState::Finished;
                }
            }
        }
        (state, finished)
    }
}

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayStep {
    /// There is more to do.
    Exhausted,
    /// It waits for either side.
    Waits,
}

/// The streams and datagrams of a session. Dropping it ends all of them.
pub struct Relay {
    places: [Place; 2],
    pairs: BTreeMap<u64, Pair>,
    /// The number after that of the newest pair.
    next: u64,
    /// The pair of a stream of each connection.
    numbers: [BTreeMap<StreamId, u64>; 2],
    /// Pairs that can go on. One that has had its turn goes to the end.
    ready: VecDeque<u64>,
}

impl Relay {
    /// Begins between the requests of both sides. `None`: one of them is no session.
    pub fn between(client: &Stream, server: &Request) -> Option<Self> {
        let side = |shared: &Shared, session| shared.state.borrow().sessions.as_ref()?.side(session);
        let place = |connection, side| Place { connection, side, unopened: VecDeque::new() };
        let client_side = side(client.shared(), client.number())?;
        let server_side = side(server.requests().shared(), server.number())?;
        Some(Self {
            places: [
                place(Connection::Client(Rc::clone(client.shared())), client_side),
                place(Connection::Server(server.requests().clone()), server_side),
            ],
            pairs: BTreeMap::new(),
            next: 0,
            numbers: [BTreeMap::new(), BTreeMap::new()],
            ready: VecDeque::new(),
        })
    }

    /// Moves what can be moved.
    pub fn poll(&mut self, cx: &mut Context<'_>, up: &mut FlowProgress, down: &mut FlowProgress) -> RelayStep {
        let mut moved = [Moved::default(); 2];
        for at in [0, 1] {
            self.take_events(cx, at, &mut moved);
        }
        for at in [0, 1] {
            self.open(at);
        }
        let mut step = RelayStep::Waits;
        while let Some(number) = self.ready.pop_front() {
            let state = self.advance(number, &mut moved);
            if state == FlowState::Exhausted {
                self.enqueue(number);
            }
            if moved.iter().map(|moved| moved.read).sum::<usize>() >= MOST {
                step = RelayStep::Exhausted;
                break;
            }
        }
        for (progress, moved) in [(up, moved[0]), (down, moved[1])] {
            progress.add_payload(moved.read, moved.written);
        }
        for place in &self.places {
            place.connection.shared().link.wake();
        }
        step
    }

    /// Takes what a side has received: streams, events of streams, and datagrams, which are sent at once.
    fn take_events(&mut self, cx: &Context<'_>, at: usize, moved: &mut [Moved; 2]) {
        let (opened, touched, datagrams, mut lost) = {
            let received = &mut *self.places[at].side.received();
            received.wait(cx);
            let Received { opened, touched, datagrams, dropped, may_open, .. } = received;
            *may_open = false;
            (std::mem::take(opened), std::mem::take(touched), std::mem::take(datagrams), std::mem::take(dropped))
        };
        self.places[at].unopened.extend(opened);
        for id in touched {
            if let Some(number) = self.numbers[at].get(&id) {
                self.enqueue(*number);
            }
        }
        for payload in datagrams {
            moved[at].read += payload.len();
            if self.send(1 - at, &payload) {
                moved[at].written += payload.len();
            } else {
                lost += 1;
            }
        }
        if lost > 0 {
            let counts = &mut self.places[0].connection.shared().state.borrow_mut().counts;
            counts.dropped = counts.dropped.saturating_add(lost);
        }
    }

    /// Adds a pair to those that can go on.
    fn enqueue(&mut self, number: u64) {
        if let Some(pair) = self.pairs.get_mut(&number)
            && !std::mem::replace(&mut pair.is_queued, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Sends a datagram to a side. False: it is too large, or the peer accepts none.
    fn send(&self, to: usize, payload: &[u8]) -> bool {
        let Place { connection, side, .. } = &self.places[to];
        let mut datagram = Vec::with_capacity(payload.len() + 8);
        push_datagram(side.session, &mut datagram);
        datagram.extend_from_slice(payload);
        connection.shared().link.quic().is_some_and(|mut quic| quic.send_message(datagram.into()).is_ok())
    }

    /// Opens the counterparts of streams that the peer of a side has opened, as far as the other peer permits it.
    fn open(&mut self, at: usize) {
        let mut waiting = VecDeque::new();
        let mut is_full = [false; 2];
        while let Some(opened) = self.places[at].unopened.pop_front() {
            let direction = opened.id.direction();
            let is_bidirectional = direction == Direction::Bidirectional;
            let is_full = &mut is_full[usize::from(is_bidirectional)];
            let other = &self.places[1 - at];
            let new = if *is_full { None } else { other.connection.shared().link.connection().open(direction) };
            let Some(new) = new else {
                *is_full = true;
                waiting.push_back(opened);
                continue;
            };
            let mut beginning = Vec::new();
            push_beginning(other.side.session, is_bidirectional, &mut beginning);
            let there = Flow::new(beginning, opened.unread);
            let back = is_bidirectional.then(|| Flow::new(Vec::new(), Bytes::new()));
            self.add(at, [opened.id, new], there, back);
        }
        self.places[at].unopened = waiting;
    }

    /// Adds a pair of a stream of one side and its counterpart.
    fn add(&mut self, at: usize, [own, other]: [StreamId; 2], there: Flow, back: Option<Flow>) {
        let number = self.next;
        self.next += 1;
        let pair = if at == 0 {
            Pair { ids: [own, other], flows: [Some(there), back], is_queued: false }
        } else {
            Pair { ids: [other, own], flows: [back, Some(there)], is_queued: false }
        };
        let place = &self.places[1 - at];
        if let Some(sessions) = &mut place.connection.shared().state.borrow_mut().sessions {
            sessions.own(other, &place.side);
        }
        for (numbers, id) in self.numbers.iter_mut().zip(pair.ids) {
            numbers.insert(id, number);
        }
        self.pairs.insert(number, pair);
        self.enqueue(number);
    }

    /// Moves both directions of a stream.
    fn advance(&mut self, number: u64, moved: &mut [Moved; 2]) -> FlowState {
        let Some(pair) = self.pairs.get_mut(&number) else { return FlowState::Over };
        pair.is_queued = false;
        let (state, finished) = pair.advance(&self.places, moved);
        let is_over = pair.flows.iter().all(Option::is_none);
        self.note(number, finished, is_over);
        state
    }

    /// Notes the ends of a stream that were sent, and forgets a stream whose directions have ended.
    fn note(&mut self, number: u64, finished: [bool; 2], is_over: bool) {
        let ids = if is_over { self.pairs.remove(&number).map(|pair| pair.ids) } else { None };
        for (at, place) in self.places.iter().enumerate() {
            let state = &mut *place.connection.shared().state.borrow_mut();
            if finished[at] {
                state.note_finished();
            }
            let Some(id) = ids.map(|ids| ids[at]) else { continue };
            self.numbers[at].remove(&id);
            if let Some(sessions) = &mut state.sessions {
                sessions.forget(id);
            }
        }
    }
}

impl Drop for Relay {
    /// Ends the session's streams on both connections.
    fn drop(&mut self) {
        for (at, place) in self.places.iter_mut().enumerate() {
            let shared = place.connection.shared();
            let opened = {
                let received = &mut *place.side.received();
                received.is_over = true;
                std::mem::take(&mut received.opened)
            };
            let waiting = place.unopened.drain(..).chain(opened).map(|opened| (opened.id, true));
            // What has ended is left alone.
            let moving = self.pairs.values().map(|pair| (pair.ids[at], pair.flows[1 - at].is_some()));
            for (id, sends) in waiting.chain(moving) {
                let streams = &mut shared.link.connection();
                streams.stop(id, SESSION_GONE);
                if sends {
                    streams.reset(id, SESSION_GONE);
                }
                if let Some(sessions) = &mut shared.state.borrow_mut().sessions {
                    sessions.forget(id);
                }
            }
            shared.link.wake();
        }
    }
}
