//! The client's side of an HTTP/1 connection: requests are read here, answers are written. Owns the bytes read and not
//! consumed yet. Must never know time: its callers bound every wait.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use rt::net::{Hangup, SocketQuery};
use wire::h1::{self, Parse, Scan, Violation};
use wire::http::{Head, PART};

use super::unread::{BodyEnd, UnreadBody};
use crate::answer_head_kind::Fault;
use crate::ending::{CloseManner, Ending};
use crate::flow;
use crate::transport::Transport;

/// Capacity in bytes kept for the text of an incomplete head.
const PARTIAL_HEAD: usize = 1024;

/// A client's connection. It holds no buffer while it waits for a request.
pub struct Server {
    pub(crate) transport: Transport,
    /// The bytes read and not consumed yet.
    pub(crate) input: Buffer,
}

/// The state of a connection after the end of a request.
#[derive(Debug, Default)]
pub enum Reuse {
    /// It is closed in order, once the bytes written have arrived.
    #[default]
    Close,
    /// It is closed at once: the client has closed it, or everything that it has sent was read and nothing is on its
    /// way to the client.
    Drop,
    /// It is closed, but the client may still be sending: the client receives the answer first.
    Linger,
    /// It is closed through the client's fault: once the client has received the bytes written, further input is
    /// refused.
    Refuse,
    /// The next request: this one was read to its end.
    Again(BodyEnd),
}

/// The result of reading a request's head.
pub enum ReadResult {
    /// It is complete.
    Head {
        /// Its body.
        body: UnreadBody,
        /// The length of the head in bytes.
        length: usize,
        /// Whether it violates rules relaxed by an option.
        glitch: bool,
    },
    /// The connection ended or failed before the head did.
    Closed,
    /// It is no request.
    Invalid {
        /// The status of the answer.
        status: u16,
        /// Why it is invalid, if `show errors` is to show that: the head is among the bytes received.
        fault: Option<Fault>,
    },
}

impl Server {
    /// Creates the client's side of a connection of which nothing was read.
    pub fn new(transport: Transport) -> Self {
        Self { transport, input: Buffer::empty() }
    }

    /// The connection as a byte stream, and the bytes read and not consumed: for sessions in TCP mode, and for tunnels.
    pub fn bytes(&mut self) -> (&mut Transport, &mut Buffer) {
        (&mut self.transport, &mut self.input)
    }

    /// Queries about the socket.
    pub fn socket(&self) -> SocketQuery {
        self.transport.socket()
    }

    /// The bytes read and not consumed: after a head, the beginning of its body.
    pub fn received(&self) -> &[u8] {
        self.input.data()
    }

    /// Whether bytes were read and not consumed.
    pub fn has_received(&self) -> bool {
        !self.input.is_empty()
    }

    /// As [`crate::downstream::Downstream::take_spare`].
    pub fn take_spare(&mut self) -> Option<Buffer> {
        let is_spare = self.input.is_empty() && self.input.capacity() == rt::buffer_size();
        is_spare.then(|| std::mem::take(&mut self.input))
    }

    /// Releases the input buffer if it is empty.
    pub fn release(&mut self) {
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
    }

    /// Ready when a read may return something. Does not read.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.transport.poll_readable(cx)
    }

    /// Whether there is something to read: data, the end or an error.
    pub fn is_readable(&mut self) -> bool {
        self.transport.has_input()
    }

    /// Reads available bytes of a request, without waiting. Returns false if there are none, and then no buffer is
    /// held. The end of the connection counts as input.
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
    ) -> Poll<ReadResult> {
        loop {
            if self.has_received()
                && let Some(received) = self.parse(limits, scan, head)
            {
                return Poll::Ready(received);
            }
            flow::expand(&mut self.input);
            match self.transport.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(read)) if read > 0 => {}
                Poll::Ready(_) => return Poll::Ready(ReadResult::Closed),
                Poll::Pending => {
                    // A client that stops in the middle of its head holds only the received part of it.
                    flow::shrink(&mut self.input);
                    head.fields.shrink_to(PARTIAL_HEAD);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Parses the input. `None`: more is needed.
    fn parse(&mut self, limits: &h1::HeadLimits, scan: &mut Scan, head: &mut Head) -> Option<ReadResult> {
        let too_large = Fault { reason: Violation::HeadTooLarge.text(), position: self.input.len() };
        match h1::parse_request(self.input.data(), limits, scan, head) {
            Ok(Parse::Complete { consumed }) if fits(head, consumed, limits.max_head) => {
                let glitch = limits.accept_unsafe && h1::is_unsafe_request(&self.input.data()[..consumed], limits);
                let body = UnreadBody::after(head, consumed, &mut self.input);
                Some(ReadResult::Head { body, length: consumed, glitch })
            }
            Ok(Parse::Complete { .. }) => Some(ReadResult::Invalid { status: 431, fault: Some(too_large) }),
            Ok(Parse::Partial) if self.input.len() < limits.max_head => None,
            Ok(Parse::Partial) => Some(ReadResult::Invalid { status: 400, fault: Some(too_large) }),
            Err(error) => {
                let fault = Fault { reason: error.reason(), position: error.position };
                Some(ReadResult::Invalid { status: error.status(), fault: error.is_malformed().then_some(fault) })
            }
        }
    }

    /// Writes bytes of a message. `last`: the end of the connection follows at once.
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

    /// Whether the end of the connection is reported without a call of [`Server::poll_closed`].
    pub fn is_watched(&self) -> bool {
        self.transport.is_registered()
    }

    /// Whether everything that the client has sent was read, as far as is known: closing then causes no reset.
    pub fn is_settled(&self) -> bool {
        self.input.is_empty() && self.transport.is_quiet()
    }

    /// As [`Server::is_settled`], with a system call if that is not known.
    pub fn is_surely_settled(&mut self) -> bool {
        self.input.is_empty() && self.transport.is_clean()
    }

    /// Hides the close from the client (`silent-drop`).
    pub fn forget(&mut self, hops: Option<u8>) {
        // If the socket cannot be dropped silently, it is closed nevertheless.
        let _ = self.transport.forget(hops);
    }

    /// Ends the connection ([`Ending::begin`]).
    pub fn end(self, manner: CloseManner, now: Moment) -> Option<Ending> {
        // Input that was not consumed indicates that the client sends more.
        let manner =
            if manner == CloseManner::Close && self.has_received() { CloseManner::CloseWhileSending } else { manner };
        Ending::begin(self.transport, manner, now)
    }

    /// As [`Transport::set_resets`].
    pub fn set_resets(&mut self, resets: bool) {
        self.transport.set_resets(resets);
    }

    /// Moves the received part of a body into a buffer in which [`Server::poll_buffer`] can append the rest.
    pub fn begin_buffering(&mut self) {
        make_room(&mut self.input);
    }

    /// Reads more of a body that is buffered here: nothing is consumed. The buffer has space around the body for chunk
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

    /// Moves the received part of a short body into a buffer of its size, until the next [`Server::poll_buffer`]: a
    /// body that flows needs more space.
    pub fn rest_buffering(&mut self) {
        flow::shrink(&mut self.input);
    }

    /// Whether the client has sent bytes, which are read if that is not known; the end does not count.
    pub fn has_sent(&mut self) -> bool {
        if self.input.capacity() == 0 {
            self.input = rt::buffer();
        }
        self.has_received() || matches!(self.transport.try_read(&mut self.input), Ok(Some(1..)))
    }

    /// Takes the bytes read and not consumed.
    pub fn take_received(&mut self) -> Buffer {
        std::mem::replace(&mut self.input, Buffer::empty())
    }

    /// Moves the received part of a body into a buffer of that size, once. Returns false if there is none.
    pub fn grow(&mut self, large: &mut Option<usize>) -> bool {
        grow(&mut self.input, large)
    }

    /// As [`crate::downstream::Downstream::replace_body`].
    pub fn replace_body(&mut self, length: usize, body: &[u8]) {
        replace_front(&mut self.input, length, body);
    }
}

/// Replaces the first `length` bytes by others, with space around them for framing.
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

/// Moves the received part of a body into a buffer with space to append the rest, and for framing.
pub fn make_room(input: &mut Buffer) {
    let mut body = flow::body_buffer();
    if body.push(input.data()) {
        *input = body;
    }
}

/// Moves the received part of a body into a buffer of that size, once. Returns false if there is none.
pub fn grow(input: &mut Buffer, large: &mut Option<usize>) -> bool {
    let Some(size) = large.take().filter(|size| *size > input.len() && !rt::memory_is_scarce()) else { return false };
    let mut body = flow::large_body_buffer(size);
    let fits = body.push(input.data());
    if fits {
        *input = body;
    }
    fits
}

/// Whether a head leaves the space that `tune.maxrewrite` reserves, measured as in HAProxy.
pub fn fits(head: &Head, consumed: usize, room: usize) -> bool {
    /// The most that a message without fields counts in addition to its text.
    const MESSAGE: usize = 116;
    consumed + PART * head.field_count() + MESSAGE <= room || head.measure() <= room
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest head of this form that HAProxy 3.5 accepts with its defaults has 15,281 bytes.
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
