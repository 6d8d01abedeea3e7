//! One request on a FastCGI connection that carries several, as the task has it that serves it: standard output is read as an
//! answer of HTTP/1.1, as on a connection of one request. Must never know how records are moved.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::fcgi;

use super::server::Requests;
use super::state::Stage;
use crate::about::About;
use crate::flow::{ByteSink, ByteSource};

/// Bytes of a body in one record.
const PIECE: usize = 16_384;

/// One request.
pub struct Request {
    requests: Requests,
    number: u16,
    /// The status line was put in front of the output.
    has_begun: bool,
    /// The application was told that the body has ended.
    complete: bool,
    /// The last read has taken the end of a record.
    completes: bool,
    /// What the connection had read when the request began.
    heard: u64,
}

fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl Request {
    pub(super) fn new(requests: Requests, number: u16) -> Self {
        let heard = requests.0.state.borrow().heard;
        Self { requests, number, has_begun: false, complete: false, completes: false, heard }
    }

    /// The connection that carries it.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// What is known of the connection.
    pub fn about(&self) -> &About {
        &self.requests.0.about
    }

    /// Another request takes the place of this one. False: none can.
    pub fn renew(&mut self) -> bool {
        self.leave(false);
        let Some(number) = self.requests.0.state.borrow_mut().begin() else { return false };
        *self = Self::new(self.requests.clone(), number);
        true
    }

    /// The request is let go. One that is under way is aborted; `aborts`: also where all of its answer may have come, so that its
    /// end is all that is missing.
    ///
    /// A connection on which nothing has come since this request began, which nobody waits for any more, may be dead: no other
    /// request is to find that out.
    fn leave(&mut self, aborts: bool) {
        let number = std::mem::take(&mut self.number);
        let mut state = self.requests.0.state.borrow_mut();
        let stage = state.half(number).map(|half| half.stage);
        if stage == Some(Stage::Asked) && state.heard == self.heard {
            state.closing = true;
        }
        let has_answer = matches!(stage, Some(Stage::Answering | Stage::Answered));
        state.leave(number, aborts || !self.complete || !has_answer);
    }

    /// The request is given up.
    pub fn abort(&mut self) {
        self.leave(true);
    }

    /// Whether all of an answer was received.
    pub(crate) fn has_answered(&self) -> bool {
        let mut state = self.requests.0.state.borrow_mut();
        state.half(self.number).is_some_and(|half| half.stage == Stage::Ended && !half.has_output())
    }

    /// Whether the application has said that it has not begun with the request.
    pub fn is_refused(&self) -> bool {
        self.requests.0.state.borrow_mut().half(self.number).is_some_and(|half| half.refused)
    }

    /// Messages of standard error that came since this was called before.
    pub fn take_errors(&mut self) -> Vec<Vec<u8>> {
        let mut state = self.requests.0.state.borrow_mut();
        state.half(self.number).map_or_else(Vec::new, |half| std::mem::take(&mut half.errors))
    }

    /// All of the request was written.
    pub(crate) fn finish_request(&mut self) {
        if std::mem::replace(&mut self.complete, true) {
            return;
        }
        let mut state = self.requests.0.state.borrow_mut();
        if state.half(self.number).is_some_and(|half| is_written(half.stage)) {
            state.output.extend_from_slice(&fcgi::end_of_body(self.number));
            state.wake_mover();
        }
    }
}

/// Whether what is left of a request's body goes to its application.
fn is_written(stage: Stage) -> bool {
    matches!(stage, Stage::Asked | Stage::Answering | Stage::Answered)
}

impl Drop for Request {
    fn drop(&mut self) {
        self.leave(false);
    }
}

impl ByteSource for Request {
    fn completes(&mut self) -> bool {
        std::mem::take(&mut self.completes)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let state = &mut *self.requests.0.state.borrow_mut();
        let Some(half) = state.half(self.number) else { return Poll::Ready(Err(gone())) };
        let has_output = half.has_output();
        match half.stage {
            _ if has_output => {}
            Stage::Ended if self.has_begun => {}
            // A request that has ended without output is not answered.
            Stage::Ended => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Stage::Failed | Stage::Cut | Stage::Abandoned | Stage::Idle => return Poll::Ready(Err(gone())),
            Stage::Asked | Stage::Answering | Stage::Answered => {
                half.wait(cx);
                return Poll::Pending;
            }
        }
        let before = buffer.len();
        // The first bytes follow what CGI leaves out.
        if !std::mem::replace(&mut self.has_begun, true) && !buffer.push(fcgi::PREFIX) {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        self.completes = state.read(self.number, buffer);
        Poll::Ready(Ok(buffer.len() - before))
    }
}

impl ByteSink for Request {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        let state = &mut *self.requests.0.state.borrow_mut();
        let Some(half) = state.half(self.number).filter(|half| !matches!(half.stage, Stage::Failed | Stage::Cut))
        else {
            return Poll::Ready(Err(gone()));
        };
        if half.stage == Stage::Ended {
            // The application does not read what is left.
            let dropped = head.len() + body.len();
            head.clear();
            body.clear();
            return Poll::Ready(Ok(dropped));
        }
        if !state.has_room(cx) {
            return Poll::Pending;
        }
        let mut moved = 0;
        if !head.is_empty() {
            fcgi::share_request(head.data_mut(), self.number);
            self.complete = head.data().ends_with(&fcgi::end_of_body(self.number));
            state.output.extend_from_slice(head.data());
            moved += head.len();
            head.clear();
            if let Some(half) = state.half(self.number).filter(|half| half.stage == Stage::Idle) {
                half.stage = Stage::Asked;
            }
        }
        let length = body.len().min(PIECE);
        if length > 0 {
            // It is that at most.
            state.output.extend_from_slice(&fcgi::body_record(self.number, length as u16));
            state.output.extend_from_slice(&body.data()[..length]);
            body.consume(length);
            moved += length;
        }
        state.wake_mover();
        Poll::Ready(Ok(moved))
    }
}
