//! State shared by a connection and the tasks of its streams. Owns the windows of both directions and the bytes that
//! wait to be written; must never read or write the connection.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use wire::h2::{ErrorCode, FrameHeader, HEADER_LENGTH, INITIAL_WINDOW, Kind, MAX_WINDOW, flag, push_frame};
use wire::http::Fields;

use super::counts::{Allowance, Counts, EARNED, FAILED_STREAM};
use super::kill::Kill;
use super::queue::Queue;
use super::stream_half::Half;
use super::stream_memory;
use super::stream_table::{Halves, UNOPENED};
use super::{Role, Terms};

/// The number of bytes waiting to be written above which streams wait.
const FULL: usize = 128 * 1024;

/// The same if the client has set priorities: urgent payload should not wait for much of the other.
const FULL_RANKED: usize = 3 * wire::h2::MAX_FRAME_SIZE;

/// The number of bytes waiting to be written above which nothing is read: acknowledgements of pings and settings are
/// queued in addition to the streams' bytes.
const STUFFED: usize = FULL + 16 * 1024;

/// The connection's receive window in bytes; it is credited at once, because each stream has a window of its own.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// The most bytes of a request that are read and dropped after its answer: many clients ignore the answer on a stream
/// that is reset while they send.
pub(super) const DRAINED: usize = 16 << 20;

/// The number of reset streams remembered whose frames may still arrive.
const RESET: usize = 64;

/// The most streams whose answer was sent while their request is still received; if there are more, the oldest one is
/// reset.
const MOST_DRAINED: usize = RESET;

/// A table size update to 0, for heads that do not use the dynamic table (RFC 7541, section 6.3).
const EMPTY_TABLE: [u8; 1] = [0x20];

/// An error of a stream or of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Connection(ErrorCode),
    Stream(u32, ErrorCode),
}

pub(super) struct State {
    pub(super) role: Role,
    pub(super) terms: Terms,
    /// Streams being served.
    pub(super) halves: Halves,
    /// The number of them that were released by their tasks.
    drained: usize,
    /// The newest stream that was opened.
    pub(super) newest: u32,
    /// The number of requests begun.
    begun: u32,
    /// The server's limit of concurrent streams.
    pub(super) peer_streams: usize,
    /// Whether the server supports extended CONNECT (RFC 8441); `None`: its SETTINGS were not received.
    pub(super) peer_extends: Option<bool>,
    /// Whether the client has not read our settings yet, so that the protocol's default windows apply.
    pub(super) unread_settings: bool,
    /// Whether no more requests can begin.
    pub(super) closing: bool,
    /// Set when a request ends the whole connection at once.
    pub(super) killed: Option<Kill>,
    /// The number of reads that returned bytes.
    pub(super) heard: u64,
    /// Whether a PING was sent and not acknowledged.
    pub(super) pinged: bool,
    /// The number of PINGs acknowledged.
    pub(super) pongs: u32,
    /// Whether the peer has acknowledged the GOAWAY, after everything that it sent before was received.
    pub(super) knows_departure: bool,
    /// Counters since the connection's task last took them.
    pub(super) counts: Counts,
    /// The total number of glitches.
    pub(super) glitches: u32,
    /// The allowance of frames without use, and the points that the peer's faults have cost.
    pub(super) allowance: Allowance,
    /// Whether a limit of glitches or of the budget may have been reached.
    pub(super) suspicious: bool,
    /// Whether the peer has asked for a smaller table, so that the next head has to begin with a table size update (RFC
    /// 7541, section 4.2).
    pub(super) owes_table_size: bool,
    reset: VecDeque<u32>,
    /// Bytes that wait to be written, of which `sent` were sent.
    output: Vec<u8>,
    sent: usize,
    /// The last frame queued for a message, whose END_STREAM flag may still be set.
    last: Option<(u32, usize)>,
    pub(super) queue: Queue,
    /// The connection's send window: bytes of payload that the peer accepts on all streams.
    pub(super) window: i64,
    /// Initial send window of each new stream, in bytes of payload that the peer accepts.
    pub(super) stream_window: i64,
    /// Bytes of payload received and not credited to the connection's receive window.
    owed: u32,
    /// Bytes of the shared receive window not assigned to a stream.
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
            // Announced with the first payload: clients that send none need no more than the protocol's default.
            owed: CONNECTION_WINDOW - INITIAL_WINDOW,
            task: None,
        }
    }

    /// Counts payload that begins to wait, for the peer's window of its stream or for something shared by all streams.
    pub(super) fn note_stall(&mut self, of_stream: bool) {
        match of_stream {
            true => self.counts.stream_stalls += 1,
            false => self.counts.connection_stalls += u32::from(self.window <= 0),
        }
    }

    /// Registers the connection's task to be woken.
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        self.task = Some(cx.waker().clone());
    }

    /// Wakes the connection's task.
    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// The number of streams being served.
    pub(super) fn open(&self) -> usize {
        self.halves.len() - self.drained
    }

    pub(super) fn half(&mut self, stream: u32) -> Option<&mut Half> {
        self.halves.get_mut(stream)
    }

    /// Returns a half for a stream that is about to begin.
    pub(super) fn fresh(&mut self) -> Box<Half> {
        let mut half = stream_memory::take();
        let credit = if self.unread_settings { INITIAL_WINDOW } else { self.terms.window };
        half.renew(credit, self.stream_window);
        half
    }

    /// Begins a request. `None`: the maximum is in progress, or there are to be no more.
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

    /// Whether no more requests can begin.
    pub(super) fn is_closing(&self) -> bool {
        let all = self.terms.max_total > 0 && self.begun >= self.terms.max_total;
        self.closing || all || self.begun >= UNOPENED / 4
    }

    /// Bytes that the client may send on a stream only until it has read our settings.
    fn unread_window(&self) -> i64 {
        if self.unread_settings { i64::from(INITIAL_WINDOW) - i64::from(self.terms.window) } else { 0 }
    }

    /// Assigns the next stream identifier to a request that is sent. Streams are opened in the order of their
    /// identifiers (RFC 9113, section 5.1.1).
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

    /// Handles the acknowledgement of our settings: the windows of streams that have begun change, as they do at the
    /// client (RFC 9113, section 6.9.2).
    pub(super) fn note_read_settings(&mut self) {
        let less = self.unread_window();
        if std::mem::take(&mut self.unread_settings) {
            self.halves.iter_mut().for_each(|(_, half)| half.credit -= less);
        }
    }

    /// Handles the end of the peer's SETTINGS: requests that have waited for them are woken.
    pub(super) fn note_settings(&mut self) {
        if self.peer_extends.is_none() {
            self.peer_extends = Some(false);
        }
        for (_, half) in self.halves.iter_mut().filter(|(key, _)| *key >= UNOPENED) {
            half.wake();
        }
    }

    /// Refuses a request of a kind that the server does not support. A connection that has never carried a request ends
    /// with it.
    pub(super) fn refuse_request(&mut self, key: u32) {
        if self.newest == 0 {
            self.newest = 1;
            self.reset(self.newest, ErrorCode::Cancel);
            self.closing = true;
        }
        self.abort(key, false);
        self.wake();
    }

    /// Handles a server's GOAWAY: no more requests can begin, and those above `last` fail.
    pub(super) fn go_away(&mut self, last: u32) {
        self.closing = true;
        for (stream, half) in self.halves.iter_mut() {
            if stream > last {
                half.refused |= !half.has_head;
                half.fail();
            }
        }
    }

    /// Adds a stream whose identifier is the largest.
    pub(super) fn begin(&mut self, stream: u32, half: Box<Half>) {
        self.counts.streams += 1;
        self.halves.push(stream, half);
    }

    /// Resets a stream as refused, unless it was answered: its request was not processed, and may be sent again.
    pub(super) fn refuse(&mut self, stream: u32) {
        if self.half(stream).is_some_and(|half| !half.failed && !half.complete) {
            self.reset(stream, ErrorCode::RefusedStream);
            self.abort(stream, false);
        }
    }

    /// Releases a stream. It is reset unless both messages have ended, or ours has ended and the peer may send `rest`
    /// more bytes, which are dropped.
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

    /// Removes a stream: nothing more is received or sent on it.
    pub(super) fn forget(&mut self, stream: u32) {
        let Some(mut half) = self.halves.remove(stream) else { return };
        self.unqueue(stream, &mut half);
        self.shareable += half.share;
        self.drained -= usize::from(half.draining.is_some());
        self.counts.ended += u32::from(stream < UNOPENED);
        stream_memory::keep(half);
    }

    /// Limits the streams that are answered before their request has ended: they take memory although they are not
    /// counted as open.
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

    /// Counts received bytes of a request that was released. If they are too many, the rest is refused (RFC 9113,
    /// section 8.1).
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

    /// Ends a stream before its messages have ended. `refused`: the peer has not begun the request.
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

    /// Whether received frames of the stream are ignored: it was reset recently, while they were on their way. Frames
    /// of a server for a request that has ended are always ignored.
    pub(super) fn was_reset(&self, stream: u32) -> bool {
        self.role == Role::Client || self.reset.contains(&stream)
    }

    /// Ends all streams, because the connection has ended.
    pub(super) fn fail(&mut self) {
        for (_, half) in self.halves.iter_mut() {
            half.fail();
        }
    }

    /// Makes sure that the output has memory.
    fn lend_output(&mut self) {
        if self.output.capacity() == 0 {
            self.output = stream_memory::bytes();
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

    /// Queues frames of heads, with the stream's identifier.
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

    /// Queues the trailers after a message's payload, which end it.
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

    /// Ends a stream's message: by a flag of its last frame if that was not sent yet, else with an empty frame.
    pub(super) fn push_end(&mut self, stream: u32) {
        match self.last.take() {
            Some((last, at)) if last == stream => self.output[at + 4] |= flag::END_STREAM,
            _ => self.push(Kind::Data, flag::END_STREAM, stream, &[]),
        }
    }

    /// Bytes of payload that can be queued now, for any stream.
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

    /// The number of bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Whether nothing more is read before something was written.
    pub(super) fn is_stuffed(&self) -> bool {
        self.waiting() > STUFFED
    }

    /// The bytes to be written next. From now on their frames are not changed.
    pub(super) fn output(&mut self) -> &[u8] {
        self.last = None;
        &self.output[self.sent..]
    }

    /// Removes bytes that were sent.
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

    /// Releases the memory for waiting bytes if there are none.
    pub(super) fn rest(&mut self) {
        if self.output.is_empty() && self.halves.is_empty() {
            stream_memory::keep_bytes(std::mem::take(&mut self.output));
            self.queue.rest();
        }
    }

    /// Accounts for received payload or padding, which is credited to the connection's window at once.
    pub(super) fn note_received(&mut self, bytes: usize) {
        self.owed = self.owed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if self.owed >= CONNECTION_WINDOW / 4 {
            let owed = std::mem::take(&mut self.owed);
            self.push(Kind::WindowUpdate, 0, 0, &owed.to_be_bytes());
        }
    }

    /// Assigns half of the unassigned shared window to a stream that carries payload.
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

    /// Enlarges a request's receive window if its payload may not fit the initial one.
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

    /// Accounts for bytes taken by a stream's task: a WINDOW_UPDATE is sent when it is worth a frame.
    pub(super) fn note_taken(&mut self, stream: u32, bytes: usize) {
        let (window, unread) = (self.terms.window, self.unread_window());
        let Some(half) = self.half(stream) else { return };
        half.owed = half.owed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if half.ended || half.failed || half.owed < ((window + half.share) / 2).max(1) {
            return;
        }
        // The rest of the payload fits the receive window.
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

    /// Handles a WINDOW_UPDATE, for one stream or for the connection.
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

    /// Applies SETTINGS_INITIAL_WINDOW_SIZE, also to streams that have begun.
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

    /// Bytes of memory that the connection and its streams hold, without bytes taken by tasks.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        let halves: usize = self.halves.iter().map(|(_, half)| half.held()).sum();
        let lists = 16 * self.halves.capacity() + self.queue.held();
        halves + lists + 4 * self.reset.capacity() + self.output.capacity()
    }
}
