//! One copy of a request on its way to a server whose answer is of no use (`mirror`): head and body are sent over HTTP/1.1,
//! the answer is read for its end alone. Owns what was not sent yet, which is bounded. Must never choose a server, read a
//! clock, or make the request itself wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use wire::h1::{self, ChunkDecoder, ChunkState, HeadLimits, Parse, RequestContext, Scan};
use wire::http::{Fields, Framing, Head};

use crate::transport::Transport;

/// Bytes of a body that may wait to be sent: a server that is slower than its client by more than that gets no copy.
pub const LAG: usize = 256 * 1024;

/// Bytes that are moved in each direction before other tasks are served.
const BUDGET: usize = 256 * 1024;

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

/// Where the answer is.
enum Answer {
    Head(Scan),
    Body(Framing, Box<ChunkDecoder>),
    Ended,
}

/// A copy that is being sent.
pub struct Copy {
    transport: Transport,
    /// What is left of the head.
    head: Buffer,
    feed: Option<SharedFeed>,
    input: Buffer,
    answer: Answer,
    answer_head: Head,
    is_head: bool,
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
            input: Buffer::empty(),
            answer: Answer::Head(Scan::default()),
            answer_head: Head::new(),
            is_head,
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
            Poll::Ready(Ok(())) => Poll::Ready(Ok(sent.is_ready() && self.keeps && self.input.is_empty())),
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
        let mut left = BUDGET;
        loop {
            match self.take() {
                Ok(true) => return Poll::Ready(Ok(())),
                Ok(false) => {}
                Err(()) => return Poll::Ready(Err(())),
            }
            if left == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.input.capacity() == 0 {
                self.input = rt::buffer();
            }
            self.input.compact();
            match self.transport.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(0)) => {
                    let ends = matches!(self.answer, Answer::Body(Framing::UntilClose, _));
                    self.keeps = false;
                    return Poll::Ready(if ends { Ok(()) } else { Err(()) });
                }
                Poll::Ready(Ok(read)) => left -= read.min(left),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(())),
                Poll::Pending => {
                    if self.input.is_empty() {
                        self.input = Buffer::empty();
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Uses what was read. True: that was the end of the answer.
    fn take(&mut self) -> Result<bool, ()> {
        loop {
            let next = match &mut self.answer {
                Answer::Ended => return Ok(true),
                _ if self.input.is_empty() => return Ok(false),
                Answer::Head(scan) => {
                    let context = RequestContext { head: self.is_head, ..RequestContext::default() };
                    let head = &mut self.answer_head;
                    match h1::parse_response(self.input.data(), &self.limits, &context, scan, head).map_err(|_| ())? {
                        Parse::Complete { consumed } => {
                            self.input.consume(consumed);
                            match head.status() {
                                // Nobody asked for another protocol.
                                101 => return Err(()),
                                100..200 => {
                                    *head = Head::new();
                                    Answer::Head(Scan::default())
                                }
                                _ => {
                                    self.keeps = head.keeps_alive();
                                    match head.framing {
                                        Framing::None | Framing::Length(0) => Answer::Ended,
                                        framing => Answer::Body(framing, Box::new(ChunkDecoder::new())),
                                    }
                                }
                            }
                        }
                        Parse::Partial if self.input.room() == 0 && self.input.len() >= self.input.capacity() => {
                            return Err(());
                        }
                        Parse::Partial => return Ok(false),
                    }
                }
                Answer::Body(Framing::Length(left), _) => {
                    let here = self.input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    self.input.consume(here);
                    *left -= here as u64;
                    if *left > 0 {
                        continue;
                    }
                    Answer::Ended
                }
                Answer::Body(Framing::Chunked, decoder) => {
                    let decoded = decoder.decode_in_place(self.input.data_mut(), &mut Fields::new()).map_err(|_| ())?;
                    let stuck = decoded.consumed == 0;
                    self.input.consume(decoded.consumed);
                    match decoded.state {
                        ChunkState::End => Answer::Ended,
                        _ if stuck => return Ok(false),
                        _ => continue,
                    }
                }
                Answer::Body(..) => {
                    self.input.clear();
                    return Ok(false);
                }
            };
            self.answer = next;
        }
    }
}
