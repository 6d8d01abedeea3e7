//! One connection to a FastCGI application. Standard output is read as an answer of HTTP/1.1: what a CGI head has in the place
//! of a status line stands in front of it. Owns what has come and was not decoded, what waits to be written beside a request,
//! and messages of standard error. Must never hold more of these than a buffer's size.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::fcgi::{self, Decoder, Piece, ProtocolStatus};

use super::note_error;
use crate::flow::{ByteSink, ByteSource};
use crate::progress::FrameProgress;
use crate::transport::Transport;

/// Reads in a row that bring nothing for the request.
const READS: usize = 8;

/// What is asked of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// It begins with `FCGI_GET_VALUES` (`option get-values`).
    pub asks_values: bool,
    /// Standard error is kept to be logged (`log-stderr`).
    pub keeps_errors: bool,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// None was begun.
    Idle,
    /// Nothing of an answer has come.
    Asked,
    /// Output has come.
    Answering,
    /// All of it has; `FCGI_END_REQUEST` has not.
    Answered,
    /// That has come.
    Ended,
    /// No more can be read of the connection.
    Failed,
}

/// A connection that carries one request at a time.
pub struct Connection {
    transport: Transport,
    decoder: Decoder,
    stage: Stage,
    /// What was read and not decoded.
    input: Buffer,
    /// What goes out before anything else.
    pending: Vec<u8>,
    /// The header of the record that is written, from `header_at` on; then so much of its content.
    header: [u8; fcgi::HEADER],
    header_at: usize,
    left: usize,
    /// A write has not been taken whole: it has to be repeated, so that nothing else may follow it.
    writing: bool,
    /// The application was told that the body has ended.
    complete: bool,
    /// It was asked to keep the connection.
    keeps: bool,
    /// It has not begun with the request.
    refused: bool,
    /// Whether records of output are whole.
    progress: FrameProgress,
    keeps_errors: bool,
    /// The message of standard error that is read.
    error: Vec<u8>,
    /// Those before it.
    errors: Vec<Vec<u8>>,
}

impl Connection {
    /// Speaks on a connection that was just opened.
    pub fn new(transport: Transport, options: Options) -> Self {
        let pending = if options.asks_values { fcgi::get_values() } else { Vec::new() };
        Self { pending, ..Self::resume(transport, options) }
    }

    /// Goes on with one that was idle.
    pub fn resume(transport: Transport, options: Options) -> Self {
        Self {
            transport,
            decoder: Decoder::default(),
            stage: Stage::Idle,
            input: Buffer::empty(),
            pending: Vec::new(),
            header: [0; fcgi::HEADER],
            header_at: fcgi::HEADER,
            left: 0,
            writing: false,
            complete: false,
            keeps: false,
            refused: false,
            progress: FrameProgress::default(),
            keeps_errors: options.keeps_errors,
            error: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// What carries the bytes.
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The same, for whoever ends it.
    pub(crate) fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// The connection alone, where no request is under way on it.
    pub(crate) fn into_transport(mut self) -> Option<Transport> {
        self.is_at_rest().then_some(self.transport)
    }

    /// Whether another request may follow. Reads what has come of the end of the last one, and waits for nothing.
    pub fn is_at_rest(&mut self) -> bool {
        if self.stage == Stage::Idle {
            return true;
        }
        if matches!(self.stage, Stage::Answering | Stage::Answered) {
            self.look_for_end();
        }
        self.stage == Stage::Ended
            && self.keeps
            && self.complete
            && self.pending.is_empty()
            && self.input.is_empty()
            && !self.decoder.is_inside()
    }

    /// Whether all of an answer was passed on, and all that is missing is `FCGI_END_REQUEST`. Holds after [`Self::is_at_rest`].
    fn is_ending(&self) -> bool {
        // Input that was not decoded is output that the answer has no place for.
        matches!(self.stage, Stage::Answering | Stage::Answered)
            && self.keeps
            && self.complete
            && self.pending.is_empty()
            && self.input.is_empty()
    }

    /// Whether another request may follow now, or once the application has said that the last one, whose answer was passed on,
    /// has ended ([`Self::poll_rest`]).
    pub fn may_rest(&mut self) -> bool {
        self.is_at_rest() || self.is_ending()
    }

    /// Waits for the end of a request whose answer was passed on. Ready with whether another request may follow.
    pub fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        for _ in 0..READS {
            if self.is_at_rest() {
                return Poll::Ready(true);
            }
            if !self.is_ending() {
                return Poll::Ready(false);
            }
            std::task::ready!(self.transport.poll_readable(cx));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads what is here already behind an answer.
    fn look_for_end(&mut self) {
        let mut nothing = Buffer::empty();
        for _ in 0..READS {
            if self.decode(&mut nothing).is_err() || self.stage == Stage::Ended || !self.receives() {
                return;
            }
        }
    }

    /// Reads without waiting. False: nothing has come.
    fn receives(&mut self) -> bool {
        if self.input.capacity() == 0 {
            self.input = rt::buffer();
        }
        let read = self.transport.try_read(&mut self.input);
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
        match read {
            Ok(Some(count)) if count > 0 => true,
            Ok(None) => false,
            _ => {
                self.stage = Stage::Failed;
                false
            }
        }
    }

    /// Another request takes the place of the last one. False: nothing but the connection's end is to be expected.
    pub(crate) fn renew(&mut self) -> bool {
        let goes_on = self.is_at_rest() && self.transport.is_clean();
        if goes_on {
            self.stage = Stage::Idle;
        }
        goes_on
    }

    /// The request is given up: the application is told, where that is possible at once. The connection carries no other one.
    pub fn abort(&mut self) {
        let is_under_way = matches!(self.stage, Stage::Asked | Stage::Answering | Stage::Answered);
        let is_between_records = !self.writing && self.pending.is_empty() && self.left == 0;
        if is_under_way && is_between_records && self.header_at == fcgi::HEADER {
            // Where it is not taken, the end of the connection says the same.
            drop(self.transport.try_write(&fcgi::abort_request(fcgi::REQUEST), false));
        }
        self.stage = Stage::Failed;
    }

    /// Whether all of an answer was read.
    pub(crate) fn has_answered(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Whether the application has said that it has not begun with the request.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Messages of standard error that came since this was called before.
    pub fn take_errors(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.errors)
    }

    /// All of the request was written.
    pub(crate) fn finish_request(&mut self) {
        if std::mem::replace(&mut self.complete, true) {
            return;
        }
        let end = fcgi::end_of_body(fcgi::REQUEST);
        let written =
            if self.writing || !self.pending.is_empty() { Ok(None) } else { self.transport.try_write(&end, false) };
        // What was not taken goes out before the next read; an error shows there as well.
        let written = written.ok().flatten().unwrap_or(0);
        self.pending.extend_from_slice(&end[written.min(end.len())..]);
    }

    /// Writes what goes out before anything else. An error shows to the next read.
    fn flush(&mut self, cx: &mut Context<'_>) {
        while !self.pending.is_empty() {
            match self.transport.poll_write_slices(cx, &[IoSlice::new(&self.pending)], false) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    self.writing = false;
                    self.pending.drain(..written.min(self.pending.len()));
                }
                Poll::Ready(_) => self.pending.clear(),
                Poll::Pending => {
                    self.writing = true;
                    return;
                }
            }
        }
    }

    /// Moves what output there is into `buffer`. True: some was moved, or no more comes.
    fn decode(&mut self, buffer: &mut Buffer) -> io::Result<bool> {
        let mut moved = false;
        loop {
            let room = buffer.room();
            let Ok((used, piece)) = self.decoder.next(self.input.data(), room) else {
                // What came before counts.
                let is_answered = self.stage == Stage::Ended;
                (self.stage, self.keeps) = (if is_answered { Stage::Ended } else { Stage::Failed }, false);
                return if moved || is_answered { Ok(true) } else { Err(io::ErrorKind::InvalidData.into()) };
            };
            let mut ended = None;
            match piece {
                None => {}
                Some(Piece::Output(data)) => {
                    match self.stage {
                        Stage::Asked | Stage::Answering => {
                            moved |= buffer.push(data);
                            self.progress.note(data.len(), self.decoder.has_whole_content());
                            self.stage = Stage::Answering;
                        }
                        // No part of an answer that has ended already. That one counts; the connection carries no other.
                        Stage::Answered | Stage::Ended => (self.stage, self.keeps) = (Stage::Ended, false),
                        Stage::Idle | Stage::Failed => self.stage = Stage::Failed,
                    }
                }
                Some(Piece::OutputEnded) if self.stage == Stage::Answering || self.stage == Stage::Asked => {
                    self.stage = Stage::Answered;
                }
                Some(Piece::OutputEnded) => {}
                Some(Piece::Error { data, whole }) => {
                    note_error((&mut self.error, &mut self.errors), self.keeps_errors, data, whole)
                }
                Some(Piece::Ended(status)) => ended = Some(status),
                Some(Piece::Values { .. }) => {}
            }
            self.input.consume(used);
            match ended {
                // It might be taken for the end of the next request.
                Some(_) if self.stage == Stage::Ended => self.keeps = false,
                Some(ProtocolStatus::Complete) if self.stage != Stage::Idle => self.stage = Stage::Ended,
                // What it has answered counts; it is asked nothing more on this connection.
                Some(_) if matches!(self.stage, Stage::Answering | Stage::Answered) => {
                    (self.stage, self.keeps) = (Stage::Ended, false);
                }
                Some(status) => {
                    self.refused = status == ProtocolStatus::Refused && self.stage == Stage::Asked;
                    self.stage = Stage::Failed;
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                None => {}
            }
            if self.input.is_empty() {
                self.input = Buffer::empty();
            }
            if self.stage == Stage::Failed {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if used == 0 || self.input.is_empty() {
                return Ok(moved || self.stage == Stage::Ended);
            }
        }
    }

    /// Moves the output of an answer that is here as a whole into `buffer`, and returns how many bytes that is.
    fn take_whole(&mut self, buffer: &mut Buffer) -> Option<usize> {
        if self.stage != Stage::Asked || self.decoder.is_inside() {
            return None;
        }
        let count = fcgi::take_whole(self.input.data(), buffer)?;
        self.input = Buffer::empty();
        self.stage = Stage::Ended;
        self.progress.note(count, true);
        Some(count)
    }

    /// Bytes of output, read into `buffer`; 0: all have come.
    fn poll_output(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let before = buffer.len();
        if self.stage == Stage::Failed {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        for _ in 0..READS {
            let is_decoded = self.input.is_empty() && self.stage != Stage::Ended;
            if !is_decoded && self.decode(buffer)? {
                return Poll::Ready(Ok(buffer.len() - before));
            }
            if self.input.capacity() == 0 {
                self.input = rt::buffer();
            }
            self.input.compact();
            let read = self.transport.poll_read(cx, &mut self.input);
            if self.input.is_empty() {
                self.input = Buffer::empty();
            }
            match std::task::ready!(read) {
                Ok(count) if count > 0 => {
                    if let Some(count) = self.take_whole(buffer) {
                        return Poll::Ready(Ok(count));
                    }
                }
                // All that is missing is the word that nothing is.
                Ok(_) if self.stage == Stage::Answered => {
                    self.stage = Stage::Failed;
                    return Poll::Ready(Ok(0));
                }
                Ok(_) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        // Others get their turn before a server that says nothing of use goes on.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl ByteSource for Connection {
    fn completes(&mut self) -> bool {
        self.progress.take()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.flush(cx);
        // Of the read before.
        self.progress.take();
        if self.stage == Stage::Ended {
            return Poll::Ready(Ok(0));
        }
        if self.stage != Stage::Asked {
            return self.poll_output(cx, buffer);
        }
        // The first bytes stand behind what CGI leaves out.
        let line = buffer.len();
        if !buffer.push(fcgi::PREFIX) {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        let read = self.poll_output(cx, buffer);
        match read {
            Poll::Ready(Ok(count)) if count > 0 => Poll::Ready(Ok(buffer.len() - line)),
            // A request that has ended without output is not answered.
            Poll::Ready(Ok(_)) => {
                buffer.truncate(line);
                Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
            }
            other => {
                buffer.truncate(line);
                other
            }
        }
    }
}

impl ByteSink for Connection {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if self.stage == Stage::Idle && !head.is_empty() {
            self.stage = Stage::Asked;
            self.refused = false;
            self.keeps = fcgi::keeps_connection(head.data());
            self.complete = fcgi::ends_body(head.data());
        }
        if body.is_empty() && self.pending.is_empty() && self.header_at == fcgi::HEADER && self.left == 0 {
            // Mostly nothing stands around the head of a request: it goes out alone.
            let written = self.transport.poll_write(cx, head, body, more);
            self.writing = written.is_pending();
            return written;
        }
        loop {
            if self.left == 0 && self.header_at == fcgi::HEADER && !body.is_empty() {
                self.left = body.len().min(fcgi::MAX_CONTENT);
                // It is that at most.
                self.header = fcgi::body_record(fcgi::REQUEST, self.left as u16);
                self.header_at = 0;
            }
            let content = &body.data()[..self.left.min(body.len())];
            let slices = [&self.pending[..], head.data(), &self.header[self.header_at..], content].map(IoSlice::new);
            let written = self.transport.poll_write_slices(cx, &slices, more);
            self.writing = written.is_pending();
            let mut rest = std::task::ready!(written)?;
            let mut take = |length: usize| {
                let taken = rest.min(length);
                rest -= taken;
                taken
            };
            let own = take(self.pending.len());
            self.pending.drain(..own);
            let (of_head, of_header) = (take(head.len()), take(fcgi::HEADER - self.header_at));
            self.header_at += of_header;
            let of_body = take(self.left);
            head.consume(of_head);
            body.consume(of_body);
            self.left -= of_body;
            if of_head + of_body > 0 || head.is_empty() && body.is_empty() {
                return Poll::Ready(Ok(of_head + of_body));
            }
            if own + of_header == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
    }

    fn send_capacity(&self) -> io::Result<usize> {
        self.transport.send_capacity()
    }
}
