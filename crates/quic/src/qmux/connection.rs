//! A connection: bytes in, events out, bytes out, and a deadline. Its streams are in `streams`. Must never know a transport.

mod receive;
mod streams;

use std::collections::VecDeque;

use base::moment::Moment;

use super::error::ErrorCode;
use super::frame;
use super::output::Output;
use super::parameters::{MOST_STREAMS, Parameters, Settings};
use super::reader::Reader;
use super::stream::{Receiving, Sending, Stream};
use super::table::{Opened, Table, direction, index};
use crate::closed::Closed;
use crate::connection::Event;
use crate::statistics::RareFrames;
use crate::stream::{Direction, StreamId};

/// A connection of one side.
pub struct Connection {
    is_server: bool,
    settings: Settings,
    reader: Reader,
    output: Output,
    /// The peer's parameters, once they were received.
    peer: Option<Box<Parameters>>,
    streams: Table,
    /// The streams of the peer and those of this side, by direction.
    theirs: [Opened; 2],
    ours: [Opened; 2],
    events: VecDeque<Event>,
    /// Streams whose end was written, and the position after it.
    ends: VecDeque<(u64, u64)>,
    /// Streams whose writes had to wait.
    blocked: VecDeque<u64>,
    /// Bytes of streams received, and how many the peer may send.
    received: u64,
    most_received: u64,
    /// Bytes of streams read or dropped.
    taken: u64,
    /// Bytes of streams written, and how many the peer accepts.
    written: u64,
    most_written: u64,
    owed: Owed,
    /// The stream of the frame whose payload is read, and whether it ends the stream.
    current: (u64, bool),
    heard: Moment,
    glitches: u32,
    received_frames: RareFrames,
    state: State,
}

/// Frames that are written when bytes are next sent.
#[derive(Debug, Default)]
struct Owed {
    /// Sequence number of a ping to be answered.
    pong: Option<u64>,
    max_data: bool,
    max_streams: [bool; 2],
    /// Streams whose window was extended.
    credits: Vec<u64>,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It has ended; what waits is still sent.
    Closed,
}

impl Connection {
    /// Begins a connection on a transport that is ready. The transport parameters are to be sent at once.
    pub fn new(is_server: bool, settings: Settings, now: Moment) -> Self {
        let mut output = Output::default();
        let mut parameters = Vec::with_capacity(64);
        Parameters::of(&settings).push(&mut parameters);
        output.push(|out| {
            super::varint::push(frame::PARAMETERS, out);
            super::varint::push(parameters.len() as u64, out);
            out.extend_from_slice(&parameters);
        });
        let theirs = [settings.max_bidirectional, settings.max_unidirectional].map(|most| Opened {
            most: most.into(),
            at_once: most.into(),
            ..Opened::default()
        });
        Self {
            is_server,
            settings,
            reader: Reader::new(),
            output,
            peer: None,
            streams: Table::default(),
            theirs,
            ours: [Opened::default(); 2],
            events: VecDeque::new(),
            ends: VecDeque::new(),
            blocked: VecDeque::new(),
            received: 0,
            most_received: settings.window.into(),
            taken: 0,
            written: 0,
            most_written: 0,
            owed: Owed::default(),
            current: (0, false),
            heard: now,
            glitches: 0,
            received_frames: RareFrames::default(),
            state: State::Open,
        }
    }

    /// Whether the peer's transport parameters were received: streams can be opened.
    pub fn is_ready(&self) -> bool {
        self.peer.is_some()
    }

    /// Whether it has ended, or was closed.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        match event {
            Event::Readable(id) => self.with(id, |stream| stream.is_readable = false),
            Event::Writable(id) => self.with(id, |stream| stream.is_writable = false),
            _ => {}
        }
        Some(event)
    }

    /// Whether an event waits.
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    fn with(&mut self, id: StreamId, change: impl FnOnce(&mut Stream)) {
        if let Some(stream) = self.streams.get(id.number()) {
            change(stream);
        }
    }

    /// Returns the number of frames received since this was called before that a peer which behaves well does not send.
    pub fn take_glitches(&mut self) -> u32 {
        std::mem::take(&mut self.glitches)
    }

    /// Returns the number of BLOCKED frames received, by type. Other frames are not counted.
    pub fn received_frames(&self) -> &RareFrames {
        &self.received_frames
    }

    /// Returns the bytes to be sent.
    pub fn output(&mut self) -> &[u8] {
        self.settle();
        self.output.seal();
        self.output.waiting()
    }

    /// Whether bytes are to be sent.
    pub fn has_output(&mut self) -> bool {
        !self.output().is_empty()
    }

    /// Records that the first bytes of the output were passed to the transport.
    pub fn note_sent(&mut self, now: Moment, count: usize) {
        self.heard = now;
        self.output.note_sent(count);
        let sent = self.output.sent();
        while let Some((id, end)) = self.ends.front().copied() {
            if end > sent {
                break;
            }
            self.ends.pop_front();
            if let Some(stream) = self.streams.get(id)
                && stream.sending.take().is_some()
                && let Some(id) = StreamId::of_number(id)
            {
                self.events.push_back(Event::Finished(id));
            }
            self.remove_if_over(id);
        }
        if self.output.room() > 0 {
            self.unblock();
        }
    }

    /// Reports that streams accept bytes again, those with the largest priority first.
    fn unblock(&mut self) {
        if self.blocked.is_empty() || self.written >= self.most_written || self.output.room() == 0 {
            return;
        }
        let mut ready = Vec::new();
        let mut waiting = VecDeque::new();
        for id in std::mem::take(&mut self.blocked) {
            let Some(stream) = self.streams.get(id) else { continue };
            let Some(sending) = &mut stream.sending else { continue };
            if sending.written >= sending.most {
                waiting.push_back(id);
                continue;
            }
            sending.is_blocked = false;
            if !std::mem::replace(&mut stream.is_writable, true) {
                ready.push((sending.priority, id));
            }
        }
        self.blocked = waiting;
        ready.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
        let ids = ready.into_iter().filter_map(|(_, id)| StreamId::of_number(id));
        self.events.extend(ids.map(Event::Writable));
    }

    /// Writes the frames that are owed to the peer.
    fn settle(&mut self) {
        if self.state == State::Closed {
            return;
        }
        let Owed { pong, max_data, max_streams, credits } = std::mem::take(&mut self.owed);
        if let Some(sequence) = pong {
            self.output.push_integers(&[frame::PONG, sequence]);
        }
        if max_data {
            self.most_received = self.taken + u64::from(self.settings.window);
            self.output.push_integers(&[frame::MAX_DATA, self.most_received]);
        }
        for (at, is_owed) in max_streams.into_iter().enumerate() {
            let opened = &mut self.theirs[at];
            let most = (opened.ended + opened.at_once).min(MOST_STREAMS);
            if is_owed && most > opened.most {
                opened.most = most;
                self.output.push_integers(&[frame::MAX_STREAMS + at as u64, most]);
            }
        }
        let window = u64::from(self.settings.stream_window);
        for id in credits {
            let Some(receiving) = self.streams.get(id).and_then(|stream| stream.receiving.as_mut()) else { continue };
            receiving.owes_credit = false;
            if let Some(most) = receiving.credit(window) {
                receiving.most = most;
                self.output.push_integers(&[frame::MAX_STREAM_DATA, id, most]);
            }
        }
    }

    /// Returns the time at which [`Self::expire`] has to be called. Without streams, a connection ends after the idle timeout; with
    /// streams, those who serve them decide on that.
    pub fn deadline(&self) -> Option<Moment> {
        let is_idle = self.streams_of_requests() == 0 && self.state == State::Open;
        (is_idle && !self.settings.idle_timeout.is_zero()).then(|| self.heard + self.settings.idle_timeout)
    }

    /// Returns the number of bidirectional streams that are not over.
    fn streams_of_requests(&self) -> u64 {
        let of = |opened: &Opened| opened.count - opened.ended;
        of(&self.theirs[0]) + of(&self.ours[0])
    }

    /// Ends a connection whose idle timeout has expired.
    pub fn expire(&mut self, now: Moment) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.end(Closed::TimedOut);
        }
    }

    /// Handles the end of the transport.
    pub fn end_input(&mut self) {
        self.end(Closed::Reset);
    }

    /// Closes the connection with a code of the application, after what waits.
    pub fn close(&mut self, code: u64, reason: &[u8]) {
        if self.state == State::Open {
            self.settle();
            self.output.close(code, true, reason);
            self.state = State::Closed;
            self.events.clear();
        }
    }

    fn end(&mut self, closed: Closed) {
        if self.state == State::Open {
            self.state = State::Closed;
            self.events.push_back(Event::Closed(closed));
        }
    }

    /// Closes the connection because of an error of the peer.
    fn fail(&mut self, code: ErrorCode) {
        if self.state == State::Open {
            let reason = code.name();
            self.output.close(code as u64, false, reason.as_bytes());
            self.end(Closed::Transport { code: code as u64, reason: reason.into() });
        }
    }

    /// Whether this side has opened a stream.
    fn is_ours(&self, id: u64) -> bool {
        (id & 1 == 1) == self.is_server
    }

    /// Returns the number of a stream of this side.
    fn number(&self, direction: Direction, count: u64) -> u64 {
        count << 2 | (index(direction) as u64) << 1 | u64::from(self.is_server)
    }

    /// Creates a stream with the windows of both sides.
    fn create(&self, id: u64) -> Stream {
        let (is_ours, direction) = (self.is_ours(id), direction(id));
        let receives = direction == Direction::Bidirectional || !is_ours;
        let sends = direction == Direction::Bidirectional || is_ours;
        let most = self.peer.as_ref().map_or(0, |peer| match (direction, is_ours) {
            (Direction::Unidirectional, _) => peer.unidirectional,
            (Direction::Bidirectional, true) => peer.bidirectional_remote,
            (Direction::Bidirectional, false) => peer.bidirectional_local,
        });
        Stream {
            id,
            receiving: receives.then(|| Receiving::new(self.settings.stream_window.into())),
            sending: sends.then(|| Sending::new(most)),
            is_accepted: is_ours,
            ..Stream::default()
        }
    }

    /// Forgets a stream both of whose directions are over. The peer may open another one in its place.
    fn remove_if_over(&mut self, id: u64) {
        let is_over =
            |stream: &mut Stream| stream.receiving.is_none() && stream.sending.is_none() && stream.is_accepted;
        if !self.streams.get(id).is_some_and(is_over) {
            return;
        }
        self.streams.remove(id);
        let at = index(direction(id));
        if self.is_ours(id) {
            self.ours[at].ended += 1;
        } else {
            self.theirs[at].ended += 1;
            self.owed.max_streams[at] = true;
        }
    }
}
