//! A multiplexed connection to a server for one request after the other: used by checks. Either they own the connection, and
//! polling moves its frames, or they share one with a task of its own. Must never choose a request.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h1::{Edits, HeadLimits, Overflow};
use wire::http::{Fields, Head, Method};

use crate::answer_head_kind::AnswerHeadKind;
use crate::carrier::Carrier;
use crate::exchange::{AnswerReader, ReadOutcome};
use crate::multiplexed::{Requests, ServerConnection};
use crate::upstream::Upstream;

/// A connection that carries one request at a time.
pub struct Solo {
    /// `None`: a task owns it.
    connection: Option<ServerConnection>,
    requests: Requests,
    /// The stream of a shared connection that was begun for the first request.
    begun: Option<Carrier>,
    request: Option<Carrier>,
    reader: AnswerReader,
    /// The part of the request that was not written yet.
    head: Buffer,
    body: Buffer,
}

impl Solo {
    /// Uses a connection that carries nothing else.
    pub fn new(connection: ServerConnection, requests: Requests) -> Self {
        Self::of(Some(connection), requests, None)
    }

    /// Uses a connection that carries other requests as well. `None`: it is not multiplexed.
    pub fn sharing(begun: Carrier) -> Option<Self> {
        let requests = begun.requests()?;
        Some(Self::of(None, requests, Some(begun)))
    }

    fn of(connection: Option<ServerConnection>, requests: Requests, begun: Option<Carrier>) -> Self {
        let (head, body) = (Buffer::empty(), Buffer::empty());
        Self { connection, requests, begun, request: None, reader: AnswerReader::default(), head, body }
    }

    /// Begins a request, in place of the previous one. Returns false if no more requests can begin on the connection.
    ///
    /// # Errors
    /// It does not fit.
    pub fn ask(&mut self, head: &Head, body: &[u8]) -> Result<bool, Overflow> {
        self.request = None;
        self.request = self.begun.take().or_else(|| self.requests.begin());
        (self.head, self.body) = (rt::buffer(), Buffer::with_capacity(body.len()));
        let edits = Edits { framing: head.framing, version: head.version(), ..Edits::default() };
        self.reader = AnswerReader::default();
        let Some(request) = &self.request else { return Ok(false) };
        request.request_format().encode(head, &edits, &mut self.head)?;
        if self.body.push(body) { Ok(true) } else { Err(Overflow) }
    }

    /// Moves as many bytes as possible, of the request and of the connection. The request reports the end of the
    /// connection.
    fn advance(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        // Twice: frames received on the connection may let the request continue, and its output is then written.
        for _ in 0..2 {
            if let Some(request) = &mut self.request
                && !(self.head.is_empty() && self.body.is_empty())
                && let Poll::Ready(written) = Upstream::of(request).poll_write(cx, &mut self.head, &mut self.body)
            {
                written?;
                if self.head.is_empty() && self.body.is_empty() {
                    Upstream::of(request).complete(None);
                }
            }
            let connection = self.connection.as_mut();
            if connection.is_some_and(|connection| connection.poll(cx).is_ready()) {
                self.requests.close();
            }
        }
        Ok(())
    }

    /// Ready when the request was sent as far as possible: the rest is sent while the answer is read.
    ///
    /// # Errors
    /// The connection's.
    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.advance(cx)?;
        if self.head.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Ready with a head of the answer; [`AnswerHeadKind::Part`]: there will be none.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        method: Method,
        limits: &HeadLimits,
        head: &mut Head,
    ) -> Poll<AnswerHeadKind> {
        let ended = self.advance(cx).is_err();
        let Some(request) = self.request.as_mut().filter(|_| !ended) else { return Poll::Ready(AnswerHeadKind::Part) };
        let mut upstream = Upstream::of(request);
        match std::task::ready!(self.reader.poll_receive(cx, &mut upstream)) {
            ReadOutcome::Bytes(_) => Poll::Ready(self.reader.parse(&upstream, method, limits, head)),
            ReadOutcome::Closed => Poll::Ready(AnswerHeadKind::Part),
        }
    }

    /// Reads payload of the answer; 0 is its end.
    ///
    /// # Errors
    /// The stream's.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.advance(cx)?;
        match &mut self.request {
            Some(request) => Upstream::of(request).poll_read(cx, buffer),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Takes the trailers after the payload, once a read has returned its end.
    pub fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.request.as_mut().and_then(|request| Upstream::of(request).take_trailers())
    }
}
