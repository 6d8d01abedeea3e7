//! What a connection and the tasks of its streams share: one half for each stream, with what waits in either direction. Owns
//! the credit of both sides. Must never read or write a connection.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;

use super::WINDOW;
use super::frame::{self, Kind};

/// What the connection keeps of a stream.
pub(super) struct Half {
    pub(super) number: u8,
    /// Its task has let go of it.
    pub(super) left: bool,
    /// The texts of heads that the peer has sent, until the task has taken them, and whether the message ends with them.
    pub(super) heads: VecDeque<(Vec<u8>, bool)>,
    /// Payload that was received and not taken.
    pub(super) incoming: Vec<u8>,
    /// The peer has sent all of it.
    pub(super) ended: bool,
    /// The peer has reset it, or the connection is gone.
    pub(super) failed: bool,
    /// Bytes that were taken and for which the peer has no credit yet.
    pub(super) owed: usize,
    /// Frames that wait for the connection.
    pub(super) outgoing: Vec<u8>,
    /// Bytes of payload that may still be sent.
    pub(super) credit: usize,
    /// Its task, where that waits.
    pub(super) task: Option<Waker>,
}

impl Half {
    pub(super) fn new(number: u8) -> Self {
        Self {
            number,
            left: false,
            heads: VecDeque::new(),
            incoming: Vec::new(),
            ended: false,
            failed: false,
            owed: 0,
            outgoing: Vec::new(),
            credit: WINDOW,
            task: None,
        }
    }

    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        self.task = Some(cx.waker().clone());
    }

    /// Does what a frame other than a head means. The error: the peer breaks the protocol.
    pub(super) fn take(&mut self, kind: Kind, length: usize, bytes: &[u8]) -> Result<(), ()> {
        match kind {
            Kind::Data if self.ended || self.incoming.len() + length > WINDOW => return Err(()),
            Kind::Data if self.left => {}
            Kind::Data => self.incoming.extend_from_slice(bytes),
            Kind::End => self.ended = true,
            Kind::Reset => self.failed = true,
            Kind::Credit => self.credit = (self.credit + length).min(WINDOW),
            Kind::Head | Kind::HeadAlone => {}
        }
        self.wake();
        Ok(())
    }
}

/// What a connection and its streams share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) halves: RefCell<Vec<Half>>,
    /// The connection's task.
    pub(super) task: RefCell<Option<Waker>>,
}

impl Shared {
    /// The connection has something to do.
    pub(super) fn wake(&self) {
        let task = self.task.borrow_mut().take();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Uses the half of a stream; `None`: the connection has ended, and forgotten it.
    pub(super) fn with<T>(&self, number: u8, with: impl FnOnce(&mut Half) -> T) -> Option<T> {
        self.halves.borrow_mut().iter_mut().find(|half| half.number == number).map(with)
    }

    /// The streams are told that the connection has ended.
    pub(super) fn fail(&self) {
        for half in self.halves.borrow_mut().iter_mut() {
            half.failed = true;
            half.wake();
        }
    }
}

/// A stream, as the task has it that serves it.
pub(super) struct Handle {
    pub(super) shared: Rc<Shared>,
    pub(super) number: u8,
}

impl Handle {
    pub(super) fn gone() -> io::Error {
        io::ErrorKind::ConnectionReset.into()
    }

    pub(super) fn with<T>(&self, with: impl FnOnce(&mut Half) -> T) -> Option<T> {
        self.shared.with(self.number, with)
    }

    /// Whether a read or [`Handle::with`] of a head brings something.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = self.with(|half| {
            let ready = half.failed || half.ended || !half.heads.is_empty() || !half.incoming.is_empty();
            if !ready {
                half.wait(cx);
            }
            ready
        });
        if ready.unwrap_or(true) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Hands whole frames to the connection.
    pub(super) fn poll_frames(&self, cx: &mut Context<'_>, frames: &mut Buffer) -> Poll<io::Result<()>> {
        let taken = self.with(|half| {
            if half.failed {
                return Err(Self::gone());
            }
            if half.outgoing.len() >= WINDOW {
                half.wait(cx);
                return Ok(false);
            }
            half.outgoing.extend_from_slice(frames.data());
            Ok(true)
        });
        match taken {
            None => Poll::Ready(Err(Self::gone())),
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(false)) => Poll::Pending,
            Some(Ok(true)) => {
                frames.clear();
                self.shared.wake();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Hands payload to the connection, as much as the peer has given credit for.
    pub(super) fn poll_payload(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = self.with(|half| {
            let most = bytes.len().min(half.credit);
            if half.failed {
                return Err(Self::gone());
            }
            if half.outgoing.len() >= WINDOW || most == 0 && !bytes.is_empty() {
                half.wait(cx);
                return Ok(None);
            }
            frame::push(&mut half.outgoing, Kind::Data, half.number, &bytes[..most]);
            half.credit -= most;
            Ok(Some(most))
        });
        match taken {
            None => Poll::Ready(Err(Self::gone())),
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(None)) => Poll::Pending,
            Some(Ok(Some(sent))) => {
                self.shared.wake();
                Poll::Ready(Ok(sent))
            }
        }
    }

    /// Writes a head's frame and payload behind it, as [`crate::flow::ByteSink::poll_write`].
    pub(super) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
    ) -> Poll<io::Result<usize>> {
        let mut written = 0;
        if !head.is_empty() {
            let length = head.len();
            std::task::ready!(self.poll_frames(cx, head))?;
            written += length;
        }
        if !body.is_empty() {
            match self.poll_payload(cx, body.data()) {
                Poll::Ready(Ok(sent)) => {
                    body.consume(sent);
                    written += sent;
                }
                Poll::Pending if written == 0 => return Poll::Pending,
                Poll::Pending => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(written))
    }

    /// Takes payload, as [`crate::flow::ByteSource::poll_read`].
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let read = self.with(|half| {
            let length = half.incoming.len().min(buffer.room());
            if length > 0 && buffer.push(&half.incoming[..length]) {
                half.incoming.drain(..length);
                half.owed += length;
                return Poll::Ready(Ok(length));
            }
            // What came before a reset is passed on.
            match (half.ended, half.failed) {
                (true, _) => Poll::Ready(Ok(0)),
                (false, true) => Poll::Ready(Err(Self::gone())),
                (false, false) => {
                    half.wait(cx);
                    Poll::Pending
                }
            }
        });
        if matches!(read, Some(Poll::Ready(Ok(1..)))) {
            self.shared.wake();
        }
        read.unwrap_or_else(|| Poll::Ready(Err(Self::gone())))
    }

    /// Nothing more is sent: the message is complete.
    pub(super) fn end(&self) {
        self.with(|half| frame::push(&mut half.outgoing, Kind::End, half.number, &[]));
        self.shared.wake();
    }

    /// The task lets go of the stream, which is reset unless both messages are whole.
    pub(super) fn leave(&self, complete: bool, received: bool) {
        self.with(|half| {
            if !complete || !(half.ended || received) {
                frame::push(&mut half.outgoing, Kind::Reset, half.number, &[]);
            }
            half.left = true;
        });
        self.shared.wake();
    }
}
