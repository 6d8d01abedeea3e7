//! The client's end of an exchange: a connection that carries one request after the other, or one stream of a connection
//! that carries several. Owns what both have to offer to a request; must never choose an answer.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use rt::net::Hangup;
use wire::h1::{self, Edits, HeadLimits, Overflow, Scan};
use wire::http::{Fields, Framing, Head};

use crate::behind::Behind;
use crate::ending::{Ending, Manner};
use crate::h1::{Received, Server, first_payload};
use crate::h2::{self, Kill};
use crate::transport::{Insecure, Transport};

/// Where a request comes from, and where its answer goes.
///
/// Errors of its methods are those of the connection; a client that returned one gets nothing more.
pub enum Downstream {
    /// A connection of HTTP/1.
    H1(Server),
    /// A stream of HTTP/2.
    H2(Box<h2::Stream>),
}

/// How the head of an answer is written for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadFormat {
    /// As text (RFC 9112); the body may be chunked.
    H1,
    /// As frames of the stream with that number (RFC 9113).
    H2(u32),
}

impl HeadFormat {
    /// Whether a body without a length can be chunked.
    pub(crate) fn has_chunks(self) -> bool {
        self == Self::H1
    }

    /// Writes a head.
    ///
    /// # Errors
    /// It does not fit.
    pub(crate) fn encode(self, head: &Head, edits: &Edits<'_>, out: &mut Buffer) -> Result<(), Overflow> {
        match self {
            Self::H1 => h1::encode_response(head, edits, out),
            Self::H2(stream) => wire::h2::encode_response(stream, head, edits, out),
        }
    }
}

/// Matches on the variants, which mostly do the same.
macro_rules! on {
    ($client:expr, $either:ident => $same:expr) => {
        match $client {
            Self::H1($either) => $same,
            Self::H2($either) => $same,
        }
    };
    ($client:expr, $server:ident => $h1:expr, $stream:ident => $several:expr) => {
        match $client {
            Self::H1($server) => $h1,
            Self::H2($stream) => $several,
        }
    };
}

impl Downstream {
    /// A connection of HTTP/1, or in TCP mode, of which nothing was read.
    pub fn new(transport: Transport) -> Self {
        Self::H1(Server::new(transport))
    }

    /// The connection as a byte stream, and what was read of it: for sessions in TCP mode, and for tunnels. `None`: a
    /// stream, whose connection is not the request's own.
    pub fn bytes(&mut self) -> Option<(&mut Transport, &mut Buffer)> {
        on!(self, server => Some(server.bytes()), _stream => None)
    }

    /// Whether the connection is the request's own, so that it ends with the request where that has to be.
    pub fn is_connection(&self) -> bool {
        on!(self, _server => true, _stream => false)
    }

    /// What was read and not used: behind a head, the beginning of its body.
    pub fn received(&self) -> &[u8] {
        on!(self, either => either.received())
    }

    /// The payload at the beginning of a body with that framing, of what was read and not used: at most the first chunk.
    pub fn first_payload(&self, framing: Framing) -> &[u8] {
        on!(self, server => first_payload(framing, server.received()), stream => {
            let _ = framing;
            stream.received()
        })
    }

    /// What was read behind a head and not used.
    pub fn behind(&self) -> Behind<'_> {
        Behind { data: self.received(), coded: self.is_connection() }
    }

    /// Whether something of a request has come that was not used.
    pub fn has_received(&self) -> bool {
        on!(self, either => either.has_received())
    }

    /// Whether the request has failed already: its client has reset it, or has made that necessary.
    pub fn is_withdrawn(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => stream.has_failed(),
        }
    }

    /// Whether all of a request that has failed had come.
    pub fn was_whole(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => stream.was_whole(),
        }
    }

    /// Whether nothing is left to be read of a request whose end is told apart from its payload.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => stream.has_ended(),
        }
    }

    /// Takes what was read and not used.
    pub fn take_received(&mut self) -> Buffer {
        on!(self, either => either.take_received())
    }

    /// Gives an empty buffer back.
    pub fn release(&mut self) {
        on!(self, either => either.release());
    }

    /// Ready when a read may return something. Reads nothing.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on!(self, either => either.poll_readable(cx))
    }

    /// Whether there is something to read: data, the end or an error.
    pub fn is_readable(&mut self) -> bool {
        on!(self, either => either.is_readable())
    }

    /// As [`Server::try_receive`].
    pub fn try_receive(&mut self) -> bool {
        on!(self, server => server.try_receive(), stream => stream.has_received())
    }

    /// As [`Transport::poll_whole_handshake`]; pending for a stream, whose connection is read by another task.
    ///
    /// # Errors
    /// It has failed.
    pub fn poll_whole_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Insecure>> {
        on!(self, server => server.transport.poll_whole_handshake(cx), _stream => Poll::Pending)
    }

    /// As [`Server::poll_head`].
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: &HeadLimits,
        scan: &mut Scan,
        head: &mut Head,
    ) -> Poll<Received> {
        on!(self, server => server.poll_head(cx, limits, scan, head), stream => {
            let _ = cx;
            Poll::Ready(stream.take_head(limits, scan, head))
        })
    }

    /// Writes bytes of a prepared answer, a text of HTTP/1: its head is whole in the first call. `last`: the connection's
    /// end follows at once.
    ///
    /// # Errors
    /// The transport's; `InvalidData` where a stream cannot carry the text.
    pub fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], last: bool) -> Poll<io::Result<usize>> {
        on!(self, server => server.poll_send(cx, bytes, last), stream => stream.poll_send(cx, bytes))
    }

    /// Whether [`Downstream::poll_write_slices`] may be called, and copies nothing.
    pub fn takes_slices(&self) -> bool {
        on!(self, server => server.transport.takes_slices(), _stream => false)
    }

    /// Writes parts of an answer from where they lie.
    ///
    /// # Errors
    /// The transport's; `Unsupported` where [`Downstream::takes_slices`] says so.
    pub fn poll_write_slices(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        on!(self, server => server.transport.poll_write_slices(cx, slices, false), _stream => {
            let _ = (cx, slices);
            Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
        })
    }

    /// How heads of answers are written.
    pub fn head_format(&self) -> HeadFormat {
        match self {
            Self::H1(_) => HeadFormat::H1,
            Self::H2(stream) => HeadFormat::H2(stream.number()),
        }
    }

    /// All of the answer was written. An answer without that was cut off, which a stream tells its client.
    /// `trailers` are for a stream.
    pub fn complete(&mut self, trailers: Option<&Fields>) {
        match self {
            Self::H1(_) => {}
            Self::H2(stream) => stream.complete(trailers),
        }
    }

    /// Ready when the client has closed its direction or the connection failed.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        on!(self, either => either.poll_closed(cx))
    }

    /// Whether an end of the connection is reported without [`Downstream::poll_closed`] having to ask for that first.
    pub fn is_watched(&self) -> bool {
        on!(self, server => server.is_watched(), _stream => true)
    }

    /// Whether everything that the client has sent was read, as far as is known: closing then resets nothing.
    pub fn is_settled(&self) -> bool {
        on!(self, server => server.is_settled(), _stream => true)
    }

    /// As [`Downstream::is_settled`], and asks the system where that is not known.
    pub fn is_surely_settled(&mut self) -> bool {
        on!(self, server => server.is_surely_settled(), _stream => true)
    }

    /// Makes the end invisible to the client (`silent-drop`). A connection of several streams ends with all of them.
    pub fn forget(&mut self, hops: Option<u8>) {
        on!(self, server => server.forget(hops), stream => stream.kill(Kill::Forget(hops)));
    }

    /// The connection ends with the request that ends now, and those of its other streams with it (`reject`).
    pub fn end_connection(&mut self) {
        on!(self, _server => {}, stream => stream.kill(Kill::Close));
    }

    /// Sets whether dropping a connection resets it: from the start to the end of a close-delimited answer (RFC 9112, section 6.3).
    /// No effect on a stream, whose end is a flag of a frame.
    pub fn set_resets(&mut self, resets: bool) {
        on!(self, server => server.set_resets(resets), _stream => {
            let _ = resets;
        });
    }

    /// Ends a connection, which is closed when the ending is dropped. `None`: it is closed already, or a stream that is let go.
    pub fn end(self, manner: Manner, now: Moment) -> Option<Ending> {
        match self {
            Self::H1(server) => server.end(manner, now),
            Self::H2(_) => None,
        }
    }

    /// Whether it is a stream of several whose request is not all here, and that keeps nothing.
    #[inline]
    pub fn is_uploading(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => !stream.was_whole() && !stream.keeps(),
        }
    }

    /// Whether the client has reset it: it gets no answer.
    pub fn is_reset(&mut self) -> bool {
        match self {
            Self::H1(server) => server.is_reset(),
            Self::H2(stream) => stream.has_failed(),
        }
    }

    /// Keeps something as long as the stream; a connection keeps nothing.
    pub fn keep(&mut self, what: Box<dyn std::any::Any>) {
        match self {
            Self::H1(_) => {}
            Self::H2(stream) => stream.keep(what),
        }
    }

    /// As [`Server::begin_buffering`].
    pub fn begin_buffering(&mut self) {
        on!(self, either => either.begin_buffering());
    }

    /// Where it is one stream of several, it ends with the word that nothing was done for its request, which the client may send
    /// again (RFC 9113, section 8.7), unless it is answered before. Whether that can be said.
    pub fn refuse(&mut self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => {
                stream.refuse();
                true
            }
        }
    }

    /// Whether the last [`Downstream::poll_buffer`] has completed something: of frames that come in parts, all of one.
    pub fn completes(&mut self) -> bool {
        match self {
            Self::H1(_) => true,
            Self::H2(stream) => crate::flow::ByteSource::completes(&mut **stream),
        }
    }

    /// As [`Server::poll_buffer`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_buffer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        on!(self, either => either.poll_buffer(cx))
    }

    /// As [`Server::rest_buffering`].
    pub fn rest_buffering(&mut self) {
        on!(self, either => either.rest_buffering());
    }

    /// As [`Server::grow`].
    pub fn grow(&mut self, large: &mut Option<usize>) -> bool {
        on!(self, either => either.grow(large))
    }

    /// Puts another body in the place of one that has come whole and takes `length` bytes of what was received. Whoever starts
    /// its flow says so ([`crate::h1::UnreadBody::replaced`]).
    pub fn replace_body(&mut self, length: usize, body: &[u8]) {
        on!(self, either => either.replace_body(length, body));
    }

    /// As [`Server::has_sent`].
    pub fn has_sent(&mut self) -> bool {
        on!(self, server => server.has_sent(), _stream => true)
    }
}
