//! A connection of HTTP/2 without a transport: its caller passes bytes in and out. For tests and the fuzzer. Must never
//! do anything that a connection with a transport does not.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use base::buffer::Buffer;
use base::moment::Moment;

use super::control::Control;
use super::mover::Mover;
use super::step::Event;
use super::{Request, Requests, Role, Stream, Terms};
use crate::server_info::About;

/// The most bytes of input held.
const INPUT: usize = 16 * 1024;

/// Either side of a connection.
pub struct Machine {
    mover: Mover,
    requests: Requests,
    input: Buffer,
    opened: VecDeque<u32>,
    /// The number of frames, or pieces of frames, handled.
    steps: usize,
}

impl Machine {
    fn new(role: Role, terms: Terms) -> Self {
        let mover = Mover::new(role, terms);
        let (state, about) = (Rc::clone(&mover.state), About::of_none());
        let requests = Requests(Rc::new(Control { state, about, answers: Cell::new(0), early: Cell::new(false) }));
        Self { mover, requests, input: Buffer::with_capacity(INPUT), opened: VecDeque::new(), steps: 0 }
    }

    /// The server's side, after the preface was read.
    pub fn server(terms: Terms) -> Self {
        Self::new(Role::Server, terms)
    }

    /// The client's side, whose output begins with the preface.
    pub fn client(terms: Terms) -> Self {
        Self::new(Role::Client, terms)
    }

    /// Receives bytes of the peer. Returns the number accepted: none while the peer leaves too much of the output.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        let state = Rc::clone(&self.mover.state);
        let mut state = state.borrow_mut();
        loop {
            let more = (bytes.len() - taken).min(self.input.room());
            if self.input.push(&bytes[taken..taken + more]) {
                taken += more;
            }
            loop {
                if self.mover.is_over() || state.is_stuffed() {
                    return taken;
                }
                self.steps += 1;
                match self.mover.step(&mut self.input, &mut state) {
                    Event::Progress => {}
                    Event::Opened(stream) => self.opened.push_back(stream),
                    Event::More => break,
                }
                state.serve_queue();
            }
            if taken == bytes.len() {
                return taken;
            }
        }
    }

    /// Updates the time.
    pub fn advance(&mut self, now: Moment) {
        self.mover.advance(now);
    }

    /// Takes at most `most` bytes of output.
    pub fn send(&mut self, most: usize) -> Vec<u8> {
        let mut state = self.mover.state.borrow_mut();
        let output = state.output().next();
        let sent = output[..output.len().min(most)].to_vec();
        if !sent.is_empty() {
            state.output().note_sent(sent.len());
        }
        state.serve_queue();
        state.rest();
        sent
    }

    /// The number of bytes of output that wait.
    pub fn waiting(&self) -> usize {
        self.mover.state.borrow().waiting()
    }

    /// Returns the next stream that the peer has opened. It has to be dropped before the connection.
    pub fn accept(&mut self) -> Option<Stream> {
        let stream = self.opened.pop_front()?;
        let cell = self.mover.state.borrow().stream(stream)?;
        Some(Stream::new(Rc::clone(&self.mover.state), cell))
    }

    /// Begins a request.
    pub fn begin(&self) -> Option<Request> {
        self.requests.begin()
    }

    /// The number of streams being served.
    pub fn open(&self) -> usize {
        self.mover.state.borrow().open()
    }

    /// Whether the peer has violated the protocol.
    pub fn is_broken(&self) -> bool {
        self.mover.is_broken()
    }

    /// The number of frames, and pieces of frames, handled.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Bytes of memory that the connection and its streams hold.
    pub fn held(&self) -> usize {
        self.mover.held() + self.input.capacity()
    }
}
