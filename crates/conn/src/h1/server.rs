//! The client's side of an HTTP/1 connection: requests are read here, answers are written. Owns the bytes that were read
//! and not used yet. Must never know time: its callers bound every wait.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use rt::net::{Hangup, SocketQuery};
use wire::h1::{self, Parse, Scan, Violation};
use wire::http::{Head, PART};

use super::unread::{BodyEnd, UnreadBody};
use crate::ending::{Ending, Manner};
use crate::flow;
use crate::found::Fault;
use crate::transport::Transport;

/// Bytes of text that a head which is waited for keeps room for.
const PARTIAL_HEAD: usize = 1024;

/// A client's connection. It holds no buffer while it waits for a request.
pub struct Server {
    pub(crate) transport: Transport,
    /// What was read and not used yet.
    pub(crate) input: Buffer,
}

/// What follows on a connection once a request has ended.
#[derive(Debug, Default)]
pub enum Reuse {
    /// It ends: in order, once what was written has arrived.
    #[default]
    Close,
    /// It closes at once: the client has gone, or everything that it has sent was read and nothing is left on the way to it.
    Drop,
    /// It closes, but the client may still be sending: it gets the answer first.
    Linger,
    /// It closes through the client's fault: once the client has got what was written, what it still sends is refused.
    Refuse,
    /// The next request: this one was read to its end.
    Again(BodyEnd),
    /// There was no request, but the preface of a protocol with several streams ([`crate::several`]).
    Several,
}

/// How a request's head was received.
pub enum Received {
    /// It is complete, and was `length` bytes long.
    Head {
        /// Its body.
        body: UnreadBody,
        /// Bytes of the head.
        length: usize,
        /// It breaks rules that an option lets pass.
        glitch: bool,
    },
    /// The connection ended or failed before the head did.
    Closed,
    /// The connection goes over to a protocol with several streams.
    Preface,
    /// It is no request.
    Invalid {
        /// The status that says why.
        status: u16,
        /// What is wrong with it, where that is known: the head is among what was received.
        fault: Option<Fault>,
    },
}

impl Server {
    /// A connection of which nothing was read.
    pub fn new(transport: Transport) -> Self {
        Self { transport, input: Buffer::empty() }
    }

    /// The connection as a byte stream, and what was read of it: for sessions in TCP mode, and for tunnels.
    pub fn bytes(&mut self) -> (&mut Transport, &mut Buffer) {
        (&mut self.transport, &mut self.input)
    }

    /// The socket, for queries.
    pub fn socket(&self) -> SocketQuery {
        self.transport.socket()
    }

    /// What was read and not used: behind a head, the beginning of its body.
    pub fn received(&self) -> &[u8] {
        self.input.data()
    }

    /// Whether something was read and not used.
    pub fn has_received(&self) -> bool {
        !self.input.is_empty()
    }

    /// Gives an empty buffer back.
    pub fn release(&mut self) {
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
    }

    /// Ready when a read may return something. Reads nothing.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.transport.poll_readable(cx)
    }

    /// Whether there is something to read: data, the end or an error.
    pub fn is_readable(&mut self) -> bool {
        self.transport.has_input()
    }

    /// Reads what has come of a request, without waiting. False: nothing has, and no buffer is held. The end of the
    /// connection counts as something.
    pub fn try_receive(&mut self) -> bool {
        if self.has_received() {
            return true;
        }
        if self.input.capacity() == 0 {
            self.input = rt::buffer();
        }
        let came = !matches!(self.transport.try_read(&mut self.input), Ok(None));
        if !came {
            self.input = Buffer::empty();
        }
        came
    }

    /// Reads and parses until a request's head is complete. `scan` is that of this head.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: &h1::HeadLimits,
        scan: &mut Scan,
        head: &mut Head,
    ) -> Poll<Received> {
        loop {
            if self.has_received()
                && let Some(received) = self.parse(limits, scan, head)
            {
                return Poll::Ready(received);
            }
            flow::expand(&mut self.input);
            match self.transport.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(read)) if read > 0 => {}
                Poll::Ready(_) => return Poll::Ready(Received::Closed),
                Poll::Pending => {
                    // A client that stops in the middle of its head holds what has come of it and no more.
                    flow::shrink(&mut self.input);
                    head.fields.shrink_to(PARTIAL_HEAD);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Parses what is here. `None`: more is needed.
    fn parse(&mut self, limits: &h1::HeadLimits, scan: &mut Scan, head: &mut Head) -> Option<Received> {
        let too_large = Fault { reason: Violation::HeadTooLarge.text(), position: self.input.len() };
        let (status, fault) = match h1::parse_request(self.input.data(), limits, scan, head) {
            Ok(Parse::Complete { consumed }) if fits(head, consumed, limits.max_head) => {
                let glitch = limits.accept_unsafe && h1::is_unsafe_request(&self.input.data()[..consumed], limits);
                let body = UnreadBody::after(head, consumed, &mut self.input);
                return Some(Received::Head { body, length: consumed, glitch });
            }
            Ok(Parse::Complete { .. }) => (431, too_large),
            Ok(Parse::Partial) if self.input.len() < limits.max_head => return None,
            Ok(Parse::Partial) => (400, too_large),
            Err(error) if error.violation == Violation::Http2Preface => return Some(Received::Preface),
            Err(error) => (error.status(), Fault { reason: error.reason(), position: error.position }),
        };
        Some(Received::Invalid { status, fault: Some(fault) })
    }

    /// Writes bytes that are a message already. `last`: the connection's end follows at once.
    ///
    /// # Errors
    /// The transport's.
    pub fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], last: bool) -> Poll<io::Result<usize>> {
        self.transport.poll_write_slices(cx, &[IoSlice::new(bytes)], last)
    }

    /// Ready when the client has closed its direction or the connection failed.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        self.transport.poll_hangup(cx)
    }

    /// Whether the client has reset the connection. A system call unless that was reported.
    pub fn is_reset(&mut self) -> bool {
        self.transport.is_reset()
    }

    /// Whether an end of the connection is reported without [`Server::poll_closed`] having to ask for that first.
    pub fn is_watched(&self) -> bool {
        self.transport.is_registered()
    }

    /// Whether everything that the client has sent was read, as far as is known: closing then resets nothing.
    pub fn is_settled(&self) -> bool {
        self.input.is_empty() && self.transport.is_quiet()
    }

    /// As [`Server::is_settled`], and asks the system where that is not known.
    pub fn is_surely_settled(&mut self) -> bool {
        self.input.is_empty() && self.transport.is_clean()
    }

    /// Makes closing invisible to the client (`silent-drop`).
    pub fn forget(&mut self, hops: Option<u8>) {
        // What the system does not let happen quietly happens all the same.
        let _ = self.transport.forget(hops);
    }

    /// Ends the connection ([`Ending::begin`]).
    pub fn end(self, manner: Manner, now: Moment) -> Option<Ending> {
        // Unused input is a sign that the client sends more.
        let manner = if manner == Manner::Close && self.has_received() { Manner::CloseWhileSending } else { manner };
        Ending::begin(self.transport, manner, now)
    }

    /// As [`Transport::set_resets`].
    pub fn set_resets(&mut self, resets: bool) {
        self.transport.set_resets(resets);
    }

    /// Puts what has come of a body where [`Server::poll_buffer`] can read the rest of it behind.
    pub fn begin_buffering(&mut self) {
        make_room(&mut self.input);
    }

    /// Reads more of a body that is to stay here: nothing is used. Gets a buffer that has room around it for chunk
    /// framing. 0 is the end; `None`: the buffer is full, see [`Server::grow`].
    ///
    /// # Errors
    /// The transport's.
    pub fn poll_buffer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        if self.input.capacity() < rt::buffer_size() {
            make_room(&mut self.input);
        }
        if self.input.room() == 0 {
            return Poll::Ready(Ok(None));
        }
        self.transport.poll_read(cx, &mut self.input).map_ok(Some)
    }

    /// What has come of a short body waits in a buffer of its size, until the next [`Server::poll_buffer`]: a body that
    /// flows needs more.
    pub fn rest_buffering(&mut self) {
        flow::shrink(&mut self.input);
    }

    /// Whether the client has sent something, which is read where that is not known: its end is not something.
    pub fn has_sent(&mut self) -> bool {
        if self.input.capacity() == 0 {
            self.input = rt::buffer();
        }
        self.has_received() || matches!(self.transport.try_read(&mut self.input), Ok(Some(1..)))
    }

    /// Takes what was read and not used.
    pub fn take_received(&mut self) -> Buffer {
        std::mem::replace(&mut self.input, Buffer::empty())
    }

    /// Puts what has come of a body into a buffer of that many bytes, once. False: there is none.
    pub fn grow(&mut self, large: &mut Option<usize>) -> bool {
        grow(&mut self.input, large)
    }

    /// As [`crate::downstream::Downstream::replace_body`].
    pub fn replace_body(&mut self, length: usize, body: &[u8]) {
        replace_front(&mut self.input, length, body);
    }
}

/// Puts other bytes in the place of the first `length` ones, where they can be framed later.
pub fn replace_front(input: &mut Buffer, length: usize, bytes: &[u8]) {
    let rest = &input.data()[length.min(input.len())..];
    let size = bytes.len() + rest.len();
    let mut replaced = flow::body_buffer();
    if size > replaced.room() {
        replaced = flow::large_body_buffer(size);
    }
    let whole = replaced.push(bytes) && replaced.push(rest);
    debug_assert!(whole, "it was made for that");
    *input = replaced;
}

/// Puts what has come of a body where the rest of it can be read behind, and framed later.
pub fn make_room(input: &mut Buffer) {
    let mut body = flow::body_buffer();
    if body.push(input.data()) {
        *input = body;
    }
}

/// Puts what has come of a body into a buffer of that many bytes, once. False: there is none.
pub fn grow(input: &mut Buffer, large: &mut Option<usize>) -> bool {
    let Some(size) = large.take().filter(|size| *size > input.len() && !rt::memory_is_scarce()) else { return false };
    let mut body = flow::large_body_buffer(size);
    let fits = body.push(input.data());
    if fits {
        *input = body;
    }
    fits
}

/// Whether a head leaves the room that `tune.maxrewrite` keeps free, by the measure that HAProxy takes.
pub fn fits(head: &Head, consumed: usize, room: usize) -> bool {
    /// What a message without fields measures at most, beside its text.
    const MESSAGE: usize = 116;
    consumed + PART * head.field_count() + MESSAGE <= room || head.measure() <= room
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest head that HAProxy 3.5 takes with its defaults has 15,281 bytes when it is this one.
    #[test]
    fn the_room_for_a_head_is_the_one_of_haproxy() {
        let room = 16384 - 1024;
        for (value, wanted) in [(15_247, true), (15_248, true), (15_249, false)] {
            let text = format!("GET /x HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "v".repeat(value));
            let (mut head, mut scan) = (Head::new(), Scan::default());
            let limits = h1::HeadLimits { max_head: 16384, ..h1::HeadLimits::default() };
            let parsed = h1::parse_request(text.as_bytes(), &limits, &mut scan, &mut head);
            let Ok(Parse::Complete { consumed }) = parsed else { panic!("{parsed:?}") };
            assert_eq!(fits(&head, consumed, room), wanted, "{value}: {consumed} bytes");
        }
    }

    /// The same for an answer with `tune.bufsize 8192`: 7,089 bytes.
    #[test]
    fn so_is_that_for_the_head_of_an_answer() {
        let room = 8192 - 1024;
        for (length, wanted) in [(7_088, true), (7_089, true), (7_090, false)] {
            let start = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: ";
            let text = format!("{start}{}\r\n\r\n", "v".repeat(length - start.len() - 4));
            let (mut head, mut scan) = (Head::new(), Scan::default());
            let limits = h1::HeadLimits { max_head: 8192, ..h1::HeadLimits::default() };
            let context = h1::RequestContext::default();
            let parsed = h1::parse_response(text.as_bytes(), &limits, &context, &mut scan, &mut head);
            let Ok(Parse::Complete { consumed }) = parsed else { panic!("{parsed:?}") };
            assert_eq!(fits(&head, consumed, room), wanted, "{consumed} bytes");
        }
    }
}
