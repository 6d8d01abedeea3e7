//! What comes on an accepted connection before the first byte of its protocol: the address of a client that a balancer in
//! front tells, by NetScaler's header or by the PROXY protocol. Headers are read exactly, within a time. Must never guess
//! whether one comes: whoever accepts says so.
//!
//! Header and first bytes mostly come together: they are read at once into one buffer, of which the protocol gets what the
//! header leaves. Looking first (`MSG_PEEK`) would cost two system calls more for each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::Moment;
use base::buffer::Buffer;
use rt::net::OwnedSocket;
use wire::{client_ip, proxy_protocol};

use crate::transport::{self, Transport};

/// The headers that have to come. With both, NetScaler's is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    /// NetScaler's, with this magic number.
    pub netscaler: Option<u32>,
    /// The PROXY protocol's.
    pub proxy: bool,
}

impl Expected {
    /// Whether there is any.
    pub fn is_some(self) -> bool {
        self.proxy || self.netscaler.is_some()
    }
}

/// One of the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The PROXY protocol's.
    Proxy,
    /// NetScaler's.
    NetScaler,
}

/// Why a connection ends before anything was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The client closed without a byte.
    Empty(Kind),
    /// It closed within the header, or the rest of that did not come in time.
    Truncated(Kind),
    /// The connection failed.
    Aborted(Kind),
    /// Nothing of the header came in time.
    Expired(Kind),
    /// What came is no PROXY protocol header.
    Proxy(proxy_protocol::Malformed),
    /// What came is no NetScaler header.
    NetScaler(client_ip::Malformed),
}

/// What the headers have told. Whoever gave up may have been told something, too.
#[derive(Debug, Default)]
pub struct Told {
    /// Who the client is, and whom it called.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// All that the PROXY header says.
    pub proxy: Option<proxy_protocol::Header>,
    /// Whether a byte has come.
    pub received: bool,
}

/// Reads the headers that are expected, none longer than `most` bytes, until `deadline`. Returns what came behind them.
///
/// # Errors
/// The connection is to be closed.
pub async fn receive(
    transport: &mut Transport,
    expected: Expected,
    most: usize,
    deadline: Option<Moment>,
    told: &mut Told,
) -> Result<Buffer, Failure> {
    let mut reader = Reader { transport, input: Buffer::empty(), timer: rt::Timer::new(), told };
    reader.timer.arm(deadline);
    reader.headers(expected, most).await?;
    let input = reader.input;
    // Somebody who has not begun to speak holds no buffer.
    Ok(if input.is_empty() { Buffer::empty() } else { input })
}

/// A connection that is ready for its protocol.
pub struct Accepted {
    /// It.
    pub transport: Transport,
    /// What came behind the headers.
    pub input: Buffer,
}

/// What a connection begins with.
#[derive(Debug, Clone, Default)]
pub struct Entrance {
    /// The headers.
    pub expected: Expected,
    /// TLS behind them; `None`: bytes go as they are.
    pub tls: Option<Arc<tls::Server>>,
}

/// Takes an accepted connection over, for those who do not care whose it is: reads the headers that are expected, none
/// longer than a buffer, and shakes hands, within `patience`. `None`: it did not come to that.
pub async fn accept(socket: OwnedSocket, entrance: Entrance, patience: Option<Duration>) -> Option<Accepted> {
    let mut transport = match &entrance.tls {
        None => transport::accept(socket),
        Some(server) => transport::accept_tls(socket, server),
    };
    let deadline = patience.map(|patience| rt::now() + patience);
    let mut input = Buffer::empty();
    if entrance.expected.is_some() {
        let mut told = Told::default();
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
    told: &'a mut Told,
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
                    proxy_protocol::Decoded::Complete { header, consumed } => Ok(Some((header, consumed))),
                    proxy_protocol::Decoded::Partial => Ok(None),
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
            // Bytes may be left from the header before.
            if !self.input.is_empty()
                && let Some((header, consumed)) = decode(self.input.data())?
            {
                self.input.consume(consumed);
                return Ok(header);
            }
            self.read(kind).await?;
        }
    }

    /// Why a header did not come in time.
    fn late(&self, kind: Kind) -> Failure {
        if self.input.is_empty() { Failure::Expired(kind) } else { Failure::Truncated(kind) }
    }

    /// Reads some bytes. A buffer is held from the first one on only.
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
                        // It was not readable after all.
                        self.input = Buffer::empty();
                    }
                    self.timer.poll_expired(cx).map(|()| Err(self.late(kind)))
                }
            }
        })
        .await
    }
}
