//! State shared by a connection and the tasks of its streams. Owns the windows of both directions and the bytes that
//! wait to be written; must never read or write the connection.

use std::rc::Rc;
use std::task::{Context, Waker};

use wire::h2::{ErrorCode, INITIAL_WINDOW, Kind, MAX_WINDOW};
use wire::http::Fields;

use super::cell::{FORGOTTEN, StreamCell};
use super::kill::Kill;
use super::queue::Queue;
use super::rare_list::RareList;
use super::shared_terms;
use super::stream_half::Half;
use super::stream_memory;
use super::stream_table::UNOPENED;
use super::traffic::TrafficSlot;
use super::{Role, Terms};
use crate::conduct::{Conduct, EARNED, FAILED_STREAM};

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

/// An error of a stream or of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Connection(ErrorCode),
    Stream(u32, ErrorCode),
}

/// The settings of the peer.
pub(super) struct PeerSettings {
    /// The server's limit of concurrent streams.
    pub(super) streams: u32,
    /// Initial send window of each new stream, in bytes of payload that the peer accepts.
    pub(super) stream_window: u32,
    /// Whether the server supports extended CONNECT (RFC 8441); `None`: its SETTINGS were not received.
    pub(super) extends: Option<bool>,
    /// Whether the peer has asked for a smaller table, so that the next head has to begin with a table size update (RFC
    /// 7541, section 4.2).
    pub(super) owes_table_size: bool,
}

/// Signs of life of the peer.
#[derive(Default)]
pub(super) struct Life {
    /// The number of reads that returned bytes.
    pub(super) heard: u64,
    /// Whether a PING was sent and not acknowledged.
    pub(super) pinged: bool,
    /// The number of PINGs acknowledged.
    pub(super) pongs: u32,
}

/// Why no more requests begin on a connection.
#[derive(Default)]
pub(super) struct Closing {
    /// Whether no more requests can begin.
    pub(super) begun: bool,
    /// Set when a request ends the whole connection at once.
    pub(super) killed: Option<Kill>,
    /// Whether the peer has acknowledged the GOAWAY, after everything that it sent before was received.
    pub(super) is_known: bool,
}

pub(super) struct State {
    pub(super) role: Role,
    pub(super) terms: Rc<Terms>,
    /// Streams, their output and counters.
    pub(super) traffic: TrafficSlot,
    /// The newest stream that was opened.
    pub(super) newest: u32,
    /// The number of requests begun.
    pub(super) begun: u32,
    pub(super) peer: PeerSettings,
    /// Whether the client has not read our settings yet, so that the protocol's default windows apply.
    pub(super) unread_settings: bool,
    pub(super) closing: Closing,
    pub(super) life: Life,
    pub(super) conduct: Conduct,
    /// The latest streams that were reset.
    pub(super) reset: RareList<u32>,
    pub(super) queue: Queue,
    /// The connection's send window: bytes of payload that the peer accepts on all streams.
    pub(super) window: i64,
    /// Bytes of payload received and not credited to the connection's receive window.
    pub(super) owed: u32,
    /// Bytes of the shared receive window not assigned to a stream.
    pub(super) shareable: u32,
    /// The connection's task.
    pub(super) task: Option<Waker>,
}

// Most connections of clients are idle.
const _: () = assert!(size_of::<std::cell::RefCell<State>>() <= 160);

impl State {
    pub(super) fn new(role: Role, terms: Terms) -> Self {
        Self {
            role,
            shareable: terms.shared_window,
            terms: shared_terms::of(terms),
            traffic: TrafficSlot::default(),
            newest: 0,
            begun: 0,
            peer: PeerSettings {
                streams: u32::MAX,
                stream_window: INITIAL_WINDOW,
                extends: None,
                owes_table_size: false,
            },
            // A server reads them before the first request.
            unread_settings: role == Role::Server,
            closing: Closing::default(),
            life: Life::default(),
            conduct: Conduct::new(),
            reset: RareList::default(),
            queue: Queue::default(),
            window: i64::from(INITIAL_WINDOW),
            // Announced with the first payload: clients that send none need no more than the protocol's default.
            owed: CONNECTION_WINDOW - INITIAL_WINDOW,
            task: None,
        }
    }

    /// Counts payload that begins to wait, for the peer's window of its stream or for something shared by all streams.
    pub(super) fn note_stall(&mut self, of_stream: bool) {
        match of_stream {
            true => self.counts().stream_stalls += 1,
            false => self.counts().connection_stalls += u32::from(self.window <= 0),
        }
    }

    /// Registers the connection's task to be woken.
    #[inline]
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Wakes the connection's task.
    #[inline]
    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// The number of streams being served.
    pub(super) fn open(&self) -> usize {
        self.traffic.get().map_or(0, |traffic| traffic.halves.len() - traffic.drained)
    }

    /// Returns a stream.
    #[inline]
    pub(super) fn stream(&self, stream: u32) -> Option<Rc<StreamCell>> {
        self.find(stream).map(Rc::clone)
    }

    /// Returns memory for a stream that is about to begin.
    pub(super) fn fresh(&self) -> Rc<StreamCell> {
        let cell = stream_memory::take();
        let credit = if self.unread_settings { INITIAL_WINDOW } else { self.terms.window };
        cell.renew(credit, i64::from(self.peer.stream_window));
        cell
    }

    /// Begins a request. `None`: the maximum is in progress, or there are to be no more.
    pub(super) fn begin_request(&mut self) -> Option<Rc<StreamCell>> {
        if !self.may_begin() {
            return None;
        }
        let key = UNOPENED | self.begun;
        self.begun += 1;
        let cell = self.fresh();
        cell.number.set(key);
        cell.heard.set(self.life.heard);
        self.traffic().halves.push(key, Rc::clone(&cell));
        Some(cell)
    }

    /// Whether a request can begin.
    pub(super) fn may_begin(&self) -> bool {
        let open = self.traffic.get().map_or(0, |traffic| traffic.halves.len());
        !self.is_closing() && open < self.most_streams()
    }

    /// The number of concurrent streams that both sides permit.
    pub(super) fn most_streams(&self) -> usize {
        self.terms.max_streams.min(self.peer.streams as usize)
    }

    /// Whether no more requests can begin.
    pub(super) fn is_closing(&self) -> bool {
        let all = self.terms.max_total > 0 && self.begun >= self.terms.max_total;
        self.closing.begun || all || self.begun >= UNOPENED / 4
    }

    /// Bytes that the client may send on a stream only until it has read our settings.
    fn unread_window(&self) -> i64 {
        if self.unread_settings { i64::from(INITIAL_WINDOW) - i64::from(self.terms.window) } else { 0 }
    }

    /// Assigns the next stream identifier to a request that is sent. Streams are opened in the order of their
    /// identifiers (RFC 9113, section 5.1.1).
    pub(super) fn open_stream(&mut self, cell: &StreamCell, half: &mut Half) -> u32 {
        let key = cell.number.get();
        if key < UNOPENED {
            return key;
        }
        let stream = if self.newest == 0 { 1 } else { self.newest + 2 };
        let traffic = self.traffic.lend();
        if !traffic.halves.number(key, stream) {
            return key;
        }
        traffic.counts.streams += 1;
        self.unqueue(key, half);
        self.newest = stream;
        cell.number.set(stream);
        stream
    }

    /// Handles the acknowledgement of our settings: the windows of streams that have begun change, as they do at the
    /// client (RFC 9113, section 6.9.2).
    pub(super) fn note_read_settings(&mut self) {
        let less = self.unread_window();
        if std::mem::take(&mut self.unread_settings) {
            self.streams().for_each(|(_, cell)| cell.half().credit -= less);
        }
    }

    /// Handles the end of the peer's SETTINGS: requests that have waited for them are woken.
    pub(super) fn note_settings(&mut self) {
        if self.peer.extends.is_none() {
            self.peer.extends = Some(false);
        }
        for (_, cell) in self.streams().filter(|(key, _)| *key >= UNOPENED) {
            cell.half().wake();
        }
    }

    /// Refuses a request of a kind that the server does not support. A connection that has never carried a request ends
    /// with it.
    pub(super) fn refuse_request(&mut self, key: u32) {
        if self.newest == 0 {
            self.newest = 1;
            self.reset(self.newest, ErrorCode::Cancel);
            self.closing.begun = true;
        }
        self.abort(key, false);
        self.wake();
    }

    /// Handles a server's GOAWAY: no more requests can begin, and those above `last` fail.
    pub(super) fn go_away(&mut self, last: u32) {
        self.closing.begun = true;
        for (stream, cell) in self.streams() {
            if stream > last {
                let half = &mut *cell.half();
                half.refused |= !half.has_head;
                half.fail();
            }
        }
    }

    /// Adds a stream whose identifier is the largest.
    pub(super) fn begin(&mut self, stream: u32, cell: Rc<StreamCell>) {
        cell.number.set(stream);
        let traffic = self.traffic.lend();
        traffic.counts.streams += 1;
        traffic.halves.push(stream, cell);
    }

    /// Releases a stream. It is reset unless both messages have ended, or ours has ended and the peer may send more
    /// bytes ([`StreamCell::rest`]), which are dropped. A refused stream is reset as such, unless it was answered: its
    /// request was not processed, and may be sent again.
    pub(super) fn leave(&mut self, cell: &StreamCell) {
        let stream = cell.number.get();
        let mut half = cell.half();
        if stream == FORGOTTEN || half.draining.is_some() {
            return;
        }
        if cell.refuses.get() && !half.failed && !half.complete {
            self.reset(stream, ErrorCode::RefusedStream);
            half.fail();
        }
        match cell.rest.get() {
            rest @ Some(_) if !half.failed && half.complete && !half.ended => {
                let left = half.payload().len();
                half.rest(rest);
                self.traffic().drained += 1;
                if self.drain(stream, &mut half, left) {
                    self.forget_half(stream, &mut half);
                }
                drop(half);
                self.bound_drained();
            }
            _ => {
                if stream < UNOPENED && !half.failed && !(half.complete && half.ended) {
                    self.reset(stream, ErrorCode::Cancel);
                }
                self.forget_half(stream, &mut half);
            }
        }
        self.wake();
    }

    /// Removes a stream: nothing more is received or sent on it.
    pub(super) fn forget(&mut self, cell: &StreamCell) {
        let half = &mut *cell.half();
        self.forget_half(cell.number.get(), half);
    }

    /// As [`State::forget`], of a stream whose half is borrowed.
    pub(super) fn forget_half(&mut self, stream: u32, half: &mut Half) {
        let Some(traffic) = self.traffic.get_mut() else { return };
        let Some(cell) = traffic.halves.remove(stream) else { return };
        traffic.drained -= usize::from(half.draining.is_some());
        traffic.counts.ended += u32::from(stream < UNOPENED);
        // To an owner that has not dropped it, it has failed.
        half.failed = true;
        cell.number.set(FORGOTTEN);
        self.unqueue(stream, half);
        self.shareable += half.share;
        half.shrink();
        stream_memory::keep(cell);
    }

    /// Limits the streams that are answered before their request has ended: they take memory although they are not
    /// counted as open.
    fn bound_drained(&mut self) {
        if self.traffic().drained <= MOST_DRAINED {
            return;
        }
        let oldest = self.streams().find(|(_, cell)| cell.half().draining.is_some());
        if let Some((stream, oldest)) = oldest.map(|(stream, cell)| (stream, Rc::clone(cell))) {
            self.reset(stream, ErrorCode::NoError);
            self.forget(&oldest);
            self.charge(FAILED_STREAM);
        }
    }

    /// Counts received bytes of a request that was released. Returns true if they are too many: the rest was refused
    /// (RFC 9113, section 8.1), and the stream is to be forgotten.
    pub(super) fn drain(&mut self, stream: u32, half: &mut Half, bytes: usize) -> bool {
        let Some(left) = half.draining.as_mut() else { return false };
        match left.checked_sub(bytes) {
            Some(rest) => {
                *left = rest;
                self.note_taken(stream, half, bytes);
                false
            }
            None => {
                self.reset(stream, ErrorCode::NoError);
                true
            }
        }
    }

    /// Ends a stream before its messages have ended. `refused`: the peer has not begun the request.
    pub(super) fn abort(&mut self, stream: u32, refused: bool) {
        let Some(cell) = self.stream(stream) else { return };
        let half = &mut *cell.half();
        half.refused = refused && !half.has_head;
        half.fail();
        if half.draining.is_some() {
            self.forget_half(stream, half);
        }
    }

    /// Resets a stream.
    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode) {
        self.push(Kind::RstStream, 0, stream, &code.bytes());
        self.reset.push(stream, RESET);
    }

    /// Whether received frames of the stream are ignored: it was reset recently, while they were on their way. Frames
    /// of a server for a request that has ended are always ignored.
    pub(super) fn was_reset(&self, stream: u32) -> bool {
        self.role == Role::Client || self.reset.iter().any(|reset| *reset == stream)
    }

    /// Ends all streams, because the connection has ended.
    pub(super) fn fail(&mut self) {
        for (_, cell) in self.streams() {
            cell.half().fail();
        }
    }

    /// Queues a frame.
    pub(super) fn push(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        self.output().push(kind, flags, stream, payload);
    }

    /// Queues frames of heads, with the stream's identifier.
    #[inline]
    pub(super) fn push_heads(&mut self, stream: u32, frames: &[u8]) {
        let resizes = std::mem::take(&mut self.peer.owes_table_size);
        self.output().push_heads(stream, frames, resizes);
    }

    /// Queues the trailers after a message's payload, which end it.
    pub(super) fn push_trailers(&mut self, stream: u32, trailers: &Fields) -> bool {
        let mut frames = Vec::new();
        if wire::h2::encode_trailers(stream, trailers, &mut frames).is_err() {
            return false;
        }
        self.push_heads(stream, &frames);
        self.output().close_last();
        true
    }

    /// Queues a frame of payload, and counts it against both windows.
    #[inline]
    pub(super) fn push_payload(&mut self, stream: u32, half: &mut Half, payload: &[u8]) {
        self.conduct.earn(EARNED);
        self.output().push_payload(stream, payload);
        let sent = payload.len() as i64;
        self.window -= sent;
        half.window -= sent;
        half.stalled = false;
    }

    /// Ends a stream's message.
    #[inline]
    pub(super) fn push_end(&mut self, stream: u32) {
        self.output().push_end(stream);
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
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.traffic.get().map_or(0, |traffic| traffic.output.waiting())
    }

    /// Whether nothing more is read before something was written.
    pub(super) fn is_stuffed(&self) -> bool {
        self.waiting() > STUFFED
    }

    /// Releases the memory for streams and waiting bytes if there are none.
    #[inline]
    pub(super) fn rest(&mut self) {
        self.traffic.rest();
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
    fn enlarge(&mut self, half: &mut Half) {
        let share = self.shareable / 2;
        if half.share == 0 && share >= self.terms.window {
            half.share = share;
            half.owed += share;
            self.shareable -= share;
        }
    }

    /// Whether the announced rest of the payload fits the receive window.
    fn fits_window(&self, half: &Half) -> bool {
        let credit = half.credit - self.unread_window();
        half.incoming.announced.is_some_and(|left| i64::try_from(left).is_ok_and(|left| left <= credit))
    }

    /// Enlarges a request's receive window if its payload may not fit the initial one.
    pub(super) fn welcome_payload(&mut self, stream: u32, half: &mut Half) {
        if !self.fits_window(half) {
            self.enlarge(half);
            self.note_taken(stream, half, 0);
        }
    }

    /// Accounts for bytes taken by a stream's task: a WINDOW_UPDATE is sent when it is worth a frame.
    #[inline]
    pub(super) fn note_taken(&mut self, stream: u32, half: &mut Half, bytes: usize) {
        half.owed = half.owed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if !half.ended && !half.failed && half.owed >= ((self.terms.window + half.share) / 2).max(1) {
            self.credit(stream, half);
        }
    }

    /// Credits the bytes taken to the stream's receive window, unless the rest of the payload fits it.
    fn credit(&mut self, stream: u32, half: &mut Half) {
        if self.fits_window(half) {
            return;
        }
        self.enlarge(half);
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
        let Some(cell) = self.find(stream) else { return Ok(()) };
        if cell.half().enlarge_window(i64::from(by)) {
            return Ok(());
        }
        Err(Fault::Stream(stream, ErrorCode::FlowControlError))
    }

    /// Applies SETTINGS_INITIAL_WINDOW_SIZE, also to streams that have begun.
    pub(super) fn set_stream_window(&mut self, window: u32) -> Result<(), Fault> {
        let more = i64::from(window) - i64::from(self.peer.stream_window);
        self.peer.stream_window = window;
        for (_, cell) in self.streams() {
            if !cell.half().enlarge_window(more) {
                return Err(Fault::Connection(ErrorCode::FlowControlError));
            }
        }
        Ok(())
    }

    /// Bytes of memory that the connection and its streams hold, without bytes taken by tasks.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        let halves: usize = self.streams().map(|(_, cell)| cell.half().held()).sum();
        halves + self.traffic.held() + self.queue.held() + self.reset.held()
    }
}
