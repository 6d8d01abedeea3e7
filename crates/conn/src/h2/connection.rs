//! A client's connection: frames are read, streams begin, and what they have to send goes out. Must never know what a request
//! says.

use std::cell::RefCell;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use wire::h2::{ErrorCode, INITIAL_WINDOW, Kind, PREFACE, Setting};

use super::reader::{Event, Reader};
use super::state::{Fault, State};
use super::{Stream, Terms};
use crate::h1::Server;

/// Frames, or pieces of frames, that are read in a turn.
const FRAMES: usize = 256;

/// A connection of which the preface was seen.
pub struct Connection<'a> {
    server: &'a mut Server,
    reader: Reader,
    state: Rc<RefCell<State>>,
    opened: u32,
    /// The client was told that the connection ends.
    announced: bool,
    /// The client has broken the protocol.
    broken: bool,
    /// Nothing more is read: it ends once what waits is written.
    over: bool,
}

impl<'a> Connection<'a> {
    /// Goes on with a connection whose input begins with the preface.
    pub fn new(server: &'a mut Server, terms: Terms) -> Self {
        server.input.consume(PREFACE.len());
        let mut state = State::new(terms);
        let mut settings = Vec::new();
        let streams = u32::try_from(terms.max_streams).unwrap_or(u32::MAX);
        settings.extend_from_slice(&Setting::MaxConcurrentStreams.bytes(streams));
        if terms.window != INITIAL_WINDOW {
            settings.extend_from_slice(&Setting::InitialWindowSize.bytes(terms.window));
        }
        if terms.table_size != 4096 {
            let size = u32::try_from(terms.table_size).unwrap_or(u32::MAX);
            settings.extend_from_slice(&Setting::HeaderTableSize.bytes(size));
        }
        state.push(Kind::Settings, 0, 0, &settings);
        Self {
            server,
            reader: Reader::new(terms.table_size, terms.max_head),
            state: Rc::new(RefCell::new(state)),
            opened: 0,
            announced: false,
            broken: false,
            over: false,
        }
    }

    /// Whether no stream is served and nothing waits to be written.
    pub fn is_idle(&self) -> bool {
        let state = self.state.borrow();
        state.open() == 0 && state.waiting() == 0
    }

    /// Whether a stream is served.
    pub fn has_streams(&self) -> bool {
        self.state.borrow().open() > 0
    }

    /// Whether the client has broken the protocol: what it was told of that is to reach it.
    pub fn is_broken(&self) -> bool {
        self.over && self.broken
    }

    /// Streams that were opened so far.
    pub fn opened(&self) -> u32 {
        self.opened
    }

    /// The client is told that no stream begins any more.
    pub fn refuse(&mut self) {
        self.announce(ErrorCode::NoError);
    }

    /// Moves frames both ways. Ready with a stream that has begun, or with `None`: the connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Stream>> {
        let state = Rc::clone(&self.state);
        let mut state = state.borrow_mut();
        state.wait(cx);
        for _ in 0..FRAMES {
            if self.write(cx, &mut state).is_err() || self.over && state.waiting() == 0 {
                return Poll::Ready(None);
            }
            if self.over || state.is_stuffed() {
                return Poll::Pending;
            }
            match self.reader.take(&mut self.server.input, &mut state) {
                Ok(Event::Progress) => {}
                Ok(Event::Opened(stream)) => {
                    self.opened = self.opened.saturating_add(1);
                    if state.terms.max_total > 0 && self.opened >= state.terms.max_total {
                        self.announce_in(&mut state, ErrorCode::NoError);
                    }
                    return Poll::Ready(Some(Stream::new(Rc::clone(&self.state), stream)));
                }
                Ok(Event::More) => {
                    if !std::task::ready!(self.poll_read(cx, &mut state)) {
                        return Poll::Ready(None);
                    }
                }
                Err(Fault::Stream(stream, code)) => {
                    state.reset(stream, code);
                    state.abort(stream);
                }
                Err(Fault::Connection(code)) => {
                    self.announced = false;
                    self.announce_in(&mut state, code);
                    state.fail();
                    self.broken = true;
                    self.over = true;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The streams are told that the connection has ended, and the client, as far as it takes that at once.
    pub fn close(&mut self) {
        self.announce(ErrorCode::NoError);
        let mut state = self.state.borrow_mut();
        state.fail();
        let mut cx = Context::from_waker(Waker::noop());
        let _ = self.server.transport.poll_write_slices(&mut cx, &[IoSlice::new(state.output())], false);
    }

    /// Ready when the last stream was let go.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        state.wait(cx);
        if state.open() == 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    fn announce(&mut self, code: ErrorCode) {
        let state = Rc::clone(&self.state);
        self.announce_in(&mut state.borrow_mut(), code);
    }

    /// Says that no stream above the newest is served (RFC 9113, section 6.8).
    fn announce_in(&mut self, state: &mut State, code: ErrorCode) {
        if self.announced {
            return;
        }
        self.announced = true;
        self.reader.last = state.newest;
        let mut payload = state.newest.to_be_bytes().to_vec();
        payload.extend_from_slice(&code.bytes());
        state.push(Kind::GoAway, 0, 0, &payload);
    }

    /// Writes what waits, and lets streams add to it.
    fn write(&mut self, cx: &mut Context<'_>, state: &mut State) -> Result<(), ()> {
        while state.waiting() > 0 {
            match self.server.transport.poll_write_slices(cx, &[IoSlice::new(state.output())], false) {
                Poll::Pending => break,
                Poll::Ready(Ok(written)) => state.note_sent(written),
                Poll::Ready(Err(_)) => return Err(()),
            }
        }
        if state.serve_queue() {
            cx.waker().wake_by_ref();
        }
        state.rest();
        Ok(())
    }

    /// Reads what there is. False: the connection has ended.
    fn poll_read(&mut self, cx: &mut Context<'_>, state: &mut State) -> Poll<bool> {
        let input = &mut self.server.input;
        if rt::poll_memory(cx, rt::Stage::Underway).is_pending() {
            return Poll::Pending;
        }
        crate::flow::expand(input);
        match self.server.transport.poll_read(cx, input) {
            Poll::Ready(Ok(1..)) => Poll::Ready(true),
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending => {
                if input.is_empty() {
                    *input = Buffer::empty();
                } else {
                    crate::flow::shrink(input);
                }
                if self.announced && state.open() == 0 {
                    self.over = true;
                    return Poll::Ready(state.waiting() > 0);
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.state.borrow_mut().fail();
    }
}
