//! One request on a multiplexed FastCGI connection, as seen by the task that serves it: standard output is read as an
//! answer of HTTP/1.1, as on a connection for one request. Must never know how records are moved.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::fcgi;

use super::control::Requests;
use super::state::Stage;
use crate::flow::{ByteSink, ByteSource};
use crate::server_info::About;

/// The most bytes of a body in one record.
const PIECE: usize = 16_384;

pub struct Request {
    requests: Requests,
    number: u16,
    /// Whether the prefix of the status line was inserted before the output.
    has_begun: bool,
    /// Whether the end of the body was sent to the application.
    complete: bool,
    /// Whether the last read has completed a record.
    completes: bool,
    /// The connection's counter of reads when the request began.
    heard: u64,
}

fn connection_closed() -> io::Error {
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

    /// Properties of the connection.
    pub fn about(&self) -> &About {
        &self.requests.0.about
    }

    /// Begins another request in place of this one. Returns false if none can begin.
    pub fn renew(&mut self) -> bool {
        self.leave(false);
        let Some(number) = self.requests.0.state.borrow_mut().begin() else { return false };
        *self = Self::new(self.requests.clone(), number);
        true
    }

    /// Releases the request. A request in progress is aborted; `aborts`: even if its whole output may have been
    /// received and only its end is missing.
    ///
    /// If nothing was received on the connection since this request began, the connection may be dead: it takes no
    /// other requests.
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

    /// Aborts the request.
    pub fn abort(&mut self) {
        self.leave(true);
    }

    /// Whether the whole answer was received.
    pub(crate) fn has_answered(&self) -> bool {
        let mut state = self.requests.0.state.borrow_mut();
        state.half(self.number).is_some_and(|half| half.stage == Stage::Ended && !half.has_output())
    }

    /// Whether the application has signalled that it has not begun the request.
    pub fn is_refused(&self) -> bool {
        self.requests.0.state.borrow_mut().half(self.number).is_some_and(|half| half.refused)
    }

    /// Takes the messages of standard error received since the last call.
    pub fn take_errors(&mut self) -> Vec<Vec<u8>> {
        let mut state = self.requests.0.state.borrow_mut();
        state.half(self.number).map_or_else(Vec::new, |half| std::mem::take(&mut half.errors))
    }

    /// Marks the request as completely written.
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

/// Whether the rest of a request's body is sent to its application.
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
        let Some(half) = state.half(self.number) else { return Poll::Ready(Err(connection_closed())) };
        let has_output = half.has_output();
        match half.stage {
            _ if has_output => {}
            Stage::Ended if self.has_begun => {}
            // A request that has ended without output has no answer.
            Stage::Ended => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Stage::Failed | Stage::Cut | Stage::Abandoned | Stage::Idle => {
                return Poll::Ready(Err(connection_closed()));
            }
            Stage::Asked | Stage::Answering | Stage::Answered => {
                half.wait(cx);
                return Poll::Pending;
            }
        }
        let before = buffer.len();
        // The first bytes follow the part of the status line that CGI omits.
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
            return Poll::Ready(Err(connection_closed()));
        };
        if half.stage == Stage::Ended {
            // The application does not read the rest.
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
            // `length` is at most `PIECE`, which fits.
            state.output.extend_from_slice(&fcgi::body_record(self.number, length as u16));
            state.output.extend_from_slice(&body.data()[..length]);
            body.consume(length);
            moved += length;
        }
        state.wake_mover();
        Poll::Ready(Ok(moved))
    }
}
