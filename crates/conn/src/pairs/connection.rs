//! The connection below two streams: reads and writes their frames. Must never know what a request says.

use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;

use super::frame::{self, HEADER, Kind};
use super::{Half, MOST_STREAMS, PREFACE, Shared, Stream, WINDOW};
use crate::h1::Server;

/// Bytes of frames that wait to be written, above which nothing is read.
const BACKLOG: usize = 16 * 1024;

/// Frames that are read in a turn.
const FRAMES: usize = 64;

/// A connection of which the preface was seen.
pub struct Connection<'a> {
    server: &'a mut Server,
    shared: Rc<Shared>,
    output: Vec<u8>,
    /// Part of a frame.
    partial: Vec<u8>,
    refuses: bool,
    opened: u32,
}

impl<'a> Connection<'a> {
    /// Goes on behind the preface.
    pub fn new(server: &'a mut Server) -> Self {
        server.input.consume(PREFACE.len());
        let partial = server.input.data().to_vec();
        server.input = Buffer::empty();
        Self { server, shared: Rc::default(), output: Vec::new(), partial, refuses: false, opened: 0 }
    }

    /// Whether no stream is served.
    pub fn is_idle(&self) -> bool {
        self.shared.halves.borrow().is_empty() && self.output.is_empty()
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
        *self.shared.task.borrow_mut() = Some(cx.waker().clone());
        for _ in 0..FRAMES {
            if self.write(cx).is_err() {
                return Poll::Ready(None);
            }
            match self.take_frame() {
                Err(()) => return Poll::Ready(None),
                Ok(Taken::Opened(stream)) => return Poll::Ready(Some(stream)),
                Ok(Taken::Frame) => continue,
                Ok(Taken::Nothing) => {}
            }
            if self.output.len() > BACKLOG {
                return Poll::Pending;
            }
            let mut buffer = rt::buffer();
            match self.server.transport.poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => self.partial.extend_from_slice(buffer.data()),
                Poll::Ready(_) => return Poll::Ready(None),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The streams are told that the connection has ended.
    pub fn close(&mut self) {
        for half in self.shared.halves.borrow_mut().iter_mut() {
            half.failed = true;
            half.wake();
        }
    }

    /// Ready when the last stream is served.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        *self.shared.task.borrow_mut() = Some(cx.waker().clone());
        if self.shared.halves.borrow().iter().all(|half| half.left) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Writes what streams have left, and credit for what they have taken.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        loop {
            let mut halves = self.shared.halves.borrow_mut();
            for half in halves.iter_mut() {
                if self.output.len() > BACKLOG {
                    break;
                }
                if half.owed > 0 && !half.ended {
                    self.output.extend_from_slice(&frame::header(Kind::Credit, half.number, half.owed));
                }
                half.owed = 0;
                if !half.outgoing.is_empty() {
                    self.output.append(&mut half.outgoing);
                    half.wake();
                }
            }
            halves.retain(|half| !half.left || !half.outgoing.is_empty());
            drop(halves);
            if self.output.is_empty() {
                return Ok(());
            }
            match self.server.transport.poll_write_slices(cx, &[IoSlice::new(&self.output)], false) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(written)) => drop(self.output.drain(..written)),
                Poll::Ready(Err(_)) => return Err(()),
            }
        }
    }

    /// Takes one frame of what was read.
    fn take_frame(&mut self) -> Result<Taken, ()> {
        let Some(header) = frame::parse(&self.partial) else { return Ok(Taken::Nothing) };
        let (kind, number, length) = header?;
        let size = if kind == Kind::Credit { HEADER } else { HEADER + length };
        if self.partial.len() < size {
            return Ok(Taken::Nothing);
        }
        let bytes = self.partial[HEADER..size].to_vec();
        self.partial.drain(..size);
        if let Kind::Head | Kind::HeadAlone = kind {
            return self.open(number, bytes, kind == Kind::HeadAlone);
        }
        // What comes for a stream that has ended is dropped.
        let done = self.shared.with(number, |half| {
            match kind {
                Kind::Data if half.ended || half.incoming.len() + length > WINDOW => return Err(()),
                Kind::Data if half.left => {}
                Kind::Data => half.incoming.extend_from_slice(&bytes),
                Kind::End => half.ended = true,
                Kind::Reset => half.failed = true,
                Kind::Credit => half.credit = (half.credit + length).min(WINDOW),
                Kind::Head | Kind::HeadAlone => {}
            }
            half.wake();
            Ok(())
        });
        done.unwrap_or(Ok(())).map(|()| Taken::Frame)
    }

    fn open(&mut self, number: u8, text: Vec<u8>, alone: bool) -> Result<Taken, ()> {
        let mut halves = self.shared.halves.borrow_mut();
        if halves.iter().any(|half| half.number == number) {
            return Err(());
        }
        if self.refuses || halves.iter().filter(|half| !half.left).count() >= MOST_STREAMS {
            frame::push(&mut self.output, Kind::Reset, number, &[]);
            return Ok(Taken::Frame);
        }
        halves.push(Half {
            number,
            left: false,
            head: Some((text, alone)),
            incoming: Vec::new(),
            ended: alone,
            failed: false,
            owed: 0,
            outgoing: Vec::new(),
            credit: WINDOW,
            task: None,
        });
        self.opened = self.opened.saturating_add(1);
        let shared = Rc::clone(&self.shared);
        let complete = Cell::new(false);
        Ok(Taken::Opened(Stream { shared, number, input: Buffer::empty(), answering: false, complete }))
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// What was found in what was read.
enum Taken {
    Opened(Stream),
    Frame,
    Nothing,
}
