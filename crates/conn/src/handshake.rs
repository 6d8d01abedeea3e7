//! Headers received on an accepted connection before its protocol begins: the client's address as announced by a proxy
//! in front, in NetScaler's header or by the PROXY protocol. Reads headers exactly, within a deadline. Must never guess
//! whether a header follows: the caller specifies that.
//!
//! Headers and the first bytes mostly arrive together: they are read at once into one buffer, and the protocol gets the
//! bytes after the headers. Peeking first (`MSG_PEEK`) would cost two more system calls for each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::Moment;
use base::buffer::Buffer;
use rt::net::OwnedSocket;
use wire::{client_ip, proxy_protocol};

use crate::transport::{self, Transport};

/// The headers required. If there are both, NetScaler's comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    /// NetScaler's CIP header, with this magic number.
    pub netscaler: Option<u32>,
    /// The PROXY protocol header.
    pub proxy: bool,
}

impl Expected {
    /// Whether any header is required.
    pub fn is_some(self) -> bool {
        self.proxy || self.netscaler.is_some()
    }
}

/// The kind of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The PROXY protocol header.
    Proxy,
    /// NetScaler's CIP header.
    NetScaler,
}

/// Why a connection is closed before it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The client closed without sending a byte.
    Empty(Kind),
    /// The client closed within the header, or the rest of the header did not arrive in time.
    Truncated(Kind),
    /// The connection failed.
    Aborted(Kind),
    /// No byte of the header arrived in time.
    Expired(Kind),
    /// The bytes received are not a PROXY protocol header.
    Proxy(proxy_protocol::Malformed),
    /// The bytes received are not a NetScaler header.
    NetScaler(client_ip::Malformed),
}

/// Contents of the headers read. May be set in part if a later header failed.
#[derive(Debug, Default)]
pub struct ProxyPreamble {
    /// The client's address and the destination address.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// The whole PROXY header.
    pub proxy: Option<proxy_protocol::Header>,
    /// Whether a byte was received.
    pub received: bool,
}

/// Reads the required headers, none longer than `most` bytes, until `deadline`. Returns the bytes after them.
///
/// # Errors
/// The connection is to be closed.
pub async fn receive(
    transport: &mut Transport,
    expected: Expected,
    most: usize,
    deadline: Option<Moment>,
    told: &mut ProxyPreamble,
) -> Result<Buffer, Failure> {
    let mut reader = Reader { transport, input: Buffer::empty(), timer: rt::Timer::new(), told };
    reader.timer.arm(deadline);
    reader.headers(expected, most).await?;
    let input = reader.input;
    // A client that has not sent anything yet holds no buffer.
    Ok(if input.is_empty() { Buffer::empty() } else { input })
}

/// A connection that is ready for its protocol.
pub struct Accepted {
    /// The connection.
    pub transport: Transport,
    /// The bytes received after the headers.
    pub input: Buffer,
}

/// The layers before a connection's protocol.
#[derive(Debug, Clone, Default)]
pub struct LowerLayers {
    /// The headers required.
    pub expected: Expected,
    /// TLS after the headers; `None`: plain bytes.
    pub tls: Option<Arc<tls::Server>>,
}

/// Takes an accepted connection over, for callers that do not need the client's address: reads the required headers,
/// none longer than a buffer, and completes the TLS handshake, within `patience`. `None`: this failed or timed out.
pub async fn accept(socket: OwnedSocket, entrance: LowerLayers, patience: Option<Duration>) -> Option<Accepted> {
    let mut transport = match &entrance.tls {
        None => transport::accept(socket),
        Some(server) => transport::accept_tls(socket, server),
    };
    let deadline = patience.map(|patience| rt::now() + patience);
    let mut input = Buffer::empty();
    if entrance.expected.is_some() {
        let mut told = ProxyPreamble::default();
        input = receive(&mut transport, entrance.expected, rt::buffer_size(), deadline, &mut told).await.ok()?;
    }
    if transport.is_tls() {
        transport.begin_tls(input.data());
        input = Buffer::empty();
        let mut timer = rt::Timer::new();
        timer.arm(deadline);
        let shaken = std::future::poll_fn(|cx| match transport.poll_whole_handshake(cx) {
            Poll::Ready(shaken) => Poll::Ready(shaken.is_ok()),
            Poll::Pending => timer.poll_expired(cx).map(|()| false),
        });
        if !shaken.await {
            return None;
        }
    }
    Some(Accepted { transport, input })
}

struct Reader<'a> {
    transport: &'a mut Transport,
    input: Buffer,
    timer: rt::Timer,
    told: &'a mut ProxyPreamble,
}

impl Reader<'_> {
    async fn headers(&mut self, expected: Expected, most: usize) -> Result<(), Failure> {
        if let Some(magic) = expected.netscaler {
            let found = self
                .header(Kind::NetScaler, |input| {
                    let found = client_ip::decode(input, magic, most).map_err(Failure::NetScaler)?;
                    Ok(found.map(|header| (header, header.consumed)))
                })
                .await?;
            self.told.addresses = Some((found.source, found.destination));
        }
        if expected.proxy {
            let header = self
                .header(Kind::Proxy, |input| match proxy_protocol::decode(input, most).map_err(Failure::Proxy)? {
                    proxy_protocol::ParsedHeader::Complete { header, consumed } => Ok(Some((header, consumed))),
                    proxy_protocol::ParsedHeader::Partial => Ok(None),
                })
                .await?;
            self.told.addresses = header.inet().or(self.told.addresses);
            self.told.proxy = Some(header);
        }
        Ok(())
    }

    /// Reads until `decode` finds a whole header, and takes its bytes.
    async fn header<T>(
        &mut self,
        kind: Kind,
        decode: impl Fn(&[u8]) -> Result<Option<(T, usize)>, Failure>,
    ) -> Result<T, Failure> {
        loop {
            // Bytes may be left after the previous header.
            if !self.input.is_empty()
                && let Some((header, consumed)) = decode(self.input.data())?
            {
                self.input.consume(consumed);
                return Ok(header);
            }
            self.read(kind).await?;
        }
    }

    /// The failure of a header that did not arrive in time.
    fn late(&self, kind: Kind) -> Failure {
        if self.input.is_empty() { Failure::Expired(kind) } else { Failure::Truncated(kind) }
    }

    /// Reads some bytes. No buffer is held before the first byte.
    async fn read(&mut self, kind: Kind) -> Result<(), Failure> {
        std::future::poll_fn(|cx| {
            if self.input.capacity() == 0 {
                if self.transport.poll_readable(cx).is_pending() {
                    return self.timer.poll_expired(cx).map(|()| Err(self.late(kind)));
                }
                self.input = rt::buffer();
            }
            self.input.compact();
            match self.transport.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(0)) if self.told.received => Poll::Ready(Err(Failure::Truncated(kind))),
                Poll::Ready(Ok(0)) => Poll::Ready(Err(Failure::Empty(kind))),
                Poll::Ready(Ok(_)) => {
                    self.told.received = true;
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Err(_)) => Poll::Ready(Err(Failure::Aborted(kind))),
                Poll::Pending => {
                    if !self.told.received {
                        // It was not readable.
                        self.input = Buffer::empty();
                    }
                    self.timer.poll_expired(cx).map(|()| Err(self.late(kind)))
                }
            }
        })
        .await
    }
}
