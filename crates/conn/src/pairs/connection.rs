//! A client's connection below two streams. Must never know what a request says.

use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;

use super::frame::{self, Kind};
use super::half::{Half, Handle};
use super::mover::{Mover, Read};
use super::{FRAMES, MOST_STREAMS, PREFACE, Stream};
use crate::h1::Server;

/// A connection of which the preface was seen.
pub struct Connection<'a> {
    server: &'a mut Server,
    mover: Mover,
    refuses: bool,
    opened: u32,
}

impl<'a> Connection<'a> {
    /// Goes on behind the preface.
    pub fn new(server: &'a mut Server) -> Self {
        server.input.consume(PREFACE.len());
        let input = server.input.data().to_vec();
        server.input = Buffer::empty();
        let mover = Mover { shared: Rc::default(), output: Vec::new(), input };
        Self { server, mover, refuses: false, opened: 0 }
    }

    /// Whether no stream is served.
    pub fn is_idle(&self) -> bool {
        self.mover.shared.halves.borrow().is_empty() && self.mover.output.is_empty()
    }

    /// Whether a stream is served.
    pub fn has_streams(&self) -> bool {
        !self.mover.shared.halves.borrow().iter().all(|half| half.left)
    }

    /// Resets streams that are opened from now on.
    pub fn refuse(&mut self) {
        self.refuses = true;
    }

    /// Streams that were opened so far.
    pub fn opened(&self) -> u32 {
        self.opened
    }

    /// Moves frames both ways. `None`: the connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Stream>> {
        *self.mover.shared.task.borrow_mut() = Some(cx.waker().clone());
        for _ in 0..FRAMES {
            if self.mover.write(cx, &mut self.server.transport).is_err() {
                return Poll::Ready(None);
            }
            match self.mover.take_frame() {
                Err(()) => return Poll::Ready(None),
                Ok(Some((kind @ (Kind::Head | Kind::HeadAlone), number, text))) => {
                    match self.open(number, text, kind == Kind::HeadAlone) {
                        Err(()) => return Poll::Ready(None),
                        Ok(Some(stream)) => return Poll::Ready(Some(stream)),
                        Ok(None) => {}
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => match std::task::ready!(self.mover.poll_read(cx, &mut self.server.transport)) {
                    Read::More => {}
                    Read::End => return Poll::Ready(None),
                },
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The streams are told that the connection has ended.
    pub fn close(&mut self) {
        self.mover.shared.fail();
    }

    /// Ready when the last stream is served.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = &self.mover.shared;
        *shared.task.borrow_mut() = Some(cx.waker().clone());
        if shared.halves.borrow().iter().all(|half| half.left) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Opens a stream; `None`: there are enough of them. The error: there is one with that number.
    fn open(&mut self, number: u8, text: Vec<u8>, alone: bool) -> Result<Option<Stream>, ()> {
        let mut halves = self.mover.shared.halves.borrow_mut();
        if halves.iter().any(|half| half.number == number) {
            return Err(());
        }
        if self.refuses || halves.iter().filter(|half| !half.left).count() >= MOST_STREAMS {
            frame::push(&mut self.mover.output, Kind::Reset, number, &[]);
            return Ok(None);
        }
        halves.push(Half { heads: [(text, alone)].into(), ended: alone, ..Half::new(number) });
        self.opened = self.opened.saturating_add(1);
        Ok(Some(Stream::new(Handle { shared: Rc::clone(&self.mover.shared), number })))
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
