//! Services: answers made inside the process and streamed like a server's. Owns the interface of a service. Must never
//! know which services there are.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::http::{Framing, Head};

use crate::flow::{ByteSink, ByteSource};
use crate::progress::TimeoutProgress;

/// A service failed: before its head the client gets an internal error, after it the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed;

/// One answer made inside the process. It is polled on the worker of its request, and dropped when the request ends,
/// whether it has finished or not. A call returns within microseconds: longer work returns `Pending`, or a part.
pub trait Service {
    /// Writes the answer's head with [`respond`]. Called until it is ready; `request` is the request as modified by
    /// rules.
    ///
    /// # Errors
    /// There is no answer.
    fn poll_head(&mut self, cx: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>>;

    /// Appends payload to `out`, at most its free space, and returns the number of bytes; 0 is the end. Called again
    /// only after the client has accepted the previous payload: a slow client holds one buffer.
    ///
    /// # Errors
    /// The rest cannot be made.
    fn poll_data(&mut self, cx: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>>;

    /// Whether the payload is in memory as long as the service, so that [`Service::slices`] can be used beside
    /// [`Service::poll_data`].
    fn can_lend(&self) -> bool {
        false
    }

    /// Lends the next payload, in order, and returns the number of slices; no more than the length named in its head.
    fn slices<'s>(&'s self, into: &mut [IoSlice<'s>]) -> usize {
        let _ = into;
        0
    }

    /// Consumes `count` bytes of the slices lent, which the client has accepted.
    fn advance(&mut self, count: usize) {
        let _ = count;
    }

    /// Takes payload of the request out of `payload`. The default discards it.
    ///
    /// # Errors
    /// The payload cannot be used.
    fn poll_take(&mut self, cx: &mut Context<'_>, payload: &mut Buffer) -> Poll<Result<(), Failed>> {
        let _ = cx;
        payload.clear();
        Poll::Ready(Ok(()))
    }

    /// All of the request's payload was taken. Called once, also for a request without payload; never after a failure.
    /// Data that waited for it is polled next.
    fn end_request(&mut self) {}
}

/// Begins an answer with its status and the length of its payload; `None` if that is not known before its end. Fields
/// are appended after it.
pub fn respond(answer: &mut Head, status: u16, reason: &[u8], length: Option<u64>) {
    answer.clear();
    answer.set_status(status, reason);
    answer.framing = length.map_or(Framing::Chunked, Framing::Length);
}

/// Polls a service for its answer's head, see [`Service::poll_head`].
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

/// A service for the bytes of a connection. It is polled on the worker of its session, and dropped when that ends.
pub trait ByteService {
    /// Runs the service: takes from `input` any number of the bytes received, and appends to `output`, which holds the
    /// bytes that the client has not accepted yet. `ended`: no more input follows. Ready when the service has ended. A
    /// call returns within milliseconds.
    fn poll(&mut self, cx: &mut Context<'_>, input: &mut Vec<u8>, ended: bool, output: &mut Vec<u8>) -> Poll<()>;
}
