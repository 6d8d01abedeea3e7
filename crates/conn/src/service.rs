//! Services: answers that are made inside the process and streamed like a server's. Owns what a service has to offer.
//! Must never know which services there are.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::http::{Framing, Head};

use crate::flow::{ByteSink, ByteSource};
use crate::progress::TimeoutProgress;

/// A service could not go on: before its head the client gets an internal error, after it the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed;

/// One answer that is made inside. It is polled on the worker of its request, and dropped when the request ends, whether it
/// has finished or not. A call returns within microseconds: what takes longer returns `Pending`, or a part.
pub trait Service {
    /// Writes the answer's head with [`respond`]. Called until it is ready; `request` is the request as rules have left it.
    ///
    /// # Errors
    /// There is no answer.
    fn poll_head(&mut self, cx: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>>;

    /// Appends payload to `out`, at most its free space, and returns how many bytes that were; 0 is the end. Called again
    /// only after the client has taken what came before: a slow client holds one buffer.
    ///
    /// # Errors
    /// The rest cannot be made.
    fn poll_data(&mut self, cx: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>>;

    /// Whether its payload lies in memory as long as the service: [`Service::slices`] works, beside [`Service::poll_data`].
    fn can_lend(&self) -> bool {
        false
    }

    /// Lends the payload that comes next, in order, and returns how many slices that are; no more than the length that its head
    /// has named.
    fn slices<'s>(&'s self, into: &mut [IoSlice<'s>]) -> usize {
        let _ = into;
        0
    }

    /// The client has taken so many bytes of what was lent.
    fn advance(&mut self, count: usize) {
        let _ = count;
    }

    /// Takes payload of the request out of `payload`. A service that is not interested in it drops it.
    ///
    /// # Errors
    /// It cannot be used.
    fn poll_take(&mut self, cx: &mut Context<'_>, payload: &mut Buffer) -> Poll<Result<(), Failed>> {
        let _ = cx;
        payload.clear();
        Poll::Ready(Ok(()))
    }

    /// All of the request's payload was taken. Called once, also for a request without payload; never after a failure.
    /// Data that waited for it is asked for next.
    fn end_request(&mut self) {}
}

/// Begins an answer: its status, and how long its payload is; `None` where that is not known before its end. Fields are
/// appended after it.
pub fn respond(answer: &mut Head, status: u16, reason: &[u8], length: Option<u64>) {
    answer.clear();
    answer.set_status(status, reason);
    answer.framing = length.map_or(Framing::Chunked, Framing::Length);
}

/// Asks a service for its answer's head, see [`Service::poll_head`].
///
/// # Errors
/// There is no answer.
pub fn poll_head(
    service: &mut dyn Service,
    cx: &mut Context<'_>,
    request: &Head,
    answer: &mut Head,
) -> Poll<Result<TimeoutProgress, Failed>> {
    service.poll_head(cx, request, answer).map_ok(|()| TimeoutProgress::of_whole())
}

/// The payload of a service's answer as a source.
pub(crate) struct Payload<'a, 's>(pub &'a mut (dyn Service + 's));

impl ByteSource for Payload<'_, '_> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.0.poll_data(cx, buffer).map_err(|Failed| io::ErrorKind::Other.into())
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn can_lend(&self) -> bool {
        self.0.can_lend()
    }

    fn slices<'l>(&'l self, into: &mut [IoSlice<'l>]) -> usize {
        self.0.slices(into)
    }

    fn advance(&mut self, count: usize) {
        self.0.advance(count);
    }
}

/// A service as the sink of a request's payload.
pub(crate) struct Intake<'a, 's>(pub &'a mut (dyn Service + 's));

impl ByteSink for Intake<'_, '_> {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        head.clear();
        let before = body.len();
        match self.0.poll_take(cx, body) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(before - body.len())),
            Poll::Ready(Err(Failed)) => Poll::Ready(Err(io::ErrorKind::Other.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A service on the bytes of a connection. It is polled on the worker of its session, and dropped when that ends.
pub trait ByteService {
    /// Goes on: takes from `input` what it wants of what has come, and appends to `output`, which holds what the client has
    /// not taken yet. `ended`: no more comes. Ready when it has ended. A call returns within milliseconds.
    fn poll(&mut self, cx: &mut Context<'_>, input: &mut Vec<u8>, ended: bool, output: &mut Vec<u8>) -> Poll<()>;
}
