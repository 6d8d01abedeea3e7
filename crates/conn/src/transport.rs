//! The transport of a connection: what carries bytes between Weir and a peer. Owns how such a connection is accepted and
//! opened; must never know the protocol that it carries.
//!
//! Bytes go as they are, or by TLS. Tests have one more variant, in a simulated network that asks for it
//! ([`rt::sim::Network::shuffle_records`]).

mod closing;
#[cfg(feature = "fakes")]
mod records;
mod sealed;
mod tls;

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::tls::{Connection, HandshakeInfo};
use base::buffer::Buffer;
use rt::net::{
    Address, ConnectFailure, ConnectOptions, Connecting, Hangup, OwnedSocket, ParkedId, ParkedStream, Pipe,
    SocketQuery, Stream,
};

pub use tls::{Insecure, open_connections as open_tls_connections};

/// A connection of the current worker.
///
/// Errors of the `poll_` and `try_` methods are the socket's own, unless they say otherwise; a transport that returned one
/// should be dropped.
#[derive(Debug)]
pub enum Transport {
    /// Bytes as they are.
    Plain(Stream),
    /// TLS.
    Tls(Box<tls::Tls>),
    /// For tests.
    #[cfg(feature = "fakes")]
    Records(Box<records::Records>),
}

// Who speaks plainly pays nothing for those who do not.
const _: () = assert!(size_of::<Transport>() == size_of::<Stream>());

/// Matches on the variants, which mostly do the same.
macro_rules! on {
    ($transport:expr, $stream:ident => $either:expr) => {
        match $transport {
            Self::Plain($stream) => $either,
            Self::Tls($stream) => $either,
            #[cfg(feature = "fakes")]
            Self::Records($stream) => $either,
        }
    };
    ($transport:expr, $stream:ident => $plain:expr, $tls:ident => $secure:expr, $records:ident => $shuffled:expr) => {
        match $transport {
            Self::Plain($stream) => $plain,
            Self::Tls($tls) => $secure,
            #[cfg(feature = "fakes")]
            Self::Records($records) => $shuffled,
        }
    };
}

#[cfg(feature = "fakes")]
fn shuffled(records: records::Records) -> Transport {
    Transport::Records(Box::new(records))
}

/// The transport over a connection of the kernel's, or of the simulated network.
fn over(stream: Stream) -> Transport {
    #[cfg(feature = "fakes")]
    if rt::sim::shuffles_records() {
        return shuffled(records::Records::new(stream));
    }
    Transport::Plain(stream)
}

fn secure(tls: tls::Tls) -> Transport {
    Transport::Tls(Box::new(tls))
}

/// Starts a connection, without waiting.
///
/// # Errors
/// What the kernel refuses at once: no descriptors, no free port, a full backlog of a UNIX socket, no route.
pub fn connect(to: &Address, options: &ConnectOptions) -> io::Result<Opening> {
    Stream::connect(to, options).map(Opening)
}

/// As [`connect`], for callers that have to know which step failed.
///
/// # Errors
/// As for [`connect`].
pub fn try_connect(to: &Address, options: &ConnectOptions) -> Result<Opening, ConnectFailure> {
    Stream::try_connect(to, options).map(Opening)
}

/// Takes an accepted connection over on the current worker.
pub fn accept(socket: OwnedSocket) -> Transport {
    over(Stream::adopt(socket))
}

/// The same for a connection over which TLS begins once [`Transport::begin_tls`] says so.
pub fn accept_tls(socket: OwnedSocket, server: &Arc<::tls::Server>) -> Transport {
    secure(tls::Tls::new(Stream::adopt(socket), Connection::of_server(Arc::clone(server))))
}

/// A connection that is being established.
pub struct Opening(Connecting);

impl Opening {
    /// As [`Connecting::number`].
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    /// As [`Connecting::into_stream`].
    ///
    /// # Errors
    /// The future has returned the transport already.
    pub fn into_transport(self) -> io::Result<Transport> {
        self.0.into_stream().map(over)
    }
}

impl Future for Opening {
    type Output = io::Result<Transport>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx).map_ok(over)
    }
}

impl Transport {
    /// Has TLS begin over a connection that was opened, as this side of it is made; what it sends before is plain.
    /// Nothing, where TLS is there already.
    pub fn with_tls(self, client: Connection) -> Self {
        match self {
            Self::Plain(stream) => secure(tls::Tls::new(stream, client)),
            #[cfg(feature = "fakes")]
            Self::Records(records) => secure(tls::Tls::new(records.stream, client)),
            Self::Tls(tls) => Self::Tls(tls),
        }
    }

    /// The handshake begins, where there is to be one; `early` is what has come of the peer's bytes.
    pub fn begin_tls(&mut self, early: &[u8]) {
        if let Self::Tls(tls) = self {
            tls.begin(early);
        }
    }

    /// Whether bytes go by TLS, or are to.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Ready when the handshake is over, at once where there is none, or as soon as data goes over the connection before that
    /// (early data). A handshake that failed has said so to the peer.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Insecure>> {
        match self {
            Self::Tls(tls) => tls.poll_handshake(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Ready when the handshake is over, whatever went over the connection before; early data that was not read stays.
    pub fn poll_whole_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Insecure>> {
        match self {
            Self::Tls(tls) => tls.poll_whole_handshake(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Whether the handshake is over, or there is none.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Tls(tls) => tls.is_whole(),
            _ => true,
        }
    }

    /// The protocol of early data that goes to a server, where that depends on what the handshake agrees on.
    pub fn early_protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(tls) => tls.early_protocol(),
            _ => None,
        }
    }

    /// Whether the server does not speak the protocol of early data: it has seen nothing of that, and the connection has failed.
    pub fn has_refused_early(&self) -> bool {
        match self {
            Self::Tls(tls) => tls.has_refused_early(),
            _ => false,
        }
    }

    /// What the handshake has found; `None`: there was none.
    pub fn handshake_info(&self) -> Option<&Arc<HandshakeInfo>> {
        match self {
            Self::Tls(tls) => tls.info(),
            _ => None,
        }
    }

    /// Reads into the spare part of `buffer`; 0 is the end.
    ///
    /// # Errors
    /// The socket's; `InvalidInput` when `buffer` has no room.
    #[inline]
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        on!(self, stream => stream.poll_read(cx, buffer))
    }

    /// Reads without waiting: `None` when there is nothing yet. No task is woken when there is.
    ///
    /// # Errors
    /// As for [`Transport::poll_read`].
    #[inline]
    pub fn try_read(&mut self, buffer: &mut Buffer) -> io::Result<Option<usize>> {
        on!(self, stream => stream.try_read(buffer))
    }

    /// Drops up to `most` received bytes and returns how many; 0 is the end. TCP only.
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn poll_discard(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        on!(self, stream => stream.poll_discard(cx, most))
    }

    /// Writes both buffers, `head` first, with one call, and consumes what was written. `more` announces that more data or
    /// a close follows at once.
    ///
    /// What was written has left the process: nothing is to be flushed. A transport that makes something else of the bytes
    /// first (TLS records) is pending until all of that is out. So a write that was pending is repeated with the same first
    /// bytes, to which more may have been appended, or the connection is given up.
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        on!(self, stream => stream.poll_write(cx, head, body, more))
    }

    /// Writes slices with one call and returns how many bytes were written.
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        on!(self, stream => stream.poll_write_slices(cx, slices, more))
    }

    /// Whether [`Transport::poll_write_slices`] hands them to the kernel as they are, or encrypts them from where they lie.
    pub fn takes_slices(&self) -> bool {
        on!(self, _stream => true, _tls => true, _records => false)
    }

    /// Writes without waiting: `None` when nothing is taken now. No task is woken when something is.
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn try_write(&mut self, bytes: &[u8], more: bool) -> io::Result<Option<usize>> {
        on!(self, stream => stream.try_write(bytes, more))
    }

    /// Ready when a read may return something, without reading.
    #[inline]
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on!(self, stream => stream.poll_readable(cx))
    }

    /// Ready when a write may take something.
    #[inline]
    pub fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on!(self, stream => stream.poll_writable(cx))
    }

    /// Ready when the peer has closed or the connection failed. Data that arrives meanwhile wakes no task.
    #[inline]
    pub fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        on!(self, stream => stream.poll_hangup(cx))
    }

    /// Moves received bytes into the pipe, at most `most`; 0 is the end.
    ///
    /// # Errors
    /// The socket's; `InvalidInput` where this transport or socket cannot be spliced.
    pub fn poll_splice_into(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, most: usize) -> Poll<io::Result<usize>> {
        on!(self, stream => pipe.poll_splice_in(cx, stream, most), _tls => tls::not_spliced(), _records => records::not_spliced())
    }

    /// Whether bytes may go past this process on their way out.
    pub fn can_splice(&self) -> bool {
        on!(self, _stream => true, _tls => false, _records => false)
    }

    /// Sends what the pipe holds. `more` as for [`Transport::poll_write`].
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_splice_from(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, more: bool) -> Poll<io::Result<usize>> {
        on!(self, stream => pipe.poll_splice_out(cx, stream, more), _tls => tls::not_spliced(), _records => records::not_spliced())
    }

    /// Writes bytes over a UNIX socket, descriptors with the first of them.
    ///
    /// # Errors
    /// The socket's; `Unsupported` in a simulation.
    pub fn poll_send_descriptors(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Poll<io::Result<usize>> {
        on!(self, stream => stream.poll_send_descriptors(cx, bytes, descriptors))
    }

    /// Has the driver watch the connection from now on, and not only from the first wait.
    #[inline]
    pub fn register(&mut self) {
        on!(self, stream => stream.register());
    }

    /// Whether the driver watches the connection.
    #[inline]
    pub fn is_registered(&self) -> bool {
        on!(self, stream => stream.is_registered())
    }

    /// Ends this direction in order.
    ///
    /// # Errors
    /// The socket's: `NotConnected` after a reset.
    #[inline]
    pub fn shutdown_write(&mut self) -> io::Result<()> {
        on!(self, stream => stream.shutdown_write())
    }

    /// Makes closing reset the connection instead of ending it in order.
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn set_linger_zero(&mut self) -> io::Result<()> {
        self.be_silent();
        on!(self, stream => stream.set_linger_zero())
    }

    /// Makes closing invisible to the peer (`silent-drop`); with a number of `hops`, by a reset with that time to live.
    ///
    /// # Errors
    /// The socket's.
    pub fn forget(&mut self, hops: Option<u8>) -> io::Result<()> {
        self.be_silent();
        on!(self, stream => stream.forget(hops))
    }

    /// Closing it says nothing.
    fn be_silent(&mut self) {
        if let Self::Tls(tls) = self {
            tls.be_silent();
        }
    }

    /// Wakes readers only when so many bytes have come (`SO_RCVLOWAT`).
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        on!(self, stream => stream.set_receive_low_water(bytes))
    }

    /// Sends segments that are by so many bytes smaller than the peer would take (`TCP_MAXSEG`).
    ///
    /// # Errors
    /// The socket's.
    pub fn reduce_segments(&mut self, by: u32) -> io::Result<()> {
        on!(self, stream => stream.reduce_segments(by))
    }

    /// Bytes of a full segment to the peer. A system call.
    ///
    /// # Errors
    /// The socket's; one that is not TCP has no segments.
    pub fn segment_size(&self) -> io::Result<usize> {
        on!(self, stream => stream.segment_size())
    }

    /// Bytes that may be written now without waiting, about. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn send_capacity(&self) -> io::Result<usize> {
        on!(self, stream => stream.send_capacity())
    }

    /// The address of this end. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn local_address(&self) -> io::Result<Address> {
        on!(self, stream => stream.local_address())
    }

    /// The address of the peer. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn peer_address(&self) -> io::Result<Address> {
        on!(self, stream => stream.peer_address())
    }

    /// A handle that queries the socket for as long as the transport exists.
    #[inline]
    pub fn socket(&self) -> SocketQuery {
        on!(self, stream => stream.query())
    }

    /// The socket's number.
    #[inline]
    pub fn number(&self) -> i32 {
        on!(self, stream => stream.number())
    }

    /// True where nothing is known of unread bytes, an end or an error. A system call where that is not known.
    #[inline]
    pub fn is_clean(&mut self) -> bool {
        on!(self, stream => stream.is_clean())
    }

    /// Whether there is something to read: data, the end or an error. A system call where that is not known.
    #[inline]
    pub fn has_input(&mut self) -> bool {
        on!(self, stream => stream.has_input())
    }

    /// Whether the peer has reset the connection, or it has failed otherwise. A system call unless that was reported.
    pub fn is_reset(&mut self) -> bool {
        on!(self, stream => stream.is_reset())
    }

    /// Whether the last read found nothing more, and nothing was reported since.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        on!(self, stream => stream.is_quiet())
    }

    /// Reads what came while the connection was idle, where that concerns the transport alone (a session ticket, a key
    /// update). False: it was data, or the end.
    pub fn settle(&mut self) -> bool {
        on!(self, _stream => false, tls => tls.settle(), records => records.settle())
    }

    /// Makes the connection idle: plain data that any worker may take.
    #[inline]
    pub fn park(self) -> Parked {
        on!(
            self,
            stream => Parked::Plain(stream.park()),
            tls => Parked::Tls(tls.park()),
            records => Parked::Records(records.park())
        )
    }

    /// Whether another worker may take it over: nothing is inside that was read and not used, or not written yet.
    pub fn is_movable(&self) -> bool {
        on!(self, _stream => true, tls => !tls.is_spoilt(), records => records.is_movable())
    }

    /// Ends the connection by a reset, and keeps its socket for the next brief one ([`rt::net::reset`]). Only for
    /// connections that were opened with plain options; `v6` is the family that it was connected in.
    pub fn reset(self, v6: bool) {
        on!(
            self,
            stream => rt::net::reset(stream, v6),
            tls => rt::net::reset(tls.into_stream(), v6),
            records => rt::net::reset(records.stream, v6)
        );
    }
}

/// What an event on an idle connection means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its end.
    Close,
    /// Nothing.
    Keep,
    /// That is known once its transport has read: [`Transport::settle`].
    NeedsIo,
}

/// An idle connection that no task owns.
pub enum Parked {
    /// Bytes as they are.
    Plain(ParkedStream),
    /// TLS.
    Tls(Box<tls::ParkedTls>),
    /// For tests.
    #[cfg(feature = "fakes")]
    Records(records::ParkedRecords),
}

impl Parked {
    /// The name under which an event on it is reported.
    #[inline]
    pub fn id(&self) -> ParkedId {
        on!(self, parked => parked.id())
    }

    /// The number of its descriptor.
    pub fn number(&self) -> i32 {
        on!(self, parked => parked.number(), tls => tls.parked.number(), records => records.number())
    }

    /// Whether it is secured.
    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// What an event on it means. Nobody has asked a peer for plain bytes: they end it.
    pub fn verdict(&self) -> Verdict {
        on!(self, _parked => Verdict::Close, _tls => Verdict::NeedsIo, _records => Verdict::NeedsIo)
    }

    /// Takes it over on the worker that it lies on, whatever happened. `None`: it lies on another one.
    pub(crate) fn resume(self) -> Option<Transport> {
        on!(
            self,
            parked => parked.resume().map(Transport::Plain),
            tls => tls.resume().map(secure),
            records => records.resume().map(shuffled)
        )
    }

    /// Takes it over on the current worker, whatever happened on it. `None`: it is lost.
    pub(crate) fn take_over(self) -> Option<Transport> {
        on!(
            self,
            parked => parked.take_over().map(Transport::Plain),
            tls => tls.take_over().map(secure),
            records => records.take_over().map(shuffled)
        )
    }

    /// Takes it over on the current worker. `None`: it is not open and silent any more.
    #[inline]
    pub fn adopt(self) -> Option<Transport> {
        on!(
            self,
            parked => parked.adopt().map(Transport::Plain),
            tls => tls.adopt().map(secure),
            records => records.adopt().map(shuffled)
        )
    }
}
