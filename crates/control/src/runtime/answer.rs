//! What is on its way to the reader of a connection: a buffer, and the socket behind it. Must never hold more than a
//! piece of an answer whose maker asks [`Answer::relieve`] between two pieces.

use std::fmt::{self, Write};
use std::future::Future;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Buffer;
use conn::transport::Transport;

/// The reader has gone, or has read nothing for too long: the answer has no reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// Bytes of an answer that is kept at most.
const MOST_KEPT: usize = 64 << 20;

/// An answer in the making.
#[derive(Debug)]
pub struct Answer {
    /// The reader's connection; `None`: the answer is kept until it is whole.
    stream: Option<Transport>,
    waiting: Vec<u8>,
    sent: usize,
    /// Bytes that were sent since [`Answer::take_sent`].
    total: u64,
    /// How long a reader may read nothing.
    pub(super) patience: Duration,
    /// From this size on a piece is sent before the next one is made.
    piece: usize,
    /// The peer has typed more than the line of the command. Whoever watches for that takes it.
    pub(super) has_typed: bool,
}

impl Answer {
    pub(super) fn new(stream: Transport, patience: Duration, piece: usize) -> Self {
        Self { stream: Some(stream), waiting: Vec::new(), sent: 0, total: 0, patience, piece, has_typed: false }
    }

    /// An answer that is kept until it is whole, for callers inside the process.
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

    /// All of an answer that was kept.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.waiting
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.waiting.extend_from_slice(bytes.as_ref());
    }

    /// What waits to be sent. For those who have to look at the end of it.
    pub fn waiting(&self) -> &[u8] {
        &self.waiting[self.sent..]
    }

    /// To be called between the pieces of a long answer, and between commands: waits while as much as a piece has not been
    /// taken, and lets others run then, and whenever the slice of time is used up.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn relieve(&mut self) -> Result<(), Gone> {
        if self.stream.is_none() {
            return if self.waiting.len() > MOST_KEPT { Err(Gone) } else { Ok(()) };
        }
        if self.waiting.len() >= self.piece {
            self.flush().await?;
            rt::yield_now().await;
        } else if rt::slice_is_over() {
            rt::yield_now().await;
        }
        Ok(())
    }

    /// Sends all that waits.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn flush(&mut self) -> Result<(), Gone> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while self.sent < self.waiting.len() {
            let slices = [std::io::IoSlice::new(&self.waiting[self.sent..])];
            let write = std::future::poll_fn(|cx| stream.poll_write_slices(cx, &slices, false));
            match within(self.patience, write).await {
                Some(Ok(count)) if count > 0 => {
                    self.sent += count;
                    self.total += count as u64;
                }
                _ => return Err(Gone),
            }
        }
        self.waiting.clear();
        self.sent = 0;
        // A long answer leaves no memory behind with an idle connection.
        self.waiting.shrink_to(self.piece);
        Ok(())
    }

    /// Returns how many bytes were sent since the last call.
    pub(super) fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.total)
    }

    /// Sends all that waits, then these bytes with descriptors.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn pass(&mut self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Gone> {
        self.flush().await?;
        let stream = self.stream.as_mut().ok_or(Gone)?;
        let write = std::future::poll_fn(|cx| stream.poll_send_descriptors(cx, bytes, descriptors));
        match within(self.patience, write).await {
            Some(Ok(count)) if count > 0 => self.push(&bytes[count..]),
            _ => return Err(Gone),
        }
        self.flush().await
    }

    /// Reads what the peer types into `buffer`; 0 at the end.
    pub(crate) async fn read(&mut self, buffer: &mut Buffer) -> Result<usize, Gone> {
        let stream = self.stream.as_mut().ok_or(Gone)?;
        match within(self.patience, std::future::poll_fn(|cx| stream.poll_read(cx, buffer))).await {
            Some(Ok(count)) => Ok(count),
            Some(Err(_)) | None => Err(Gone),
        }
    }

    /// Reads what the peer types into `buffer`: true when there is something, false when nothing more will come.
    pub fn poll_typed(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<bool> {
        let Some(stream) = self.stream.as_mut() else { return Poll::Ready(false) };
        stream.poll_read(cx, buffer).map(|read| read.is_ok_and(|count| count > 0))
    }

    /// The connection, for what reads and waits by itself.
    pub(super) fn stream(&mut self) -> Option<&mut Transport> {
        self.stream.as_mut()
    }

    /// Waits that long, unless the connection fails before.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn pause(&mut self, time: Duration) -> Result<(), Gone> {
        let stream = self.stream.as_mut().ok_or(Gone)?;
        let failed = std::future::poll_fn(|cx| match stream.poll_hangup(cx) {
            Poll::Ready(rt::net::Hangup::Error) => Poll::Ready(()),
            // Half a connection is enough to take an answer.
            Poll::Ready(rt::net::Hangup::PeerClosed) | Poll::Pending => Poll::Pending,
        });
        match within(time, failed).await {
            Some(()) => Err(Gone),
            None => Ok(()),
        }
    }

    /// Sends all that waits, then waits for something else: true when it is ready, false when the peer has typed
    /// something, which is thrown away, or has closed.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn watch(&mut self, mut ready: impl FnMut(&mut Context<'_>) -> Poll<()>) -> Result<bool, Gone> {
        self.flush().await?;
        if std::mem::take(&mut self.has_typed) {
            return Ok(false);
        }
        let stream = self.stream.as_mut().ok_or(Gone)?;
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

    /// Ends the connection in order: what was typed and not read yet must not turn the end into a reset, which would
    /// take the answer away from a peer that has not read it.
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

/// The result of `future`, unless it takes longer.
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
