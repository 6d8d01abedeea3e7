//! What a balancer in front puts before a client's first bytes: the PROXY protocol, NetScaler's client address. Read
//! before anything else, exactly, within a time; whoever sends something else is told of in the log and closed. Must
//! never guess whether a header comes: the `bind` line says.
//!
//! Header and first bytes mostly come together: they are read at once into one buffer, of which the request gets what the
//! header leaves. Looking first (`MSG_PEEK`) would cost two system calls more for each connection.

use std::task::Poll;

use base::buffer::Buffer;
use conn::transport::Transport;
use policy::log_format::{Endpoint, Origin, Record};
use policy::program::ExpectedHeader;
use policy::sample::ConnectionError;

use wire::{client_ip, proxy_protocol};

use crate::session::Session;
use crate::stream::evaluate::EvalContext;

/// Which header is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Proxy,
    NetScaler,
}

/// Why a connection ends before anything was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The client closed without a byte.
    Empty(Kind),
    /// It closed within the header.
    Truncated(Kind),
    /// The connection failed.
    Aborted(Kind),
    /// The header did not come in time.
    Expired(Kind),
    /// What came is no PROXY protocol header.
    Proxy(proxy_protocol::Malformed),
    /// What came is no NetScaler header.
    NetScaler(client_ip::Malformed),
}

impl Failure {
    /// The error of the connection.
    const fn error(self) -> ConnectionError {
        use {client_ip::Malformed as NetScaler, proxy_protocol::Malformed as Proxy};
        match self {
            Self::Empty(Kind::Proxy) => ConnectionError::PROXY_EMPTY,
            Self::Aborted(Kind::Proxy) => ConnectionError::PROXY_ABORTED,
            Self::Expired(Kind::Proxy) => ConnectionError::PROXY_TIMEOUT,
            Self::Truncated(Kind::Proxy) | Self::Proxy(Proxy::TooLong) => ConnectionError::PROXY_TRUNCATED,
            Self::Proxy(Proxy::NotAHeader) => ConnectionError::PROXY_MISSING,
            Self::Proxy(Proxy::Invalid | Proxy::Checksum) => ConnectionError::PROXY_INVALID,
            Self::Proxy(Proxy::Protocol) => ConnectionError::PROXY_PROTOCOL,
            Self::Empty(Kind::NetScaler) => ConnectionError::NETSCALER_EMPTY,
            Self::Aborted(Kind::NetScaler) => ConnectionError::NETSCALER_ABORTED,
            Self::Expired(Kind::NetScaler) => ConnectionError::NETSCALER_TIMEOUT,
            Self::Truncated(Kind::NetScaler) | Self::NetScaler(NetScaler::Length) => {
                ConnectionError::NETSCALER_TRUNCATED
            }
            Self::NetScaler(NetScaler::Magic) => ConnectionError::NETSCALER_MAGIC,
            Self::NetScaler(NetScaler::Protocol) => ConnectionError::NETSCALER_PROTOCOL,
        }
    }
}

/// Reads the headers that are expected, and gives the session the addresses that they tell. Returns what came behind them;
/// `None`: the connection is to be closed, and why has been logged.
pub async fn receive(session: &Session, stream: &mut Transport, expected: ExpectedHeader) -> Option<Buffer> {
    let mut handshake = Handshake { stream, input: Buffer::empty(), timer: rt::Timer::new(), received: false };
    let timeouts = &session.proxy().timeouts;
    let limit = timeouts.client_hs.or(timeouts.client);
    handshake.timer.arm(limit.map(|limit| session.accepted + limit));
    match handshake.headers(session, expected).await {
        Ok(()) => {
            session.complete_handshake(rt::now());
            let input = handshake.input;
            // Somebody who has not begun to speak holds no buffer.
            Some(if input.is_empty() { Buffer::empty() } else { input })
        }
        Err(failure) => {
            session.error.set(failure.error());
            if handshake.received || !session.proxy().options.dontlognull {
                log(session);
            }
            None
        }
    }
}

struct Handshake<'a> {
    stream: &'a mut Transport,
    input: Buffer,
    timer: rt::Timer,
    /// Whether a byte has come.
    received: bool,
}

impl Handshake<'_> {
    async fn headers(&mut self, session: &Session, expected: ExpectedHeader) -> Result<(), Failure> {
        let most = session.generation().program.global.bufsize;
        if let Some(magic) = expected.netscaler {
            let found = self
                .header(Kind::NetScaler, |input| {
                    let found = client_ip::decode(input, magic, most).map_err(Failure::NetScaler)?;
                    Ok(found.map(|header| (header, header.consumed)))
                })
                .await?;
            session.replace_addresses(found.source, found.destination);
        }
        if expected.proxy {
            let header = self
                .header(Kind::Proxy, |input| match proxy_protocol::decode(input, most).map_err(Failure::Proxy)? {
                    proxy_protocol::Decoded::Complete { header, consumed } => Ok(Some((header, consumed))),
                    proxy_protocol::Decoded::Partial => Ok(None),
                })
                .await?;
            if let Some((source, destination)) = header.inet() {
                session.replace_addresses(source, destination);
            }
            session.keep_proxy_header(header);
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

    /// Reads some bytes. A buffer is held from the first one on only.
    async fn read(&mut self, kind: Kind) -> Result<(), Failure> {
        std::future::poll_fn(|cx| {
            if self.input.capacity() == 0 {
                if self.stream.poll_readable(cx).is_pending() {
                    return self.timer.poll_expired(cx).map(|()| Err(Failure::Expired(kind)));
                }
                self.input = rt::buffer();
            }
            self.input.compact();
            match self.stream.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(0)) if self.received => Poll::Ready(Err(Failure::Truncated(kind))),
                Poll::Ready(Ok(0)) => Poll::Ready(Err(Failure::Empty(kind))),
                Poll::Ready(Ok(_)) => {
                    self.received = true;
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Err(_)) => Poll::Ready(Err(Failure::Aborted(kind))),
                Poll::Pending => {
                    if !self.received {
                        // It was not readable after all.
                        self.input = Buffer::empty();
                    }
                    self.timer.poll_expired(cx).map(|()| Err(Failure::Expired(kind)))
                }
            }
        })
        .await
    }
}

/// The line about a connection that failed before anything was served.
fn log(session: &Session) {
    if !session.worker.logger.is_wanted(session.frontend) {
        return;
    }
    let bind = session.bind();
    let client = session.client().map_or_else(|| Endpoint::Unix(bind.map_or(0, |bind| bind.id)), Endpoint::Inet);
    let live = &session.worker.process.live;
    let record = Record {
        client,
        destination: session.known_destination().map_or(Endpoint::Absent, Endpoint::Inet),
        frontend: &session.proxy().name,
        bind_name: bind.map_or("", |bind| &bind.name),
        backend: &session.proxy().name,
        server: "<NOSRV>",
        origin: Origin::SessionKilled,
        termination: *b"PR--",
        request_date: session.accept_date(),
        actconn: live.process.actconn(),
        feconn: live.proxies[session.frontend].feconn(),
        ..session.worker.logger.record(session.frontend, session.accept_date())
    };
    let (logger, facts) = (&session.worker.logger, session.worker.take_facts());
    EvalContext::log(session, &facts.borrow()).lend(|context| {
        logger.connection_error(session.frontend, &record, Some(context), session.error.get().message());
    });
    session.worker.keep_facts(facts);
}
