//! One connection to a FastCGI application. Standard output is read as an answer of HTTP/1.1: the prefix of a status
//! line, which CGI omits, is inserted before it. Owns input that was not decoded, bytes to be written in addition to a
//! request, and messages of standard error. Must never hold more of these than a buffer's size.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::fcgi::{self, Decoder, Piece, ProtocolStatus};

use super::note_error;
use crate::flow::{ByteSink, ByteSource};
use crate::progress::FrameProgress;
use crate::transport::Transport;

/// The most consecutive reads that return nothing for the request.
const READS: usize = 8;

/// Options of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether it begins with `FCGI_GET_VALUES` (`option get-values`).
    pub asks_values: bool,
    /// Whether standard error is kept to be logged (`log-stderr`).
    pub keeps_errors: bool,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No request was begun.
    Idle,
    /// No output was received.
    Asked,
    /// Some output was received.
    Answering,
    /// All output was received, `FCGI_END_REQUEST` was not.
    Answered,
    /// `FCGI_END_REQUEST` was received.
    Ended,
    /// Nothing more can be read from the connection.
    Failed,
}

/// A connection that carries one request at a time.
pub struct Connection {
    transport: Transport,
    decoder: Decoder,
    stage: Stage,
    /// Input that was read and not decoded.
    input: Buffer,
    /// Bytes written before anything else.
    pending: Vec<u8>,
    /// The header of the record being written, from `header_at` on; then `left` bytes of its content.
    header: [u8; fcgi::HEADER],
    header_at: usize,
    left: usize,
    /// Whether a write is pending: it has to be repeated with the same bytes first.
    writing: bool,
    /// Whether the end of the body was sent to the application.
    complete: bool,
    /// Whether the application was asked to keep the connection (`FCGI_KEEP_CONN`).
    keeps: bool,
    /// Whether the application has refused the request without starting it.
    refused: bool,
    /// Progress of records of output.
    progress: FrameProgress,
    keeps_errors: bool,
    /// The message of standard error that is being read.
    error: Vec<u8>,
    /// The messages before it.
    errors: Vec<Vec<u8>>,
}

impl Connection {
    /// Starts FastCGI on a connection that was just opened.
    pub fn new(transport: Transport, options: Options) -> Self {
        let pending = if options.asks_values { fcgi::get_values() } else { Vec::new() };
        Self { pending, ..Self::resume(transport, options) }
    }

    /// Resumes a connection that was idle.
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

    /// The underlying transport.
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The underlying transport, for callers that close it.
    pub(crate) fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Returns the transport if no request is in progress on it.
    pub(crate) fn into_transport(mut self) -> Option<Transport> {
        self.is_at_rest().then_some(self.transport)
    }

    /// Whether another request may follow. Reads the available part of the last request's end, without waiting.
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

    /// Whether the whole answer was forwarded, and only `FCGI_END_REQUEST` is missing. Valid after
    /// [`Self::is_at_rest`].
    fn is_ending(&self) -> bool {
        // Input that was not decoded is output after the end of the answer.
        matches!(self.stage, Stage::Answering | Stage::Answered)
            && self.keeps
            && self.complete
            && self.pending.is_empty()
            && self.input.is_empty()
    }

    /// Whether another request may follow now, or after the application has ended the last one, whose answer was
    /// forwarded ([`Self::poll_rest`]).
    pub fn may_rest(&mut self) -> bool {
        self.is_at_rest() || self.is_ending()
    }

    /// Waits for the end of a request whose answer was forwarded. Ready with whether another request may follow.
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

    /// Reads the available input after an answer.
    fn look_for_end(&mut self) {
        let mut nothing = Buffer::empty();
        for _ in 0..READS {
            if self.decode(&mut nothing).is_err() || self.stage == Stage::Ended || !self.receives() {
                return;
            }
        }
    }

    /// Reads without waiting. Returns false if there is no input.
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

    /// Prepares the connection for another request. Returns false if only the end of the connection can follow.
    pub(crate) fn renew(&mut self) -> bool {
        let goes_on = self.is_at_rest() && self.transport.is_clean();
        if goes_on {
            self.stage = Stage::Idle;
        }
        goes_on
    }

    /// Aborts the request: sends `FCGI_ABORT_REQUEST` if that is possible at once. The connection carries no other
    /// request.
    pub fn abort(&mut self) {
        let is_under_way = matches!(self.stage, Stage::Asked | Stage::Answering | Stage::Answered);
        let is_between_records = !self.writing && self.pending.is_empty() && self.left == 0;
        if is_under_way && is_between_records && self.header_at == fcgi::HEADER {
            // If this is not sent, closing the connection has the same effect.
            drop(self.transport.try_write(&fcgi::abort_request(fcgi::REQUEST), false));
        }
        self.stage = Stage::Failed;
    }

    /// Whether the whole answer was read.
    pub(crate) fn has_answered(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Whether the application has signalled that it has not begun the request.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Takes the messages of standard error received since the last call.
    pub fn take_errors(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.errors)
    }

    /// Marks the request as completely written.
    pub(crate) fn finish_request(&mut self) {
        if std::mem::replace(&mut self.complete, true) {
            return;
        }
        let end = fcgi::end_of_body(fcgi::REQUEST);
        let written =
            if self.writing || !self.pending.is_empty() { Ok(None) } else { self.transport.try_write(&end, false) };
        // The rest is written before the next read, which also returns an error.
        let written = written.ok().flatten().unwrap_or(0);
        self.pending.extend_from_slice(&end[written.min(end.len())..]);
    }

    /// Writes the bytes that precede anything else. The next read returns an error.
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

    /// Ready when a read may return output, the end or an error. Does not read.
    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.flush(cx);
        if !self.input.is_empty() || matches!(self.stage, Stage::Ended | Stage::Failed) {
            return Poll::Ready(());
        }
        self.transport.poll_readable(cx)
    }

    /// Moves available output into `buffer`. Returns true if some was moved, or the output has ended.
    fn decode(&mut self, buffer: &mut Buffer) -> io::Result<bool> {
        let mut moved = false;
        loop {
            let room = buffer.room();
            let Ok((used, piece)) = self.decoder.next(self.input.data(), room) else {
                // Output received before the violation is valid.
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
                        // This is output after the end of an answer. The answer is valid; the connection carries no
                        // other request.
                        Stage::Answered | Stage::Ended => (self.stage, self.keeps) = (Stage::Ended, false),
                        Stage::Idle | Stage::Failed => self.stage = Stage::Failed,
                    }
                }
                Some(Piece::OutputEnded) if self.stage == Stage::Answering || self.stage == Stage::Asked => {
                    self.stage = Stage::Answered;
                }
                Some(Piece::OutputEnded) => {}
                Some(Piece::Error { data, whole }) => {
                    note_error(&mut self.error, &mut self.errors, self.keeps_errors, data, whole)
                }
                Some(Piece::Ended(status)) => ended = Some(status),
                Some(Piece::Values { .. }) => {}
            }
            self.input.consume(used);
            match ended {
                // It might be taken for the end of the next request.
                Some(_) if self.stage == Stage::Ended => self.keeps = false,
                Some(ProtocolStatus::Complete) if self.stage != Stage::Idle => self.stage = Stage::Ended,
                // The output received is valid; the connection carries no other request.
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

    /// Moves the output of an answer that was received whole into `buffer`, and returns the number of bytes.
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

    /// Reads output into `buffer` and returns the number of bytes; 0: the output has ended.
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
                // Only `FCGI_END_REQUEST` is missing.
                Ok(_) if self.stage == Stage::Answered => {
                    self.stage = Stage::Failed;
                    return Poll::Ready(Ok(0));
                }
                Ok(_) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        // Yield to other tasks before reading more from an application that sends nothing of use.
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
        // Discards the progress of the previous read.
        self.progress.take();
        if self.stage == Stage::Ended {
            return Poll::Ready(Ok(0));
        }
        if self.stage != Stage::Asked {
            return self.poll_output(cx, buffer);
        }
        // The first bytes follow the part of the status line that CGI omits.
        let line = buffer.len();
        if !buffer.push(fcgi::PREFIX) {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        let read = self.poll_output(cx, buffer);
        match read {
            Poll::Ready(Ok(count)) if count > 0 => Poll::Ready(Ok(buffer.len() - line)),
            // A request that has ended without output has no answer.
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
            // Mostly there is only the head of a request to write.
            let written = self.transport.poll_write(cx, head, body, more);
            self.writing = written.is_pending();
            return written;
        }
        loop {
            if self.left == 0 && self.header_at == fcgi::HEADER && !body.is_empty() {
                self.left = body.len().min(fcgi::MAX_CONTENT);
                // `left` is at most `MAX_CONTENT`, which fits.
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
