//! What a connection and those that have its streams share. Owns the windows of both directions and what waits to be written;
//! must never read or write the connection.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use wire::h2::{ErrorCode, FrameHeader, HEADER_LENGTH, INITIAL_WINDOW, Kind, MAX_WINDOW, flag, push_frame};
use wire::http::Fields;

use super::counts::{Allowance, Counts, EARNED, FAILED_STREAM};
use super::half::Half;
use super::halves::{Halves, UNOPENED};
use super::handle::Kill;
use super::queue::Queue;
use super::spare;
use super::{Role, Terms};

/// Bytes that wait to be written, above which streams wait.
const FULL: usize = 128 * 1024;

/// The same where the client says what is urgent: what comes later is not to wait behind much.
const FULL_RANKED: usize = 3 * wire::h2::MAX_FRAME_SIZE;

/// Bytes that wait to be written, above which nothing is read: answers to pings and settings come on top of what streams have.
const STUFFED: usize = FULL + 16 * 1024;

/// Bytes of the connection's window; what comes is told at once, because each stream has a window of its own.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Bytes of a request that are read and dropped behind its answer: many clients that send see no answer of a stream that is
/// reset.
pub(super) const DRAINED: usize = 16 << 20;

/// Streams that we have reset and whose frames may still be under way.
const RESET: usize = 64;

/// Streams whose answer is out while their request still comes; beyond them the oldest one is reset.
const MOST_DRAINED: usize = RESET;

/// The size of a table of which no head makes use (RFC 7541, section 6.3).
const EMPTY_TABLE: [u8; 1] = [0x20];

/// A stream or a connection that cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Connection(ErrorCode),
    Stream(u32, ErrorCode),
}

pub(super) struct State {
    pub(super) role: Role,
    pub(super) terms: Terms,
    /// Streams that are served.
    pub(super) halves: Halves,
    /// Streams of them that nobody serves any more.
    drained: usize,
    /// The newest stream that was opened.
    pub(super) newest: u32,
    /// Requests that were begun.
    begun: u32,
    /// Streams at a time that the server takes.
    pub(super) peer_streams: usize,
    /// Whether the server takes requests for other protocols (RFC 8441); `None`: it has not told its settings.
    pub(super) peer_extends: Option<bool>,
    /// The client has not read our settings yet: it sends as much on a stream as the protocol lets it.
    pub(super) unread_settings: bool,
    /// No request is begun any more.
    pub(super) closing: bool,
    /// A request has the whole connection end at once.
    pub(super) killed: Option<Kill>,
    /// Reads that have brought something.
    pub(super) heard: u64,
    /// The peer was asked whether it is there, and has not answered.
    pub(super) pinged: bool,
    /// Answers to such questions.
    pub(super) pongs: u32,
    /// The peer knows by now that the connection ends, and has sent what it had begun before.
    pub(super) knows_departure: bool,
    /// What has happened since the connection's task was last asked.
    pub(super) counts: Counts,
    /// Glitches in all.
    pub(super) glitches: u32,
    /// Frames without use that the peer may send, and points that its faults have cost.
    pub(super) allowance: Allowance,
    /// A limit of glitches or of the budget may have been reached.
    pub(super) suspicious: bool,
    /// The peer has asked for a smaller table than it had, and the next head has to say that it has one (RFC 7541, section
    /// 4.2).
    pub(super) owes_table_size: bool,
    reset: VecDeque<u32>,
    /// What waits to be written, of which `sent` bytes are out.
    output: Vec<u8>,
    sent: usize,
    /// The last frame of a message, which may still be told to end it.
    last: Option<(u32, usize)>,
    pub(super) queue: Queue,
    /// Bytes of payload that the client takes, on all streams.
    pub(super) window: i64,
    /// Bytes of payload that it takes of each new stream.
    pub(super) stream_window: i64,
    /// Bytes of payload that have come and that the client was not told of.
    owed: u32,
    /// Bytes that streams share, and that none has.
    shareable: u32,
    /// The connection's task.
    task: Option<Waker>,
}

impl State {
    pub(super) fn new(role: Role, terms: Terms) -> Self {
        Self {
            role,
            terms,
            shareable: terms.shared_window,
            halves: Halves::default(),
            drained: 0,
            newest: 0,
            begun: 0,
            peer_streams: usize::MAX,
            peer_extends: None,
            // A server reads them before the first request.
            unread_settings: role == Role::Server,
            closing: false,
            killed: None,
            heard: 0,
            pinged: false,
            pongs: 0,
            knows_departure: false,
            counts: Counts::default(),
            glitches: 0,
            allowance: Allowance::new(),
            suspicious: false,
            owes_table_size: false,
            reset: VecDeque::new(),
            output: Vec::new(),
            sent: 0,
            last: None,
            queue: Queue::default(),
            window: i64::from(INITIAL_WINDOW),
            stream_window: i64::from(INITIAL_WINDOW),
            // Told with the first payload: clients that send none need no more than the protocol gives them.
            owed: CONNECTION_WINDOW - INITIAL_WINDOW,
            task: None,
        }
    }

    /// Payload begins to wait, for the peer's window of its stream or for something that all streams share.
    pub(super) fn note_stall(&mut self, of_stream: bool) {
        match of_stream {
            true => self.counts.stream_stalls += 1,
            false => self.counts.connection_stalls += u32::from(self.window <= 0),
        }
    }

    /// The connection's task is told when there is something to do.
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        self.task = Some(cx.waker().clone());
    }

    /// The connection has something to do.
    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Streams that are served.
    pub(super) fn open(&self) -> usize {
        self.halves.len() - self.drained
    }

    pub(super) fn half(&mut self, stream: u32) -> Option<&mut Half> {
        self.halves.get_mut(stream)
    }

    /// A half for a stream that is about to begin.
    pub(super) fn fresh(&mut self) -> Box<Half> {
        let mut half = spare::take();
        let credit = if self.unread_settings { INITIAL_WINDOW } else { self.terms.window };
        half.renew(credit, self.stream_window);
        half
    }

    /// A request begins. `None`: as many as the server takes are under way, or there are to be no more.
    pub(super) fn begin_request(&mut self) -> Option<u32> {
        if !self.may_begin() {
            return None;
        }
        let key = UNOPENED | self.begun;
        self.begun += 1;
        let half = self.fresh();
        self.halves.push(key, half);
        Some(key)
    }

    /// Whether a request can begin.
    pub(super) fn may_begin(&self) -> bool {
        !self.is_closing() && self.halves.len() < self.terms.max_streams.min(self.peer_streams)
    }

    /// Whether no request begins any more.
    pub(super) fn is_closing(&self) -> bool {
        let all = self.terms.max_total > 0 && self.begun >= self.terms.max_total;
        self.closing || all || self.begun >= UNOPENED / 4
    }

    /// Bytes that the client may send on a stream only until it has read our settings.
    fn unread_window(&self) -> i64 {
        if self.unread_settings { i64::from(INITIAL_WINDOW) - i64::from(self.terms.window) } else { 0 }
    }

    /// A request goes out: it gets the next number. Streams are opened in the order of their numbers (RFC 9113, section
    /// 5.1.1).
    pub(super) fn open_stream(&mut self, key: u32) -> u32 {
        if key < UNOPENED {
            return key;
        }
        let stream = if self.newest == 0 { 1 } else { self.newest + 2 };
        let Some(half) = self.halves.number(key, stream) else { return key };
        if std::mem::take(&mut half.queued) {
            self.queue.remove(key);
        }
        self.newest = stream;
        self.counts.streams += 1;
        stream
    }

    /// The client has read our settings: what it may send on streams that have begun changes, as it does on its side (RFC 9113,
    /// section 6.9.2).
    pub(super) fn note_read_settings(&mut self) {
        let less = self.unread_window();
        if std::mem::take(&mut self.unread_settings) {
            self.halves.iter_mut().for_each(|(_, half)| half.credit -= less);
        }
    }

    /// The peer has told its settings: those that have waited for them may go on.
    pub(super) fn note_settings(&mut self) {
        if self.peer_extends.is_none() {
            self.peer_extends = Some(false);
        }
        for (_, half) in self.halves.iter_mut().filter(|(key, _)| *key >= UNOPENED) {
            half.wake();
        }
    }

    /// A request cannot go out over this connection, whose server does not take its kind. One that has never carried a
    /// request ends with that.
    pub(super) fn refuse_request(&mut self, key: u32) {
        if self.newest == 0 {
            self.newest = 1;
            self.reset(self.newest, ErrorCode::Cancel);
            self.closing = true;
        }
        self.abort(key, false);
        self.wake();
    }

    /// The server takes no more requests, and none of those above `last`.
    pub(super) fn go_away(&mut self, last: u32) {
        self.closing = true;
        for (stream, half) in self.halves.iter_mut() {
            if stream > last {
                half.refused |= !half.has_head;
                half.fail();
            }
        }
    }

    /// A stream begins, above all others.
    pub(super) fn begin(&mut self, stream: u32, half: Box<Half>) {
        self.counts.streams += 1;
        self.halves.push(stream, half);
    }

    /// Nothing was done for the request of a stream, which is not answered: it may be sent again.
    pub(super) fn refuse(&mut self, stream: u32) {
        if self.half(stream).is_some_and(|half| !half.failed && !half.complete) {
            self.reset(stream, ErrorCode::RefusedStream);
            self.abort(stream, false);
        }
    }

    /// Nobody has the stream any more. It is reset unless both messages have ended, or ours has and the peer may send
    /// `rest` bytes more, which are dropped.
    pub(super) fn leave(&mut self, stream: u32, rest: Option<usize>) {
        let Some(half) = self.half(stream).filter(|half| half.draining.is_none()) else { return };
        match rest {
            Some(_) if !half.failed && half.complete && !half.ended => {
                let left = half.payload().len();
                half.rest(rest);
                self.drained += 1;
                self.drain(stream, left);
                self.bound_drained();
            }
            _ => {
                if stream < UNOPENED && !half.failed && !(half.complete && half.ended) {
                    self.reset(stream, ErrorCode::Cancel);
                }
                self.forget(stream);
            }
        }
        self.wake();
    }

    /// Nothing more comes of the stream, nor goes out.
    pub(super) fn forget(&mut self, stream: u32) {
        let Some(mut half) = self.halves.remove(stream) else { return };
        self.unqueue(stream, &mut half);
        self.shareable += half.share;
        self.drained -= usize::from(half.draining.is_some());
        self.counts.ended += u32::from(stream < UNOPENED);
        spare::keep(half);
    }

    /// Streams that are answered before their request has ended take memory although they are not counted as open: a peer
    /// that never ends them gets no more than so many.
    fn bound_drained(&mut self) {
        if self.drained <= MOST_DRAINED {
            return;
        }
        let oldest = self.halves.iter().find(|(_, half)| half.draining.is_some()).map(|(stream, _)| stream);
        if let Some(oldest) = oldest {
            self.reset(oldest, ErrorCode::NoError);
            self.forget(oldest);
            self.charge(FAILED_STREAM);
        }
    }

    /// So much has come of a request that nobody serves any more. What is too much is of no use (RFC 9113, section 8.1).
    pub(super) fn drain(&mut self, stream: u32, bytes: usize) {
        let Some(left) = self.half(stream).and_then(|half| half.draining.as_mut()) else { return };
        match left.checked_sub(bytes) {
            Some(rest) => {
                *left = rest;
                self.note_taken(stream, bytes);
            }
            None => {
                self.reset(stream, ErrorCode::NoError);
                self.forget(stream);
            }
        }
    }

    /// The stream is over before its messages are. `refused`: the peer has not begun with the request.
    pub(super) fn abort(&mut self, stream: u32, refused: bool) {
        let Some(half) = self.half(stream) else { return };
        half.refused = refused && !half.has_head;
        half.fail();
        if half.draining.is_some() {
            self.forget(stream);
        }
    }

    /// Resets a stream.
    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode) {
        self.push(Kind::RstStream, 0, stream, &code.bytes());
        if self.reset.len() == RESET {
            self.reset.pop_front();
        }
        self.reset.push_back(stream);
    }

    /// Whether frames of it that come mean nothing: we have reset it lately, when they were under way. What a server sends for
    /// a request of ours that has ended never means anything.
    pub(super) fn was_reset(&self, stream: u32) -> bool {
        self.role == Role::Client || self.reset.contains(&stream)
    }

    /// Every stream is told that the connection has ended.
    pub(super) fn fail(&mut self) {
        for (_, half) in self.halves.iter_mut() {
            half.fail();
        }
    }

    /// Sees to it that the output has memory.
    fn lend_output(&mut self) {
        if self.output.capacity() == 0 {
            self.output = spare::bytes();
        }
    }

    /// Queues a frame.
    pub(super) fn push(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        self.lend_output();
        push_frame(&mut self.output, kind, flags, stream, payload);
        self.last = None;
    }

    /// Queues bytes that are no frame.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.lend_output();
        self.output.extend_from_slice(bytes);
        self.last = None;
    }

    /// Queues frames of heads, which become those of the stream.
    pub(super) fn push_heads(&mut self, stream: u32, frames: &[u8]) {
        self.lend_output();
        let mut rest = frames;
        while let Some(mut header) = FrameHeader::parse(rest) {
            let (frame, behind) = rest.split_at((HEADER_LENGTH + header.length).min(rest.len()));
            rest = behind;
            header.stream = stream;
            if header.kind == Kind::Headers {
                self.last = Some((stream, self.output.len()));
                if std::mem::take(&mut self.owes_table_size) {
                    let flags = header.flags & flag::END_STREAM;
                    push_frame(&mut self.output, Kind::Headers, flags, stream, &EMPTY_TABLE);
                    header.kind = Kind::Continuation;
                    header.flags &= !flag::END_STREAM;
                }
            }
            self.output.extend_from_slice(&header.bytes());
            self.output.extend_from_slice(&frame[HEADER_LENGTH..]);
        }
    }

    /// Queues the fields behind a message's payload, which end it.
    pub(super) fn push_trailers(&mut self, stream: u32, trailers: &Fields) -> bool {
        let mut frames = Vec::new();
        if wire::h2::encode_trailers(stream, trailers, &mut frames).is_err() {
            return false;
        }
        self.push_heads(stream, &frames);
        self.last = None;
        true
    }

    /// Queues a frame of payload, and counts it against both windows.
    pub(super) fn push_payload(&mut self, stream: u32, payload: &[u8]) {
        let begin = self.output.len();
        self.allowance.earn(EARNED);
        self.push(Kind::Data, 0, stream, payload);
        self.last = Some((stream, begin));
        let sent = payload.len() as i64;
        self.window -= sent;
        if let Some(half) = self.half(stream) {
            half.window -= sent;
            half.stalled = false;
        }
    }

    /// A stream's message ends: with its last frame where that is not out yet, else with an empty one.
    pub(super) fn push_end(&mut self, stream: u32) {
        match self.last.take() {
            Some((last, at)) if last == stream => self.output[at + 4] |= flag::END_STREAM,
            _ => self.push(Kind::Data, flag::END_STREAM, stream, &[]),
        }
    }

    /// Bytes of payload that the connection takes now, for whatever stream.
    pub(super) fn room(&self) -> usize {
        let room = self.full().saturating_sub(self.waiting());
        room.min(usize::try_from(self.window).unwrap_or(0))
    }

    /// Whether a stream's head may be queued.
    pub(super) fn has_room(&self) -> bool {
        self.waiting() < self.full()
    }

    fn full(&self) -> usize {
        if self.queue.is_ranked() { FULL_RANKED } else { FULL }
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Whether nothing more is read before something was written.
    pub(super) fn is_stuffed(&self) -> bool {
        self.waiting() > STUFFED
    }

    /// What is to be written next. From now on no frame of it changes.
    pub(super) fn output(&mut self) -> &[u8] {
        self.last = None;
        &self.output[self.sent..]
    }

    /// So much of it is out.
    pub(super) fn note_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
        } else if self.sent > FULL {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Holds no memory for what waits while nothing does.
    pub(super) fn rest(&mut self) {
        if self.output.is_empty() && self.halves.is_empty() {
            spare::keep_bytes(std::mem::take(&mut self.output));
            self.queue.rest();
        }
    }

    /// Payload has come, or padding: the connection's window is given back at once.
    pub(super) fn note_received(&mut self, bytes: usize) {
        self.owed = self.owed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if self.owed >= CONNECTION_WINDOW / 4 {
            let owed = std::mem::take(&mut self.owed);
            self.push(Kind::WindowUpdate, 0, 0, &owed.to_be_bytes());
        }
    }

    /// A stream that carries payload gets a half of what none has.
    pub(super) fn enlarge(&mut self, stream: u32) {
        let share = self.shareable / 2;
        let least = self.terms.window;
        let Some(half) = self.half(stream).filter(|half| half.share == 0) else { return };
        if share >= least {
            half.share = share;
            half.owed += share;
            self.shareable -= share;
        }
    }

    /// Grants a request more window if its payload may not fit the initial one.
    pub(super) fn welcome_payload(&mut self, stream: u32) {
        let unread = self.unread_window();
        let Some(half) = self.half(stream) else { return };
        if half.announced.is_some_and(|length| i64::try_from(length).is_ok_and(|length| length <= half.credit - unread))
        {
            return;
        }
        self.enlarge(stream);
        self.note_taken(stream, 0);
    }

    /// A stream's task has taken so much: the peer is told when it is worth a frame.
    pub(super) fn note_taken(&mut self, stream: u32, bytes: usize) {
        let (window, unread) = (self.terms.window, self.unread_window());
        let Some(half) = self.half(stream) else { return };
        half.owed = half.owed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if half.ended || half.failed || half.owed < ((window + half.share) / 2).max(1) {
            return;
        }
        // What is still to come fits what the peer may send.
        if half.announced.is_some_and(|left| i64::try_from(left).is_ok_and(|left| left <= half.credit - unread)) {
            return;
        }
        if half.share == 0 {
            self.enlarge(stream);
        }
        let Some(half) = self.half(stream) else { return };
        let owed = std::mem::take(&mut half.owed);
        half.credit += i64::from(owed);
        self.push(Kind::WindowUpdate, 0, stream, &owed.to_be_bytes());
        self.wake();
    }

    /// The client takes so much more; of one stream, or of all.
    pub(super) fn grow(&mut self, stream: u32, by: u32) -> Result<(), Fault> {
        if stream == 0 {
            self.window += i64::from(by);
            if self.window > i64::from(MAX_WINDOW) {
                return Err(Fault::Connection(ErrorCode::FlowControlError));
            }
            return Ok(());
        }
        let Some(half) = self.half(stream) else { return Ok(()) };
        if half.enlarge_window(i64::from(by)) {
            return Ok(());
        }
        Err(Fault::Stream(stream, ErrorCode::FlowControlError))
    }

    /// The client takes so much of each stream (SETTINGS_INITIAL_WINDOW_SIZE), also of those that have begun.
    pub(super) fn set_stream_window(&mut self, window: u32) -> Result<(), Fault> {
        let more = i64::from(window) - self.stream_window;
        self.stream_window = i64::from(window);
        for (_, half) in self.halves.iter_mut() {
            if !half.enlarge_window(more) {
                return Err(Fault::Connection(ErrorCode::FlowControlError));
            }
        }
        Ok(())
    }

    /// Bytes of memory that the connection and its streams hold, what tasks have taken not included.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        let halves: usize = self.halves.iter().map(|(_, half)| half.held()).sum();
        let lists = 16 * self.halves.capacity() + self.queue.held();
        halves + lists + 4 * self.reset.capacity() + self.output.capacity()
    }
}
