//! The client's end of an exchange: a connection that carries one request after the other, or one stream of a
//! multiplexed connection. Owns the operations that both provide to a request; must never choose an answer.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use rt::net::Hangup;
use wire::h1::{self, Edits, HeadLimits, Overflow, Scan};
use wire::http::{Fields, Framing, Head};

use crate::buffered_body::BufferedBody;
use crate::carrier::Carrier;
use crate::ending::{CloseManner, Ending};
use crate::flow::ByteSink;
use crate::h1::{ReadResult, Server, first_payload};
use crate::h2::{self, Kill};
use crate::h3;
use crate::transport::{Insecure, Transport};

/// The source of a request, and the sink of its answer.
///
/// Errors of its methods are those of the connection; nothing more is sent to a client after one.
pub enum Downstream {
    /// A connection of HTTP/1.
    H1(Server),
    /// A stream of HTTP/2.
    H2(h2::Stream),
    /// A stream of HTTP/3.
    H3(h3::Stream),
}

/// The format of answer heads for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadFormat {
    /// As text (RFC 9112); the body may be chunked.
    H1,
    /// As frames of the stream with this identifier (RFC 9113).
    H2(u32),
    /// As a frame of a stream (RFC 9114).
    H3,
}

impl HeadFormat {
    /// Whether a body without a length can be chunked.
    pub(crate) fn has_chunks(self) -> bool {
        self == Self::H1
    }

    /// Encodes a head.
    ///
    /// # Errors
    /// It does not fit.
    pub(crate) fn encode(self, head: &Head, edits: &Edits<'_>, out: &mut Buffer) -> Result<(), Overflow> {
        match self {
            Self::H1 => h1::encode_response(head, edits, out),
            Self::H2(stream) => wire::h2::encode_response(stream, head, edits, out),
            Self::H3 => wire::h3::encode_response(head, edits, out),
        }
    }
}

/// Matches on the variants, which mostly do the same.
macro_rules! on {
    ($client:expr, $either:ident => $same:expr) => {
        match $client {
            Self::H1($either) => $same,
            Self::H2($either) => $same,
            Self::H3($either) => $same,
        }
    };
    ($client:expr, $server:ident => $h1:expr, $stream:ident => $several:expr) => {
        match $client {
            Self::H1($server) => $h1,
            Self::H2($stream) => $several,
            Self::H3($stream) => $several,
        }
    };
}

/// Evaluates an expression with the source and sink of a client, whatever its protocol: one instance of generic code for each.
macro_rules! with_client {
    ($client:expr, $end:ident => $same:expr) => {
        match $client {
            $crate::downstream::Downstream::H1(server) => {
                let $end = &mut server.transport;
                $same
            }
            $crate::downstream::Downstream::H2(stream) => {
                let $end = &mut *stream;
                $same
            }
            $crate::downstream::Downstream::H3(stream) => {
                let $end = &mut *stream;
                $same
            }
        }
    };
}

pub(crate) use with_client;

impl Downstream {
    /// Whether the request asks for a WebTransport session that its connection permits.
    pub fn is_session(&self) -> bool {
        match self {
            Self::H3(stream) => stream.is_session(),
            Self::H1(_) | Self::H2(_) => false,
        }
    }

    /// Returns the relay of the session between a client and a server. `None`: one of them has no session.
    pub fn relay_to(&self, server: &Carrier) -> Option<h3::Relay> {
        match (self, server) {
            (Self::H3(stream), Carrier::H3(request)) => h3::Relay::between(stream, request),
            _ => None,
        }
    }

    /// Creates the client's end of a new connection of HTTP/1, or in TCP mode, of which nothing was read.
    pub fn new(transport: Transport) -> Self {
        Self::H1(Server::new(transport))
    }

    /// The connection as a byte stream, and the bytes read and not consumed: for sessions in TCP mode, and for tunnels.
    /// `None`: it is a stream, which does not own its connection.
    pub fn bytes(&mut self) -> Option<(&mut Transport, &mut Buffer)> {
        on!(self, server => Some(server.bytes()), _stream => None)
    }

    /// Whether the request owns the connection, so that closing it ends only this request.
    pub fn is_connection(&self) -> bool {
        on!(self, _server => true, _stream => false)
    }

    /// The bytes read and not consumed: after a head, the beginning of its body.
    pub fn received(&self) -> &[u8] {
        on!(self, either => either.received())
    }

    /// The payload at the beginning of a body with that framing, in the bytes read and not consumed: at most the first
    /// chunk.
    pub fn first_payload(&self, framing: Framing) -> &[u8] {
        on!(self, server => first_payload(framing, server.received()), stream => {
            let _ = framing;
            stream.received()
        })
    }

    /// The bytes read after a head and not consumed.
    pub fn behind(&self) -> BufferedBody<'_> {
        BufferedBody { data: self.received(), coded: self.is_connection() }
    }

    /// The identifier of its stream on a multiplexed connection.
    pub fn stream_id(&self) -> Option<u32> {
        match self {
            Self::H1(_) => None,
            Self::H2(stream) => Some(stream.number()),
            Self::H3(stream) => Some(u32::try_from(stream.number()).unwrap_or(u32::MAX)),
        }
    }

    /// Whether bytes of a request were received and not consumed.
    pub fn has_received(&self) -> bool {
        on!(self, either => either.has_received())
    }

    /// Whether the request has failed already: the client has reset the stream, or caused a stream error.
    pub fn is_withdrawn(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => stream.has_failed(),
            Self::H3(stream) => stream.has_failed(),
        }
    }

    /// Whether a request that has failed was received whole.
    pub fn was_whole(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => stream.was_whole(),
            Self::H3(stream) => stream.was_whole(),
        }
    }

    /// Whether the input has ended, for a request whose end is signalled separately from its payload.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => stream.has_ended(),
            Self::H3(stream) => stream.has_ended(),
        }
    }

    /// Takes the bytes read and not consumed.
    pub fn take_received(&mut self) -> Buffer {
        on!(self, either => either.take_received())
    }

    /// Releases the input buffer if it is empty.
    pub fn release(&mut self) {
        on!(self, either => either.release());
    }

    /// Ready when a read may return something. Does not read.
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
    /// The handshake failed.
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
    ) -> Poll<ReadResult> {
        on!(self, server => server.poll_head(cx, limits, scan, head), stream => {
            let _ = cx;
            Poll::Ready(stream.take_head(limits, scan, head))
        })
    }

    /// Writes bytes of a prepared answer, in the text format of HTTP/1; the first call contains the whole head. `last`:
    /// the end of the connection follows at once.
    ///
    /// # Errors
    /// The transport's; `InvalidData` if a stream cannot carry the text.
    pub fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], last: bool) -> Poll<io::Result<usize>> {
        on!(self, server => server.poll_send(cx, bytes, last), stream => stream.poll_send(cx, bytes))
    }

    /// Whether [`Downstream::poll_write_slices`] is supported and saves a copy.
    pub fn takes_slices(&self) -> bool {
        on!(self, server => server.transport.takes_slices(), _stream => false)
    }

    /// Writes parts of an answer from their own memory.
    ///
    /// # Errors
    /// The transport's; `Unsupported` if [`Downstream::takes_slices`] is false.
    pub fn poll_write_slices(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        on!(self, server => server.transport.poll_write_slices(cx, slices, false), _stream => {
            let _ = (cx, slices);
            Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
        })
    }

    /// Writes an answer that was received whole, `head` first, and consumes what was written. `last`: the end of the
    /// connection follows at once.
    ///
    /// # Errors
    /// The connection's.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        last: bool,
    ) -> Poll<io::Result<usize>> {
        with_client!(self, end => end.poll_write(cx, head, body, last))
    }

    /// Takes the buffer of the input for other use, if it holds no data. `None`: there is none of the usual size.
    pub fn take_spare(&mut self) -> Option<Buffer> {
        match self {
            Self::H1(server) => server.take_spare(),
            Self::H2(_) | Self::H3(_) => None,
        }
    }

    /// The format of answer heads.
    pub fn head_format(&self) -> HeadFormat {
        match self {
            Self::H1(_) => HeadFormat::H1,
            Self::H2(stream) => HeadFormat::H2(stream.number()),
            Self::H3(_) => HeadFormat::H3,
        }
    }

    /// Marks the answer as complete. A stream that ends without this call resets, so that its client detects the
    /// truncation. `trailers` are sent on a stream only.
    pub fn complete(&mut self, trailers: Option<&Fields>) {
        match self {
            Self::H1(_) => {}
            Self::H2(stream) => stream.complete(trailers),
            Self::H3(stream) => stream.complete(trailers),
        }
    }

    /// Ready when the client has closed its direction or the connection failed.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        on!(self, either => either.poll_closed(cx))
    }

    /// Whether the end of the connection is reported without a call of [`Downstream::poll_closed`].
    pub fn is_watched(&self) -> bool {
        on!(self, server => server.is_watched(), _stream => true)
    }

    /// Whether everything that the client has sent was read, as far as is known: closing then causes no reset.
    pub fn is_settled(&self) -> bool {
        on!(self, server => server.is_settled(), _stream => true)
    }

    /// As [`Downstream::is_settled`], with a system call if that is not known.
    pub fn is_surely_settled(&mut self) -> bool {
        on!(self, server => server.is_surely_settled(), _stream => true)
    }

    /// Hides the close from the client (`silent-drop`). A multiplexed connection is closed with all its streams.
    pub fn forget(&mut self, hops: Option<u8>) {
        on!(self, server => server.forget(hops), stream => stream.kill(Kill::Forget(hops)));
    }

    /// Closes the connection with this request, and with it all its other streams (`reject`).
    pub fn end_connection(&mut self) {
        on!(self, _server => {}, stream => stream.kill(Kill::Close));
    }

    /// Sets whether dropping a connection resets it: from the start to the end of a close-delimited answer (RFC 9112,
    /// section 6.3). No effect on a stream, whose end is a flag of a frame.
    pub fn set_resets(&mut self, resets: bool) {
        on!(self, server => server.set_resets(resets), _stream => {
            let _ = resets;
        });
    }

    /// Ends a connection, which is closed when the ending is dropped. `None`: it is closed already, or is a stream,
    /// which is released.
    pub fn end(self, manner: CloseManner, now: Moment) -> Option<Ending> {
        match self {
            Self::H1(server) => server.end(manner, now),
            Self::H2(_) | Self::H3(_) => None,
        }
    }

    /// Whether it is a stream whose request was not received whole, and that keeps nothing.
    #[inline]
    pub fn is_uploading(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => !stream.was_whole() && !stream.keeps(),
            Self::H3(stream) => !stream.was_whole() && !stream.keeps(),
        }
    }

    /// Whether the client has reset it, so that an answer cannot be delivered.
    pub fn is_reset(&mut self) -> bool {
        match self {
            Self::H1(server) => server.is_reset(),
            Self::H2(stream) => stream.has_failed(),
            Self::H3(stream) => stream.has_failed(),
        }
    }

    /// Keeps a value alive as long as the stream; a connection keeps nothing.
    pub fn keep(&mut self, what: Box<dyn std::any::Any>) {
        match self {
            Self::H1(_) => {}
            Self::H2(stream) => stream.keep(what),
            Self::H3(stream) => stream.keep(what),
        }
    }

    /// As [`Server::begin_buffering`].
    pub fn begin_buffering(&mut self) {
        on!(self, either => either.begin_buffering());
    }

    /// Marks a stream as refused: unless it is answered before it ends, it is reset with REFUSED_STREAM, so that the
    /// client may send the request again (RFC 9113, section 8.7). Returns whether the protocol supports this.
    pub fn refuse(&mut self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(stream) => {
                stream.refuse();
                true
            }
            Self::H3(stream) => {
                stream.refuse();
                true
            }
        }
    }

    /// Whether the last [`Downstream::poll_buffer`] has completed something; for frames received in parts, a whole
    /// frame.
    pub fn completes(&mut self) -> bool {
        match self {
            Self::H1(_) => true,
            Self::H2(stream) => crate::flow::ByteSource::completes(stream),
            Self::H3(stream) => crate::flow::ByteSource::completes(stream),
        }
    }

    /// As [`Server::poll_buffer`].
    ///
    /// # Errors
    /// As [`Server::poll_buffer`].
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

    /// Replaces a body that was received whole, `length` bytes of the input, by another. The code that starts the
    /// body's flow has to mark it as replaced ([`crate::h1::UnreadBody::replaced`]).
    pub fn replace_body(&mut self, length: usize, body: &[u8]) {
        on!(self, either => either.replace_body(length, body));
    }

    /// As [`Server::has_sent`].
    pub fn has_sent(&mut self) -> bool {
        on!(self, server => server.has_sent(), _stream => true)
    }
}
