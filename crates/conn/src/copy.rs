//! One copy of a request on its way to a server whose answer is of no use (`mirror`): head and body are sent over HTTP/1.1,
//! the answer is read for its end alone. Owns what was not sent yet, which is bounded. Must never choose a server, read a
//! clock, or make the request itself wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use wire::h1::HeadLimits;
use wire::http::{Framing, Head, Method};

use crate::exchange::{Answer, Came, Found};
use crate::flow::FlowStep;
use crate::transport::Transport;
use crate::upstream::Upstream;

/// Bytes of a body that may wait to be sent: a server that is slower than its client by more than that gets no copy.
pub const LAG: usize = 256 * 1024;

/// Bytes that are sent before other tasks are served.
const BUDGET: usize = 256 * 1024;

/// Steps of reading heads before other tasks are served.
const HEADS: usize = 256;

/// The payload of one request on its way to its copy.
#[derive(Default)]
pub struct Feed {
    queue: VecDeque<u8>,
    chunked: bool,
    state: FeedState,
    waker: Option<Waker>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum FeedState {
    #[default]
    Open,
    Ended,
    Lagged,
    Aborted,
}

/// A feed, as the request and its copy share it.
pub type SharedFeed = Rc<RefCell<Feed>>;

impl Feed {
    /// An empty one. `chunked`: what comes is framed.
    pub fn new(chunked: bool) -> Self {
        Self { chunked, ..Self::default() }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn stop(&mut self, state: FeedState) {
        (self.state, self.queue) = (state, VecDeque::new());
        self.wake();
    }

    /// Appends payload. The feed ends where more waits than [`LAG`].
    pub fn push(&mut self, payload: &[u8]) {
        if self.state != FeedState::Open || payload.is_empty() {
            return;
        }
        if self.queue.len() + payload.len() > LAG {
            return self.stop(FeedState::Lagged);
        }
        if self.chunked {
            self.queue.extend(format!("{:x}\r\n", payload.len()).bytes());
        }
        self.queue.extend(payload);
        if self.chunked {
            self.queue.extend(b"\r\n");
        }
        self.wake();
    }

    /// The body has ended. Trailers are not copied.
    pub fn end(&mut self) {
        if self.state == FeedState::Open {
            if self.chunked {
                self.queue.extend(b"0\r\n\r\n");
            }
            self.state = FeedState::Ended;
            self.wake();
        }
    }

    /// Nothing more comes, and the body has not ended.
    pub fn abort(&mut self) {
        if self.state == FeedState::Open {
            self.stop(FeedState::Aborted);
        }
    }

    /// Whether the server was too slow.
    pub fn has_lagged(&self) -> bool {
        self.state == FeedState::Lagged
    }

    /// Whether more may come.
    pub fn is_open(&self) -> bool {
        self.state == FeedState::Open
    }
}

/// Why a copy was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// More of its body had to wait than [`LAG`].
    Lagged,
    /// The client has left before the end of its request.
    Aborted,
    /// The server closed the connection, or the answer is none of HTTP/1.
    Broken,
}

/// A copy that is being sent.
pub struct Copy {
    transport: Transport,
    /// What is left of the head.
    head: Buffer,
    feed: Option<SharedFeed>,
    answer: Answer,
    answer_head: Head,
    /// The head of the answer was read.
    in_body: bool,
    method: Method,
    limits: HeadLimits,
    /// The server keeps the connection.
    keeps: bool,
}

impl Copy {
    /// Sends this head, and then the feed where there is one. `is_head`: the method is HEAD.
    pub fn new(
        transport: Transport,
        head: Buffer,
        feed: Option<SharedFeed>,
        is_head: bool,
        limits: HeadLimits,
    ) -> Self {
        Self {
            transport,
            head,
            feed,
            answer: Answer::default(),
            answer_head: Head::new(),
            in_body: false,
            method: if is_head { Method::Head } else { Method::Get },
            limits,
            keeps: false,
        }
    }

    /// Whether all of the request is here: what takes time from now on is the server's fault.
    pub fn is_fed(&self) -> bool {
        self.feed.as_ref().is_none_or(|feed| !feed.borrow().is_open())
    }

    /// The connection, once the copy is over.
    pub fn into_transport(self) -> Transport {
        self.transport
    }

    /// Goes on until the answer has ended. Returns whether the connection may carry another request.
    ///
    /// # Errors
    /// Why it was given up; the connection is to be closed.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
        let sent = self.poll_send(cx);
        if let Poll::Ready(Err(failure)) = sent {
            return Poll::Ready(Err(failure));
        }
        match self.poll_answer(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(sent.is_ready() && self.keeps && !self.answer.has_surplus())),
            Poll::Ready(Err(())) => Poll::Ready(Err(Failure::Broken)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while !self.head.is_empty() {
            let more = self.feed.is_some();
            match self.transport.poll_write_slices(cx, &[IoSlice::new(self.head.data())], more) {
                Poll::Ready(Ok(written)) => self.head.consume(written),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Failure::Broken)),
                Poll::Pending => return Poll::Pending,
            }
        }
        let Some(feed) = &self.feed else { return Poll::Ready(Ok(())) };
        let feed = &mut *feed.borrow_mut();
        let mut left = BUDGET;
        loop {
            match feed.state {
                FeedState::Lagged => return Poll::Ready(Err(Failure::Lagged)),
                FeedState::Aborted => return Poll::Ready(Err(Failure::Aborted)),
                FeedState::Ended if feed.queue.is_empty() => return Poll::Ready(Ok(())),
                FeedState::Open | FeedState::Ended => {}
            }
            if left == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let (first, _) = feed.queue.as_slices();
            if first.is_empty() {
                feed.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let piece = [IoSlice::new(&first[..first.len().min(left)])];
            match self.transport.poll_write_slices(cx, &piece, false) {
                Poll::Ready(Ok(written)) => {
                    feed.queue.drain(..written);
                    left -= written.min(left);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Failure::Broken)),
                Poll::Pending => {
                    // An end without the rest is to be seen as well.
                    feed.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }

    /// Reads the answer and drops it.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let Self { transport, answer, answer_head, in_body, method, limits, keeps, .. } = self;
        let mut upstream = Upstream::H1(transport);
        for _ in 0..HEADS {
            if *in_body {
                break;
            }
            let found = match answer.received() {
                [] => Found::Part,
                _ => answer.parse(&upstream, *method, limits, answer_head),
            };
            match found {
                Found::Part => match std::task::ready!(answer.poll_receive(cx, &mut upstream)) {
                    Came::Bytes(_) => {}
                    Came::Closed => return Poll::Ready(Err(())),
                },
                Found::Interim => answer_head.clear(),
                // Nobody asked for another protocol.
                Found::Final if answer_head.status() == 101 => return Poll::Ready(Err(())),
                Found::Final => {
                    *keeps = answer_head.keeps_alive() && answer_head.framing != Framing::UntilClose;
                    *in_body = true;
                    answer.start_drain(answer_head.framing).map_err(|_| ())?;
                }
                Found::Invalid(_) => return Poll::Ready(Err(())),
            }
        }
        let drained = if *in_body { answer.poll_drain(cx, &mut upstream) } else { Ok(FlowStep::Exhausted) };
        match drained {
            Ok(FlowStep::Finished) => Poll::Ready(Ok(())),
            Ok(FlowStep::Exhausted) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(FlowStep::AwaitsSource | FlowStep::AwaitsSink | FlowStep::Held) => Poll::Pending,
            Err(_) => Poll::Ready(Err(())),
        }
    }
}
