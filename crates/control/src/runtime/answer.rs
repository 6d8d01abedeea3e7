//! The output of a connection: a buffer and the socket it is written to. Must never hold more than one piece of an
//! answer whose command calls [`Answer::relieve`] between pieces.

use std::fmt::{self, Write};
use std::future::Future;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Buffer;
use conn::transport::Transport;

/// The peer has disconnected, or has read nothing until the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnected;

/// Maximum size of an answer that is kept in memory, in bytes.
const MOST_KEPT: usize = 64 << 20;

/// An answer that is being written.
#[derive(Debug)]
pub struct Answer {
    /// The connection; `None`: the answer is kept in memory.
    stream: Option<Transport>,
    waiting: Vec<u8>,
    sent: usize,
    /// Bytes sent since the last [`Answer::take_sent`].
    total: u64,
    /// Timeout for a peer that reads nothing.
    pub(super) patience: Duration,
    /// From this size on, a piece is sent before the next one is written.
    piece: usize,
    /// The peer has sent more than the command's line. Consumed by [`Answer::watch`].
    pub(super) has_typed: bool,
}

impl Answer {
    pub(super) fn new(stream: Transport, patience: Duration, piece: usize) -> Self {
        Self { stream: Some(stream), waiting: Vec::new(), sent: 0, total: 0, patience, piece, has_typed: false }
    }

    /// Creates an answer that is kept in memory, for callers inside the process.
    pub(super) fn kept() -> Self {
        Self {
            stream: None,
            waiting: Vec::new(),
            sent: 0,
            total: 0,
            patience: Duration::ZERO,
            piece: usize::MAX,
            has_typed: false,
        }
    }

    /// Returns a complete answer that was kept in memory.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.waiting
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.waiting.extend_from_slice(bytes.as_ref());
    }

    /// Returns the unsent bytes, for callers that check how they end.
    pub fn waiting(&self) -> &[u8] {
        &self.waiting[self.sent..]
    }

    /// Call between the pieces of a long answer, and between commands: sends a full piece and yields; also yields
    /// whenever the time slice is used up.
    ///
    /// # Errors
    /// [`Disconnected`].
    pub async fn relieve(&mut self) -> Result<(), Disconnected> {
        if self.stream.is_none() {
            return if self.waiting.len() > MOST_KEPT { Err(Disconnected) } else { Ok(()) };
        }
        if self.waiting.len() >= self.piece {
            self.flush().await?;
            rt::yield_now().await;
        } else if rt::slice_is_over() {
            rt::yield_now().await;
        }
        Ok(())
    }

    /// Sends all buffered bytes.
    ///
    /// # Errors
    /// [`Disconnected`].
    pub async fn flush(&mut self) -> Result<(), Disconnected> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while self.sent < self.waiting.len() {
            let slices = [std::io::IoSlice::new(&self.waiting[self.sent..])];
            let write = std::future::poll_fn(|cx| stream.poll_write_slices(cx, &slices, false));
            match within(self.patience, write).await {
                Some(Ok(count)) if count > 0 => {
                    self.sent += count;
                    self.total += count as u64;
                }
                _ => return Err(Disconnected),
            }
        }
        self.waiting.clear();
        self.sent = 0;
        // An idle connection does not keep the memory of a long answer.
        self.waiting.shrink_to(self.piece);
        Ok(())
    }

    /// Returns the number of bytes sent since the last call.
    pub(super) fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.total)
    }

    /// Sends all buffered bytes, then these bytes with file descriptors.
    ///
    /// # Errors
    /// [`Disconnected`].
    pub async fn pass(&mut self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Disconnected> {
        self.flush().await?;
        let stream = self.stream.as_mut().ok_or(Disconnected)?;
        let write = std::future::poll_fn(|cx| stream.poll_send_descriptors(cx, bytes, descriptors));
        match within(self.patience, write).await {
            Some(Ok(count)) if count > 0 => self.push(&bytes[count..]),
            _ => return Err(Disconnected),
        }
        self.flush().await
    }

    /// Reads input of the peer into `buffer`; 0 at the end.
    pub(crate) async fn read(&mut self, buffer: &mut Buffer) -> Result<usize, Disconnected> {
        let stream = self.stream.as_mut().ok_or(Disconnected)?;
        match within(self.patience, std::future::poll_fn(|cx| stream.poll_read(cx, buffer))).await {
            Some(Ok(count)) => Ok(count),
            Some(Err(_)) | None => Err(Disconnected),
        }
    }

    /// Reads input of the peer into `buffer`: true if there is some, false at the end.
    pub fn poll_typed(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<bool> {
        let Some(stream) = self.stream.as_mut() else { return Poll::Ready(false) };
        stream.poll_read(cx, buffer).map(|read| read.is_ok_and(|count| count > 0))
    }

    /// Returns the connection, for commands that read and wait themselves.
    pub(super) fn stream(&mut self) -> Option<&mut Transport> {
        self.stream.as_mut()
    }

    /// Waits for `time`, unless the connection fails first.
    ///
    /// # Errors
    /// [`Disconnected`].
    pub async fn pause(&mut self, time: Duration) -> Result<(), Disconnected> {
        let stream = self.stream.as_mut().ok_or(Disconnected)?;
        let failed = std::future::poll_fn(|cx| match stream.poll_hangup(cx) {
            Poll::Ready(rt::net::Hangup::Error) => Poll::Ready(()),
            // A peer that only closed its sending side still reads the answer.
            Poll::Ready(rt::net::Hangup::PeerClosed) | Poll::Pending => Poll::Pending,
        });
        match within(time, failed).await {
            Some(()) => Err(Disconnected),
            None => Ok(()),
        }
    }

    /// Sends all buffered bytes, then waits for another event: true when it is ready, false when the peer has closed or
    /// sent input, which is discarded.
    ///
    /// # Errors
    /// [`Disconnected`].
    pub async fn watch(&mut self, mut ready: impl FnMut(&mut Context<'_>) -> Poll<()>) -> Result<bool, Disconnected> {
        self.flush().await?;
        if std::mem::take(&mut self.has_typed) {
            return Ok(false);
        }
        let stream = self.stream.as_mut().ok_or(Disconnected)?;
        let is_ready = std::future::poll_fn(|cx| match ready(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => stream.poll_readable(cx).map(|()| false),
        });
        if is_ready.await {
            return Ok(true);
        }
        let _ = stream.try_read(&mut rt::buffer());
        Ok(false)
    }

    /// Closes the connection gracefully: unread input would turn the close into a reset, which could discard the answer
    /// before the peer has read it.
    pub(super) async fn close(mut self) {
        const LEFT_BEHIND: usize = 64;
        if self.stream.as_mut().is_none_or(|stream| stream.shutdown_write().is_err()) {
            return;
        }
        let mut buffer = rt::buffer();
        for _ in 0..LEFT_BEHIND {
            buffer.clear();
            match self.read(&mut buffer).await {
                Ok(count) if count > 0 => {}
                _ => return,
            }
        }
    }
}

impl Write for Answer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Returns the output of `future`, or `None` on timeout.
pub(super) async fn within<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut alarm = pin!(rt::sleep(time));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(result) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(result));
        }
        alarm.as_mut().poll(cx).map(|()| None)
    })
    .await
}
