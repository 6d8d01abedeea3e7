//! A connection to an agent that offloads the processing of streams: one task moves its frames, any number of requests wait
//! for their answers, as many at a time as the agent permits. Owns what waits to be written and which answers are due. Must
//! never know what a message means, and never hold more than the frames of the requests that wait.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::Moment;
use base::buffer::Buffer;
use wire::spop::{self, AgentHello, Frame, Hello, Notify, Status, kind};

use crate::progress::TimeoutProgress;
use crate::transport::Transport;

/// Requests in progress on a connection whose agent can answer out of order; HAProxy's value.
const PIPELINED: usize = 20;

/// The most reads of one poll.
const READS: usize = 16;

/// Parameters of a connection.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Maximum frame size on this side, in bytes.
    pub max_frame_size: u32,
    /// Whether several requests may be in progress at a time, if the agent permits it.
    pub pipelining: bool,
    /// The engine's identifier (`engine-id`).
    pub engine_id: Box<str>,
    /// The maximum number of requests over the connection's lifetime.
    pub max_total: u32,
    /// The deadline of the agent's HELLO.
    pub greeting: Option<Moment>,
    /// How long the agent may be silent while an answer is due.
    pub silence: Option<Duration>,
    /// How long the connection is kept without a request.
    pub idle: Duration,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is being established, up to the agent's HELLO.
    Opening,
    /// Requests are sent.
    Open(AgentHello),
    /// It has ended.
    Closed(ConnectionEnd),
}

/// How a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// The reason.
    pub status: Status,
    /// Whether the agent disconnected, or was silent for too long; otherwise this side has ended it.
    pub by_agent: bool,
}

/// The state of a request.
enum Waiter {
    /// No answer was received.
    Waits(Option<Waker>),
    /// The payload of its answer.
    Answered(Vec<u8>),
    /// Its owner has given up: the answer is discarded if it is received.
    Abandoned,
}

struct State {
    stage: Stage,
    pipelining: bool,
    max_total: u32,
    /// The number of requests so far, which is the last one's identifier.
    begun: u32,
    waiting: HashMap<u64, Waiter>,
    /// The number of requests that wait for the connection to open.
    claims: usize,
    /// Bytes to be written.
    output: Vec<u8>,
    /// Tasks that wait for the connection to open.
    openers: Vec<Waker>,
    mover: Option<Waker>,
    /// Whether the server has accepted the connection; the agent's HELLO may not have been received yet.
    connected: bool,
}

impl State {
    fn capacity(&self) -> usize {
        match self.stage {
            Stage::Open(AgentHello { pipelining: true, .. }) => PIPELINED,
            Stage::Opening if self.pipelining => PIPELINED,
            Stage::Open(_) | Stage::Opening => 1,
            Stage::Closed(_) => 0,
        }
    }

    /// The number of answers that the agent owes.
    fn due(&self) -> usize {
        self.waiting.values().filter(|waiter| !matches!(waiter, Waiter::Answered(_))).count()
    }

    fn has_capacity(&self) -> bool {
        self.due() + self.claims < self.capacity() && self.begun < self.max_total
    }

    fn wake_mover(&mut self) {
        if let Some(mover) = self.mover.take() {
            mover.wake();
        }
    }

    fn close(&mut self, ended: ConnectionEnd) {
        if matches!(self.stage, Stage::Closed(_)) {
            return;
        }
        self.stage = Stage::Closed(ended);
        self.openers.drain(..).for_each(Waker::wake);
        for waiter in self.waiting.values_mut() {
            if let Waiter::Waits(waker) = waiter
                && let Some(waker) = waker.take()
            {
                waker.wake();
            }
        }
        self.wake_mover();
    }
}

/// Handle of a connection for the tasks that send requests on it.
#[derive(Clone)]
pub struct Requests(Rc<RefCell<State>>);

/// Why a request cannot be sent on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendRejection {
    /// Its frame is larger than the agent permits.
    TooBig,
    /// The connection has no free capacity; another one may have some.
    Full,
}

impl Requests {
    /// For a connection that is not established yet.
    pub fn new(terms: &Terms) -> Self {
        Self(Rc::new(RefCell::new(State {
            stage: Stage::Opening,
            pipelining: terms.pipelining,
            max_total: terms.max_total,
            begun: 0,
            waiting: HashMap::new(),
            claims: 0,
            output: Vec::new(),
            openers: Vec::new(),
            mover: None,
            connected: false,
        })))
    }

    /// Whether another request may be sent, or wait for the connection to open.
    pub fn has_capacity(&self) -> bool {
        self.0.borrow().has_capacity()
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self.0.borrow().stage, Stage::Closed(_))
    }

    /// Whether it is established.
    pub fn is_open(&self) -> bool {
        matches!(self.0.borrow().stage, Stage::Open(_))
    }

    /// Reserves a slot for a request that waits for the connection to open.
    pub fn claim(&self) -> Claim {
        self.0.borrow_mut().claims += 1;
        Claim(self.clone())
    }

    /// Closes a connection that could not be established, has failed, or was ended by the agent or by its silence.
    pub fn fail(&self, status: Status) {
        self.0.borrow_mut().close(ConnectionEnd { status, by_agent: true });
    }
}

/// A request that waits for a connection to open. Dropping it frees its slot.
pub struct Claim(Requests);

impl Claim {
    /// Whether the server had accepted the connection, for one that has ended.
    pub fn was_connected(&self) -> bool {
        self.0.0.borrow().connected
    }

    /// Ready once the connection is open or has ended.
    ///
    /// # Errors
    /// Why it has ended.
    pub fn poll_open(&self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let state = &mut *self.0.0.borrow_mut();
        match state.stage {
            Stage::Open(_) => Poll::Ready(Ok(())),
            Stage::Closed(ended) => Poll::Ready(Err(ended.status)),
            Stage::Opening => {
                if !state.openers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    state.openers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// Sends a request on the connection, which is open.
    ///
    /// # Errors
    /// It cannot be sent there.
    pub fn send(self, notify: &Notify) -> Result<Ticket, SendRejection> {
        let requests = self.0.clone();
        drop(self);
        let state = &mut *requests.0.borrow_mut();
        let Stage::Open(agent) = state.stage else { return Err(SendRejection::Full) };
        if state.due() >= state.capacity() || state.begun >= state.max_total {
            return Err(SendRejection::Full);
        }
        let stream = u64::from(state.begun) * 2 + 1;
        if !notify.encode(stream, FRAME, agent.max_frame_size, &mut state.output) {
            return Err(SendRejection::TooBig);
        }
        state.begun += 1;
        state.waiting.insert(stream, Waiter::Waits(None));
        state.wake_mover();
        Ok(Ticket { requests: requests.clone(), stream })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.0.borrow_mut().claims -= 1;
    }
}

/// The identifier of the only frame of a stream.
const FRAME: u64 = 1;

/// A request that waits for its answer. Dropping it abandons the answer.
pub struct Ticket {
    requests: Requests,
    stream: u64,
}

impl Ticket {
    /// The payload of the answer.
    ///
    /// # Errors
    /// The connection has ended before the answer was received.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, ConnectionEnd>> {
        let state = &mut *self.requests.0.borrow_mut();
        match state.waiting.get_mut(&self.stream) {
            Some(Waiter::Answered(payload)) => {
                let payload = std::mem::take(payload);
                state.waiting.remove(&self.stream);
                Poll::Ready(Ok(payload))
            }
            Some(waiter @ Waiter::Waits(_)) => match state.stage {
                Stage::Closed(ended) => Poll::Ready(Err(ended)),
                _ => {
                    *waiter = Waiter::Waits(Some(cx.waker().clone()));
                    Poll::Pending
                }
            },
            Some(Waiter::Abandoned) | None => {
                Poll::Ready(Err(ConnectionEnd { status: Status::UNKNOWN, by_agent: false }))
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let state = &mut *self.requests.0.borrow_mut();
        match state.waiting.get_mut(&self.stream) {
            // The agent may still answer, and the slot stays in use until then.
            Some(waiter @ Waiter::Waits(_)) => *waiter = Waiter::Abandoned,
            Some(Waiter::Answered(_)) => {
                state.waiting.remove(&self.stream);
            }
            _ => {}
        }
    }
}

/// The connection as seen by the task that moves its frames.
pub struct Connection {
    transport: Transport,
    requests: Requests,
    terms: Terms,
    input: Buffer,
    /// The bytes being written, and the number of them written already.
    writing: Vec<u8>,
    written: usize,
    /// When the agent's last frame was received, or the first request began to wait for an answer.
    heard: Moment,
    /// Whether a DISCONNECT frame with a status is sent to the agent.
    farewell: bool,
}

impl Connection {
    /// Starts the protocol on a connection that was just opened.
    pub fn new(transport: Transport, requests: Requests, terms: Terms, now: Moment) -> Self {
        let hello = Hello {
            max_frame_size: terms.max_frame_size,
            pipelining: terms.pipelining,
            healthcheck: false,
            engine_id: Some(&terms.engine_id),
        };
        let writing = hello.encode();
        requests.0.borrow_mut().connected = true;
        Self { transport, requests, terms, input: Buffer::empty(), writing, written: 0, heard: now, farewell: false }
    }

    /// When it ends unless something is received before.
    pub fn deadline(&self) -> Option<Moment> {
        if self.is_opening() {
            self.terms.greeting
        } else if self.waits() {
            self.terms.silence.map(|silence| self.heard + silence)
        } else {
            Some(self.heard + self.terms.idle)
        }
    }

    fn is_opening(&self) -> bool {
        self.requests.0.borrow().stage == Stage::Opening
    }

    /// Whether a frame of the agent is due.
    fn waits(&self) -> bool {
        let state = self.requests.0.borrow();
        state.stage == Stage::Opening || state.due() > 0 || state.claims > 0 || self.farewell
    }

    /// Handles the deadline. Returns true if the connection has ended because the agent does not even accept the
    /// DISCONNECT frame.
    pub fn expire(&mut self, now: Moment) -> bool {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return false;
        }
        if self.farewell {
            return true;
        }
        let status = if self.waits() { Status::TIMEOUT } else { Status::NORMAL };
        if self.is_opening() {
            // The same status as for a connection that was not established in time.
            self.requests.fail(Status::IO);
        } else if self.waits() {
            self.requests.fail(Status::TIMEOUT);
        }
        self.end(status);
        false
    }

    /// Ends the connection, and sends the agent a DISCONNECT frame with the reason.
    fn end(&mut self, status: Status) {
        if self.farewell {
            return;
        }
        self.farewell = true;
        let seen = if status == Status::NORMAL { Status::IO } else { status };
        self.requests.0.borrow_mut().close(ConnectionEnd { status: seen, by_agent: false });
        self.writing.drain(..self.written);
        self.written = 0;
        // A frame that is sent in part is completed first.
        self.writing.extend(spop::disconnect(status));
    }

    /// Moves as many frames as possible. Ready: the connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Moment) -> Poll<()> {
        self.requests.0.borrow_mut().mover = Some(cx.waker().clone());
        // The status of an end by this side is set below.
        if !self.farewell
            && let Err(Some(status)) = self.receive(cx, now)
        {
            self.requests.fail(status);
            return Poll::Ready(());
        }
        match self.send(cx, now) {
            Poll::Ready(Ok(())) if self.farewell => {
                // The agent's answer to the DISCONNECT frame is ignored.
                let _ = self.transport.shutdown_write();
                Poll::Ready(())
            }
            Poll::Ready(Err(())) => {
                self.requests.fail(Status::IO);
                Poll::Ready(())
            }
            _ => Poll::Pending,
        }
    }

    /// Writes the bytes that wait. Ready: all were written.
    fn send(&mut self, cx: &mut Context<'_>, now: Moment) -> Poll<Result<(), ()>> {
        loop {
            if self.written == self.writing.len() {
                self.writing.clear();
                self.written = 0;
                if self.farewell {
                    return Poll::Ready(Ok(()));
                }
                let state = &mut *self.requests.0.borrow_mut();
                if state.output.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                if state.due() == 1 {
                    self.heard = now;
                }
                std::mem::swap(&mut self.writing, &mut state.output);
            }
            match self.transport.poll_write_slices(cx, &[IoSlice::new(&self.writing[self.written..])], false) {
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads frames. `Err(Some)`: the connection has ended; `Err(None)`: this side ends it.
    fn receive(&mut self, cx: &mut Context<'_>, now: Moment) -> Result<(), Option<Status>> {
        for _ in 0..READS {
            if self.input.capacity() == 0 {
                if self.transport.poll_readable(cx).is_pending() {
                    return Ok(());
                }
                self.input = rt::buffer();
            }
            self.input.compact();
            match self.transport.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Err(Some(Status::IO)),
                Poll::Pending => {
                    if self.input.is_empty() {
                        self.input = Buffer::empty();
                    }
                    return Ok(());
                }
            }
            self.take_frames(now)?;
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Records that a frame of the agent was received.
    fn hear(&mut self, now: Moment, _: TimeoutProgress) {
        self.heard = now;
    }

    /// Handles every complete frame received.
    fn take_frames(&mut self, now: Moment) -> Result<(), Option<Status>> {
        loop {
            let most = match self.requests.0.borrow().stage {
                Stage::Open(agent) => agent.max_frame_size,
                _ => self.terms.max_frame_size,
            };
            let taken = match spop::next_frame(self.input.data(), most) {
                Ok(None) => return Ok(()),
                Ok(Some((frame, taken))) => self.take(&frame).map(|()| taken),
                Err(status) => Err(FrameEffect::Wrong(status)),
            };
            match taken {
                Ok(taken) => {
                    self.input.consume(taken);
                    self.hear(now, TimeoutProgress::of_whole());
                }
                Err(FrameEffect::Farewell(status)) => return Err(Some(status)),
                Err(FrameEffect::Wrong(status)) => {
                    self.end(status);
                    return Err(None);
                }
            }
        }
    }

    fn take(&self, frame: &Frame<'_>) -> Result<(), FrameEffect> {
        let state = &mut *self.requests.0.borrow_mut();
        match (frame.kind, state.stage) {
            (kind::AGENT_DISCONNECT, _) => {
                let farewell = spop::agent_disconnect(frame.payload).map_err(FrameEffect::Wrong)?;
                let status = if farewell.status == Status::NORMAL { Status::IO } else { farewell.status };
                Err(FrameEffect::Farewell(status))
            }
            (kind::AGENT_HELLO, Stage::Opening) if (frame.stream, frame.id) == (0, 0) => {
                let mut agent =
                    spop::agent_hello(frame.payload, self.terms.max_frame_size).map_err(FrameEffect::Wrong)?;
                agent.pipelining &= self.terms.pipelining;
                state.stage = Stage::Open(agent);
                state.openers.drain(..).for_each(Waker::wake);
                Ok(())
            }
            (kind::ACK, Stage::Open(_)) if frame.id == FRAME => {
                match state.waiting.get_mut(&frame.stream) {
                    Some(waiter @ Waiter::Waits(_)) => {
                        let before = std::mem::replace(waiter, Waiter::Answered(frame.payload.to_vec()));
                        if let Waiter::Waits(Some(waker)) = before {
                            waker.wake();
                        }
                    }
                    Some(Waiter::Abandoned) => {
                        state.waiting.remove(&frame.stream);
                    }
                    // No request waits for it.
                    Some(Waiter::Answered(_)) | None => {}
                }
                Ok(())
            }
            // An answer to a frame that was never sent is ignored, and so are unknown frames, as in HAProxy.
            (_, Stage::Open(_)) => Ok(()),
            _ => Err(FrameEffect::Wrong(Status::INVALID)),
        }
    }
}

/// Why a frame ends its connection.
enum FrameEffect {
    /// The agent closes it.
    Farewell(Status),
    /// The frame is invalid: this side closes it.
    Wrong(Status),
}
