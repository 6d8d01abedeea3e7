//! The transport of a connection: the carrier of bytes between Weir and a peer. Owns how such a connection is accepted
//! and opened; must never know the protocol that it carries.
//!
//! Bytes are sent plainly, or by TLS. Tests have one more variant, enabled by a simulated network
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
/// Errors of the `poll_` and `try_` methods are the socket's own, unless documented otherwise; a transport that
/// returned one should be dropped.
#[derive(Debug)]
pub enum Transport {
    /// Plain bytes.
    Plain(Stream),
    /// TLS.
    Tls(Box<tls::Tls>),
    /// For tests.
    #[cfg(feature = "fakes")]
    Records(Box<records::Records>),
}

// Plain connections pay nothing for the other variants.
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

/// Returns the transport over a connection of the kernel, or of the simulated network.
fn of_stream(stream: Stream) -> Transport {
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
/// Errors that the kernel returns at once: no descriptors, no free port, a full backlog of a UNIX socket, no route.
pub fn connect(to: &Address, options: &ConnectOptions) -> io::Result<Opening> {
    Stream::connect(to, options).map(Opening)
}

/// As [`connect`], for callers that need to know which step failed.
///
/// # Errors
/// As for [`connect`].
pub fn try_connect(to: &Address, options: &ConnectOptions) -> Result<Opening, ConnectFailure> {
    Stream::try_connect(to, options).map(Opening)
}

/// Takes an accepted connection over on the current worker.
pub fn accept(socket: OwnedSocket) -> Transport {
    of_stream(Stream::adopt(socket))
}

/// As [`accept`], for a connection over which TLS begins at the call of [`Transport::begin_tls`].
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
    /// The future has already returned the transport.
    pub fn into_transport(self) -> io::Result<Transport> {
        self.0.into_stream().map(of_stream)
    }
}

impl Future for Opening {
    type Output = io::Result<Transport>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx).map_ok(of_stream)
    }
}

impl Transport {
    /// Wraps an opened connection in TLS with this configuration; bytes sent before are plain. No effect if it uses TLS
    /// already.
    pub fn with_tls(self, client: Connection) -> Self {
        match self {
            Self::Plain(stream) => secure(tls::Tls::new(stream, client)),
            #[cfg(feature = "fakes")]
            Self::Records(records) => secure(tls::Tls::new(records.stream, client)),
            Self::Tls(tls) => Self::Tls(tls),
        }
    }

    /// Begins the handshake, if the transport uses TLS; `early` are bytes of the peer that were read already.
    pub fn begin_tls(&mut self, early: &[u8]) {
        if let Self::Tls(tls) = self {
            tls.begin(early);
        }
    }

    /// Whether the transport uses TLS, or will after its handshake.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Ready when the handshake is complete, at once if there is none, or as soon as early data can be exchanged. If
    /// the handshake fails, an alert was sent to the peer.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Insecure>> {
        match self {
            Self::Tls(tls) => tls.poll_handshake(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Ready when the handshake is complete, even if early data was exchanged before; early data that was not read
    /// stays.
    pub fn poll_whole_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Insecure>> {
        match self {
            Self::Tls(tls) => tls.poll_whole_handshake(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Whether the handshake is complete, or there is none.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Tls(tls) => tls.is_whole(),
            _ => true,
        }
    }

    /// The protocol of early data sent to a server, if it depends on the result of the handshake.
    pub fn early_protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(tls) => tls.early_protocol(),
            _ => None,
        }
    }

    /// Whether the server does not support the protocol of the early data: it has not seen that data, and the
    /// connection has failed.
    pub fn has_refused_early(&self) -> bool {
        match self {
            Self::Tls(tls) => tls.has_refused_early(),
            _ => false,
        }
    }

    /// The result of the handshake; `None`: there was none.
    pub fn handshake_info(&self) -> Option<&Arc<HandshakeInfo>> {
        match self {
            Self::Tls(tls) => tls.info(),
            _ => None,
        }
    }

    /// Reads into the free space of `buffer`; 0 is the end.
    ///
    /// # Errors
    /// The socket's; `InvalidInput` if `buffer` has no free space.
    #[inline]
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        on!(self, stream => stream.poll_read(cx, buffer))
    }

    /// Reads without waiting: `None` if there is no input yet. No task is woken when there is.
    ///
    /// # Errors
    /// As for [`Transport::poll_read`].
    #[inline]
    pub fn try_read(&mut self, buffer: &mut Buffer) -> io::Result<Option<usize>> {
        on!(self, stream => stream.try_read(buffer))
    }

    /// Drops up to `most` received bytes and returns their number; 0 is the end. TCP only.
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn poll_discard(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        on!(self, stream => stream.poll_discard(cx, most))
    }

    /// Writes both buffers, `head` first, with one call, and consumes the bytes written. `more` announces that more
    /// data or a close follows at once.
    ///
    /// Bytes written have left the process: there is nothing to flush. A transport that transforms the bytes first (TLS
    /// records) is pending until all of the result was written. So a pending write has to be repeated with the same
    /// first bytes, to which more may have been appended, or the connection is dropped.
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

    /// Writes slices with one call and returns the number of bytes written.
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

    /// Whether [`Transport::poll_write_slices`] passes them to the kernel as they are, or encrypts them in place of a
    /// copy.
    pub fn takes_slices(&self) -> bool {
        on!(self, _stream => true, _tls => true, _records => false)
    }

    /// Writes without waiting: `None` if no byte is accepted now. No task is woken when one is.
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

    /// Ready when a write may accept bytes.
    #[inline]
    pub fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on!(self, stream => stream.poll_writable(cx))
    }

    /// Ready when the peer has closed or the connection failed. Incoming data does not wake the task.
    #[inline]
    pub fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        on!(self, stream => stream.poll_hangup(cx))
    }

    /// Moves received bytes into the pipe, at most `most`; 0 is the end.
    ///
    /// # Errors
    /// The socket's; `InvalidInput` if this transport or socket cannot be spliced.
    pub fn poll_splice_into(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, most: usize) -> Poll<io::Result<usize>> {
        on!(self, stream => pipe.poll_splice_in(cx, stream, most), _tls => tls::not_spliced(), _records => records::not_spliced())
    }

    /// Whether bytes can be spliced to the socket.
    pub fn can_splice(&self) -> bool {
        on!(self, _stream => true, _tls => false, _records => false)
    }

    /// Sends the bytes in the pipe. `more` as for [`Transport::poll_write`].
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_splice_from(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, more: bool) -> Poll<io::Result<usize>> {
        on!(self, stream => pipe.poll_splice_out(cx, stream, more), _tls => tls::not_spliced(), _records => records::not_spliced())
    }

    /// Writes bytes over a UNIX socket, with the descriptors attached to the first of them.
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

    /// Registers the connection with the driver now, instead of at the first wait.
    #[inline]
    pub fn register(&mut self) {
        on!(self, stream => stream.register());
    }

    /// Whether the connection is registered with the driver.
    #[inline]
    pub fn is_registered(&self) -> bool {
        on!(self, stream => stream.is_registered())
    }

    /// Shuts down this direction in order.
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

    /// Hides the close from the peer (`silent-drop`); with a number of `hops`, by a reset with that time to live.
    ///
    /// # Errors
    /// The socket's.
    pub fn forget(&mut self, hops: Option<u8>) -> io::Result<()> {
        self.be_silent();
        on!(self, stream => stream.forget(hops))
    }

    /// Makes the close send no alert.
    fn be_silent(&mut self) {
        if let Self::Tls(tls) = self {
            tls.be_silent();
        }
    }

    /// Sets the number of bytes that have to be received before readers are woken (`SO_RCVLOWAT`).
    ///
    /// # Errors
    /// The socket's.
    #[inline]
    pub fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        on!(self, stream => stream.set_receive_low_water(bytes))
    }

    /// Sends segments smaller than the peer would accept by that number of bytes (`TCP_MAXSEG`).
    ///
    /// # Errors
    /// The socket's.
    pub fn reduce_segments(&mut self, by: u32) -> io::Result<()> {
        on!(self, stream => stream.reduce_segments(by))
    }

    /// The length of a full segment to the peer in bytes. A system call.
    ///
    /// # Errors
    /// The socket's; one that is not TCP has no segments.
    pub fn segment_size(&self) -> io::Result<usize> {
        on!(self, stream => stream.segment_size())
    }

    /// The approximate number of bytes that can be written now without waiting. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn send_capacity(&self) -> io::Result<usize> {
        on!(self, stream => stream.send_capacity())
    }

    /// Returns the local address. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn local_address(&self) -> io::Result<Address> {
        on!(self, stream => stream.local_address())
    }

    /// Returns the peer's address. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn peer_address(&self) -> io::Result<Address> {
        on!(self, stream => stream.peer_address())
    }

    /// Returns a handle that queries the socket for as long as the transport exists.
    #[inline]
    pub fn socket(&self) -> SocketQuery {
        on!(self, stream => stream.query())
    }

    /// The socket's file descriptor.
    #[inline]
    pub fn number(&self) -> i32 {
        on!(self, stream => stream.number())
    }

    /// Whether there are no unread bytes, no end and no error. A system call if that is not known.
    #[inline]
    pub fn is_clean(&mut self) -> bool {
        on!(self, stream => stream.is_clean())
    }

    /// Whether there is something to read: data, the end or an error. A system call if that is not known.
    #[inline]
    pub fn has_input(&mut self) -> bool {
        on!(self, stream => stream.has_input())
    }

    /// Whether the peer has reset the connection, or it has failed otherwise. A system call unless that was reported.
    pub fn is_reset(&mut self) -> bool {
        on!(self, stream => stream.is_reset())
    }

    /// Whether the last read emptied the socket, and no readiness was reported since.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        on!(self, stream => stream.is_quiet())
    }

    /// Reads input received on an idle connection that concerns only the transport (a session ticket, a key update).
    /// Returns false if it was data, or the end.
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

    /// Whether another worker may take it over: it contains no bytes that were read and not consumed, or not written
    /// yet.
    pub fn is_movable(&self) -> bool {
        on!(self, _stream => true, tls => !tls.is_spoilt(), records => records.is_movable())
    }

    /// Ends the connection by a reset, and keeps its socket for the next short connection ([`rt::net::reset`]). Only
    /// for connections that were opened with plain options; `v6` is the address family that it was connected in.
    pub fn reset(self, v6: bool) {
        on!(
            self,
            stream => rt::net::reset(stream, v6),
            tls => rt::net::reset(tls.into_stream(), v6),
            records => rt::net::reset(records.stream, v6)
        );
    }
}

/// The meaning of an event on an idle connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The connection has ended.
    Close,
    /// The event can be ignored.
    Keep,
    /// Known after the transport has read: [`Transport::settle`].
    NeedsIo,
}

/// An idle connection, not owned by a task.
pub enum Parked {
    /// Plain bytes.
    Plain(ParkedStream),
    /// TLS.
    Tls(Box<tls::ParkedTls>),
    /// For tests.
    #[cfg(feature = "fakes")]
    Records(records::ParkedRecords),
}

impl Parked {
    /// The identifier with which events on it are reported.
    #[inline]
    pub fn id(&self) -> ParkedId {
        on!(self, parked => parked.id())
    }

    /// The file descriptor.
    pub fn number(&self) -> i32 {
        on!(self, parked => parked.number(), tls => tls.parked.number(), records => records.number())
    }

    /// Whether it uses TLS.
    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// The meaning of an event on it. Plain bytes of a peer are unsolicited: they end the connection.
    pub fn verdict(&self) -> Verdict {
        on!(self, _parked => Verdict::Close, _tls => Verdict::NeedsIo, _records => Verdict::NeedsIo)
    }

    /// Resumes it on the worker where it was parked, whatever was received. `None`: it was parked on another worker.
    pub(crate) fn resume(self) -> Option<Transport> {
        on!(
            self,
            parked => parked.resume().map(Transport::Plain),
            tls => tls.resume().map(secure),
            records => records.resume().map(shuffled)
        )
    }

    /// Takes it over on the current worker, whatever was received on it. `None`: it is lost.
    pub(crate) fn take_over(self) -> Option<Transport> {
        on!(
            self,
            parked => parked.take_over().map(Transport::Plain),
            tls => tls.take_over().map(secure),
            records => records.take_over().map(shuffled)
        )
    }

    /// Takes it over on the current worker. `None`: it is no longer open and silent.
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
