//! A server's connection that carries two requests at a time. Must never know what an answer says.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h1::{self, ConnectionLine, Edits, Limits, Overflow, Parse, RequestContext, Scan};
use wire::http::{Framing, Head, Method};

use super::frame::{self, Kind};
use super::half::{Half, Handle, Shared};
use super::mover::{Mover, Read};
use super::{FRAMES, MOST_STREAMS, PREFACE};
use crate::about::About;
use crate::flow::{ByteSink, ByteSource};
use crate::found::Found;
use crate::h1::server::fits;
use crate::transport::Transport;

/// Heads of one answer that wait to be taken.
const MOST_HEADS: usize = 8;

/// A connection, as the task has it that moves its frames.
pub struct ServerConnection {
    transport: Transport,
    mover: Mover,
    control: Rc<Control>,
}

/// What the connection's task and its requests share beside the streams.
struct Control {
    shared: Rc<Shared>,
    about: About,
    /// Requests so far; each has a number of its own.
    begun: Cell<u8>,
    /// It takes no more, and ends with the last of them.
    closing: Cell<bool>,
    /// Answers that were received whole.
    answers: Cell<u32>,
}

impl ServerConnection {
    /// Begins on a transport that stands.
    pub fn new(transport: Transport) -> (Self, Requests) {
        let mover = Mover { shared: Rc::default(), output: PREFACE.to_vec(), input: Vec::new() };
        let control = Rc::new(Control {
            shared: Rc::clone(&mover.shared),
            about: About::of(&transport),
            begun: Cell::new(0),
            closing: Cell::new(false),
            answers: Cell::new(0),
        });
        let requests = Requests(Rc::clone(&control));
        (Self { transport, mover, control }, requests)
    }

    /// Moves frames both ways. Ready when the connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        *self.mover.shared.task.borrow_mut() = Some(cx.waker().clone());
        for _ in 0..FRAMES {
            if self.mover.write(cx, &mut self.transport).is_err() || self.is_over() {
                return Poll::Ready(());
            }
            match self.mover.take_frame() {
                Err(()) => return Poll::Ready(()),
                Ok(Some((kind @ (Kind::Head | Kind::HeadAlone), number, text))) => {
                    if self.take_head(number, text, kind == Kind::HeadAlone).is_err() {
                        return Poll::Ready(());
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => match std::task::ready!(self.mover.poll_read(cx, &mut self.transport)) {
                    Read::More => {}
                    Read::End => return Poll::Ready(()),
                },
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether nobody has a request on it, or may begin one.
    fn is_over(&self) -> bool {
        let nobody_asks = self.control.closing.get() || Rc::strong_count(&self.control) == 1;
        nobody_asks && self.mover.output.is_empty() && self.mover.shared.halves.borrow().iter().all(|half| half.left)
    }

    fn take_head(&mut self, number: u8, text: Vec<u8>, alone: bool) -> Result<(), ()> {
        let taken = self.mover.shared.with(number, |half| {
            if half.ended || half.heads.len() >= MOST_HEADS {
                return Err(());
            }
            half.heads.push_back((text, alone));
            half.ended = alone;
            half.wake();
            Ok(())
        });
        taken.unwrap_or(Ok(()))
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.control.closing.set(true);
        self.mover.shared.fail();
    }
}

/// A connection, as requests have it that may be sent over it.
#[derive(Clone)]
pub struct Requests(Rc<Control>);

impl Requests {
    /// Begins a request; `None`: as many as it carries are under way, or it is about to end.
    pub fn begin(&self) -> Option<Request> {
        if !self.has_room() {
            return None;
        }
        let number = self.0.begun.get().checked_add(1)?;
        self.0.begun.set(number);
        let shared = &self.0.shared;
        shared.halves.borrow_mut().push(Half::new(number));
        let handle = Handle { shared: Rc::clone(shared), number };
        Some(Request {
            handle,
            requests: self.clone(),
            complete: Cell::new(false),
            answered: Cell::new(false),
            left: Cell::new(None),
        })
    }

    /// Whether [`Requests::begin`] begins one.
    pub fn has_room(&self) -> bool {
        !self.is_closing() && self.open() < MOST_STREAMS
    }

    /// Whether it takes no requests any more.
    pub fn is_closing(&self) -> bool {
        self.0.closing.get() || self.0.begun.get() == u8::MAX
    }

    /// Requests that are under way.
    pub fn open(&self) -> usize {
        self.0.shared.halves.borrow().iter().filter(|half| !half.left).count()
    }

    /// No request begins any more; the connection ends with the last one.
    pub fn close(&self) {
        self.0.closing.set(true);
        self.0.shared.wake();
    }

    /// Whether both are of the same connection.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Answers that were received whole.
    pub fn answers(&self) -> u32 {
        self.0.answers.get()
    }
}

/// One request, as the task has it that carries it.
pub struct Request {
    handle: Handle,
    requests: Requests,
    /// The request was sent to its end.
    complete: Cell<bool>,
    /// The answer was read to its end.
    answered: Cell<bool>,
    /// Bytes of its payload that are still to come, where its head tells.
    left: Cell<Option<u64>>,
}

impl Request {
    /// The connection that carries it.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Another request takes the place of this one, which was answered whole. False: none can.
    pub fn renew(&mut self) -> bool {
        self.handle.leave(self.complete.get(), self.answered.get());
        let Some(next) = self.requests.begin() else { return false };
        *self = next;
        true
    }

    /// What is known of the connection.
    pub fn about(&self) -> &About {
        &self.requests.0.about
    }

    /// Its number on the connection.
    pub fn number(&self) -> u8 {
        self.handle.number
    }

    /// Ready when a read brings something.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.handle.poll_readable(cx)
    }

    /// All of the request was written.
    pub fn complete(&self) {
        if !self.complete.replace(true) {
            self.handle.end();
        }
    }

    /// Ready with whether a head of the answer is here; otherwise the stream has ended without one.
    pub fn poll_head(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let found = self.handle.with(|half| {
            let found = !half.heads.is_empty();
            if !found && !half.failed && !half.ended {
                half.wait(cx);
                return None;
            }
            Some(found)
        });
        match found {
            Some(None) => Poll::Pending,
            Some(Some(found)) => Poll::Ready(found),
            None => Poll::Ready(false),
        }
    }

    /// The status of the first head that is here.
    pub fn status_line(&self) -> Option<Vec<u8>> {
        self.handle.with(|half| half.heads.front().map(|(text, _)| text.clone())).flatten()
    }

    /// Parses one head of the answer.
    pub fn take_head(&self, method: Method, limits: &Limits, head: &mut Head) -> Found {
        let Some(Some((text, alone))) = self.handle.with(|half| half.heads.pop_front()) else { return Found::Part };
        let context = RequestContext { head: method == Method::Head, connect: method == Method::Connect };
        match h1::parse_response(&text, limits, &context, &mut Scan::default(), head) {
            Ok(Parse::Complete { consumed }) if consumed == text.len() && fits(head, consumed, limits.max_head) => {}
            _ => return Found::Invalid,
        }
        match (head.status(), head.framing) {
            (100 | 102..=199, _) if !alone => return Found::Interim,
            (100..=199, _) | (_, Framing::Chunked) => return Found::Invalid,
            // The end of a stream's payload needs no coding.
            (_, Framing::UntilClose) if !alone => head.framing = Framing::Chunked,
            (_, Framing::UntilClose) => head.framing = Framing::None,
            (_, Framing::Length(1..)) if alone => return Found::Invalid,
            _ => {}
        }
        match head.framing {
            Framing::Length(length) if length > 0 => self.left.set(Some(length)),
            framing if alone || !framing.has_body() => self.note_answered(),
            _ => {}
        }
        Found::Final
    }

    fn note_answered(&self) {
        if !self.answered.replace(true) {
            let answers = &self.requests.0.answers;
            answers.set(answers.get().saturating_add(1));
        }
    }
}

impl Drop for Request {
    /// What was not completed is reset, as well as an answer whose end has not come.
    fn drop(&mut self) {
        self.handle.leave(self.complete.get(), self.answered.get());
    }
}

impl ByteSource for Request {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let read = self.handle.poll_read(cx, buffer);
        if let Poll::Ready(Ok(length)) = read {
            let left = self.left.get().map(|left| left.saturating_sub(length as u64));
            self.left.set(left);
            if length == 0 || left == Some(0) {
                self.note_answered();
            }
        }
        read
    }
}

impl ByteSink for Request {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        self.handle.poll_write(cx, head, body)
    }
}

/// Writes the head of a request as a frame.
///
/// # Errors
/// It does not fit.
pub(crate) fn encode(number: u8, head: &Head, edits: &Edits<'_>, out: &mut Buffer) -> Result<(), Overflow> {
    if head.known_method() == Method::Connect {
        // There are no tunnels.
        return Err(Overflow);
    }
    let framing = if edits.framing == Framing::Chunked { Framing::None } else { edits.framing };
    let mut text = Vec::new();
    h1::encode_request(head, &Edits { connection: ConnectionLine::Nothing, framing, ..*edits }, &mut text)?;
    let before = out.len();
    if out.push(&frame::header(Kind::Head, number, text.len())) && out.push(&text) {
        return Ok(());
    }
    out.truncate(before);
    Err(Overflow)
}
