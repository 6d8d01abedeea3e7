//! One copy of a request to a server whose answer is ignored (`mirror`): head and body are sent over HTTP/1.1, the
//! answer is read only to find its end. Owns the bytes not sent yet, whose number is bounded. Must never choose a
//! server, read a clock, or make the request itself wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use wire::h1::HeadLimits;
use wire::http::{Framing, Head, Method};

use crate::exchange::{Answer, AnswerHeadKind, ReadOutcome};
use crate::flow::FlowStep;
use crate::transport::Transport;
use crate::upstream::Upstream;

/// The most bytes of a body that may wait to be sent: a server that is slower than its client by more gets no copy.
pub const LAG: usize = 256 * 1024;

/// Bytes that are sent before the task yields.
const BUDGET: usize = 256 * 1024;

/// Steps of reading heads before the task yields.
const HEADS: usize = 256;

/// The payload of one request, queued for its copy.
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

/// A feed, shared by the request and its copy.
pub type SharedFeed = Rc<RefCell<Feed>>;

impl Feed {
    /// Creates an empty feed. `chunked`: payload is framed in chunks.
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

    /// Appends payload. The feed stops if more than [`LAG`] bytes wait.
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

    /// Ends the body. Trailers are not copied.
    pub fn end(&mut self) {
        if self.state == FeedState::Open {
            if self.chunked {
                self.queue.extend(b"0\r\n\r\n");
            }
            self.state = FeedState::Ended;
            self.wake();
        }
    }

    /// Stops the feed before the end of the body.
    pub fn abort(&mut self) {
        if self.state == FeedState::Open {
            self.stop(FeedState::Aborted);
        }
    }

    /// Whether the feed stopped because the server was too slow.
    pub fn has_lagged(&self) -> bool {
        self.state == FeedState::Lagged
    }

    /// Whether more payload may be appended.
    pub fn is_open(&self) -> bool {
        self.state == FeedState::Open
    }
}

/// Why a copy was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// More than [`LAG`] bytes of its body waited.
    Lagged,
    /// The client closed before the end of its request.
    Aborted,
    /// The server closed the connection, or its answer is not HTTP/1.
    Broken,
}

/// A copy in progress.
pub struct Copy {
    transport: Transport,
    /// The rest of the head.
    head: Buffer,
    feed: Option<SharedFeed>,
    answer: Answer,
    answer_head: Head,
    /// Whether the head of the answer was read.
    in_body: bool,
    method: Method,
    limits: HeadLimits,
    /// Whether the server keeps the connection open.
    keeps: bool,
}

impl Copy {
    /// Creates a copy that sends this head, and then the feed if there is one. `is_head`: the method is HEAD.
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

    /// Whether all of the request is available: from now on only the server causes delays.
    pub fn is_fed(&self) -> bool {
        self.feed.as_ref().is_none_or(|feed| !feed.borrow().is_open())
    }

    /// Returns the connection after the end of the copy.
    pub fn into_transport(self) -> Transport {
        self.transport
    }

    /// Sends the request and reads the answer to its end. Returns whether the connection may carry another request.
    ///
    /// # Errors
    /// Why the copy was aborted; the connection is to be closed.
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
                    // The end of the feed has to wake the task as well.
                    feed.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }

    /// Reads and discards the answer.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let Self { transport, answer, answer_head, in_body, method, limits, keeps, .. } = self;
        let mut upstream = Upstream::H1(transport);
        for _ in 0..HEADS {
            if *in_body {
                break;
            }
            let found = match answer.reader.received() {
                [] => AnswerHeadKind::Part,
                _ => answer.reader.parse(&upstream, *method, limits, answer_head),
            };
            match found {
                AnswerHeadKind::Part => match std::task::ready!(answer.reader.poll_receive(cx, &mut upstream)) {
                    ReadOutcome::Bytes(_) => {}
                    ReadOutcome::Closed => return Poll::Ready(Err(())),
                },
                AnswerHeadKind::Interim => answer_head.clear(),
                // The request did not ask for another protocol.
                AnswerHeadKind::Final if answer_head.status() == 101 => return Poll::Ready(Err(())),
                AnswerHeadKind::Final => {
                    *keeps = answer_head.keeps_alive() && answer_head.framing != Framing::UntilClose;
                    *in_body = true;
                    answer.start_drain(answer_head.framing).map_err(|_| ())?;
                }
                AnswerHeadKind::Invalid(_) => return Poll::Ready(Err(())),
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
