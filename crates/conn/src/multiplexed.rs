//! Multiplexed connections, to clients and to servers. Owns the choice between their protocols; must never serve a
//! stream.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use rt::net::SocketQuery;
use tls::HandshakeInfo;

use crate::carrier::Carrier;
use crate::downstream::Downstream;
use crate::fcgi;
use crate::h2;
use crate::h3;
use crate::qmux::{self, Wire};
use crate::quic::Link;
use crate::transport::Transport;

pub use crate::h2::Ping;

/// Protocols in which a connection of HTTP carries several requests at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2.
    H2,
    /// HTTP/3, over QUIC.
    H3,
    /// HTTP/3, over QMux.
    Qmux,
}

/// How the first bytes of a client's connection compare with those of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// They begin a connection of the protocol.
    Whole,
    /// They may: more bytes are needed.
    Part,
    /// They do not.
    Other,
}

impl Protocol {
    /// Returns the protocol that a configuration or ALPN calls by that name.
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"h2" => Some(Self::H2),
            // Over a transport of bytes.
            b"h3" => Some(Self::Qmux),
            _ => None,
        }
    }

    /// Returns the major version of HTTP.
    pub fn major(self) -> u32 {
        match self {
            Self::H2 => 2,
            Self::H3 | Self::Qmux => 3,
        }
    }

    /// Compares the first bytes of a client's connection with those of the protocol.
    pub fn compare(self, bytes: &[u8]) -> Beginning {
        let preface = match self {
            Self::H2 => wire::h2::PREFACE,
            // It is chosen before its first bytes.
            Self::H3 => return Beginning::Other,
            // Its own parameters are sent without waiting for those of the client, which it checks itself.
            Self::Qmux => return Beginning::Whole,
        };
        match preface.starts_with(&bytes[..bytes.len().min(preface.len())]) {
            true if bytes.len() >= preface.len() => Beginning::Whole,
            true => Beginning::Part,
            false => Beginning::Other,
        }
    }

    /// Reads until it is known whether a client's connection begins in the protocol. [`Beginning::Part`]: the connection has
    /// ended or failed before that. What was read stays in `input`.
    pub fn poll_beginning(
        self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        input: &mut Buffer,
    ) -> Poll<Beginning> {
        loop {
            match self.compare(input.data()) {
                Beginning::Part => {}
                known => return Poll::Ready(known),
            }
            crate::flow::expand(input);
            match transport.poll_read(cx, input) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Beginning::Part),
                Poll::Pending => {
                    // While the rest is waited for, the buffer has the size of the bytes received.
                    crate::flow::shrink(input);
                    return Poll::Pending;
                }
            }
        }
    }
}

/// Settings and limits of a client's connection that carries several streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientTerms {
    /// In HTTP/2.
    H2(h2::Terms),
    /// In HTTP/3.
    H3(h3::Terms),
    /// In HTTP/3 over QMux.
    Qmux(h3::Terms, qmux::Settings),
}

/// Settings and limits of a server's connection over a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTerms {
    /// In HTTP/2.
    H2(h2::Terms),
    /// In HTTP/3 over QMux.
    Qmux(h3::Terms, qmux::Settings),
}

/// Events of a connection since they were last taken, as its protocol counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpCounts {
    /// In HTTP/2.
    H2(h2::Counts),
    /// In HTTP/3.
    H3(h3::Counts),
}

/// Faults of a peer, whatever its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Glitches.
    pub glitches: u32,
    /// Requests that became no stream because of an error of theirs.
    pub malformed: u32,
    /// Heads whose errors have ended the connection.
    pub fatal: u32,
}

impl HttpCounts {
    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::H2(counts) => *counts == h2::Counts::default(),
            Self::H3(counts) => *counts == h3::Counts::default(),
        }
    }

    /// Returns the peer's faults.
    pub fn faults(&self) -> Faults {
        match self {
            Self::H2(counts) => Faults { glitches: counts.glitches, malformed: counts.malformed, fatal: counts.fatal },
            Self::H3(counts) => Faults { glitches: counts.glitches, malformed: counts.malformed, fatal: counts.fatal },
        }
    }
}

/// A client's connection whose protocol carries several streams.
///
/// Its task polls it and starts a task for each stream. It is polled until it has ended; then the streams fail, and it is
/// kept until they were released. The client with the bytes of the connection is an argument, always the same: the connection
/// does not refer to it, so that both are small. QUIC connections have none.
pub enum Connection {
    /// HTTP/2.
    H2(h2::Connection),
    /// HTTP/3.
    H3(Box<h3::Connection>),
}

/// Calls the protocol.
macro_rules! on {
    ($connection:expr, $protocol:ident => $call:expr) => {
        match $connection {
            Self::H2($protocol) => $call,
            Self::H3($protocol) => $call,
        }
    };
}

/// Returns the transport of a client's connection.
fn wire(client: &mut Downstream) -> Option<Wire<'_>> {
    client.bytes().map(|(transport, input)| Wire { transport, input })
}

impl Connection {
    /// Serves a connection that begins in the protocol of `terms` ([`Beginning::Whole`]). `None`: that protocol is not spoken on
    /// a connection like this.
    pub fn of(client: &mut Downstream, terms: ClientTerms) -> Option<Self> {
        match terms {
            ClientTerms::H2(terms) => client.bytes().map(|(_, input)| Self::H2(h2::Connection::new(input, terms))),
            ClientTerms::Qmux(terms, settings) => {
                client.bytes()?;
                Some(Self::H3(Box::new(h3::Connection::over_bytes(settings, terms))))
            }
            ClientTerms::H3(_) => None,
        }
    }

    /// Serves a connection that we have opened to a server which asks (reverse HTTP). `None`: as for [`Connection::of`].
    pub fn reversed(client: &mut Downstream, terms: ClientTerms) -> Option<Self> {
        match terms {
            ClientTerms::H2(terms) => client.bytes().map(|_| Self::H2(h2::Connection::reversed(terms))),
            ClientTerms::H3(_) | ClientTerms::Qmux(..) => None,
        }
    }

    /// Serves a QUIC connection. `None`: the protocol of `terms` is not spoken over QUIC.
    pub fn over_quic(link: Link, terms: ClientTerms) -> Option<Self> {
        match terms {
            ClientTerms::H2(_) | ClientTerms::Qmux(..) => None,
            ClientTerms::H3(terms) => Some(Self::H3(Box::new(h3::Connection::new(link, terms)))),
        }
    }

    /// Returns its protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::H2(_) => Protocol::H2,
            Self::H3(_) => Protocol::H3,
        }
    }

    /// Moves frames in both directions. Ready with a stream that the client has opened, or with `None`: the connection
    /// has ended.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>, client: Option<&mut Downstream>) -> Poll<Option<Downstream>> {
        match self {
            Self::H2(protocol) => {
                let Some((transport, input)) = client.and_then(Downstream::bytes) else { return Poll::Ready(None) };
                protocol.poll(cx, transport, input).map(|stream| stream.map(Downstream::H2))
            }
            Self::H3(protocol) => {
                let mut wire = client.and_then(wire);
                protocol.poll(cx, wire.as_mut()).map(|stream| stream.map(Downstream::H3))
            }
        }
    }

    /// Whether a stream is being served.
    pub fn has_streams(&self) -> bool {
        on!(self, protocol => protocol.has_streams())
    }

    /// The number of streams that the client has opened so far.
    pub fn opened(&self) -> u32 {
        on!(self, protocol => protocol.opened())
    }

    /// Announces to the client that it is to begin no more streams. The connection ends with the last stream once the
    /// client has acknowledged that; with `lasts` the client closes it (`option idle-close-on-response`).
    pub fn leave(&mut self, lasts: bool) {
        on!(self, protocol => protocol.leave(lasts));
    }

    /// Updates the time. Returns when this has to be called again at the latest.
    pub fn advance(&mut self, now: Moment) -> Option<Moment> {
        match self {
            Self::H2(protocol) => protocol.advance(now),
            Self::H3(protocol) => {
                protocol.advance(now);
                None
            }
        }
    }

    /// Returns the counts of a connection of QMux that has ended. `None`: it is another one.
    pub fn end_counts(&self) -> Option<qmux::EndCounts> {
        match self {
            Self::H3(protocol) => protocol.end_counts(),
            Self::H2(_) => None,
        }
    }

    /// Returns what has happened since this was called before.
    pub fn take_counts(&self) -> HttpCounts {
        match self {
            Self::H2(protocol) => HttpCounts::H2(protocol.take_counts()),
            Self::H3(protocol) => HttpCounts::H3(protocol.take_counts()),
        }
    }

    /// The number of streams being served, and the maximum.
    pub fn streams(&self) -> (usize, usize) {
        on!(self, protocol => protocol.streams())
    }

    /// Sends a ping to the client of an idle connection every `interval`, if its protocol has one.
    pub fn ping(&mut self, now: Moment, interval: Duration) -> Ping {
        on!(self, protocol => protocol.ping(now, interval))
    }

    /// The number of pings that the client has acknowledged.
    pub fn pongs(&self) -> u32 {
        on!(self, protocol => protocol.pongs())
    }

    /// Ends all streams, because the connection has ended.
    pub fn close(&mut self, client: Option<&mut Downstream>) {
        match self {
            Self::H2(protocol) => {
                if let Some((transport, _)) = client.and_then(Downstream::bytes) {
                    protocol.close(transport);
                }
            }
            Self::H3(protocol) => protocol.close(client.and_then(wire).as_mut()),
        }
    }

    /// Whether the client has closed its direction, or nothing can or may be sent to it.
    pub fn is_gone(&self) -> bool {
        on!(self, protocol => protocol.is_gone())
    }

    /// Whether it has ended because the client violated the protocol, or exhausted its budget.
    pub fn has_faulted(&self) -> bool {
        on!(self, protocol => protocol.has_faulted())
    }

    /// Sends remaining bytes after the connection was closed. Ready with the number of bytes sent; 0: nothing is left.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>, client: Option<&mut Downstream>) -> Poll<usize> {
        match self {
            Self::H2(protocol) => {
                let Some((transport, _)) = client.and_then(Downstream::bytes) else { return Poll::Ready(0) };
                protocol.poll_flush(cx, transport)
            }
            Self::H3(protocol) => protocol.poll_flush(cx, client.and_then(wire).as_mut()),
        }
    }

    /// Ready when the last stream was released.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on!(self, protocol => protocol.poll_settled(cx))
    }
}

/// A server's connection, as the task has it that moves what its requests have to send and to receive.
pub enum ServerConnection {
    /// HTTP/2.
    H2(Box<h2::ServerConnection>),
    /// HTTP/3.
    H3(Box<h3::ServerConnection>),
    /// FastCGI.
    Fcgi(Box<fcgi::ServerConnection>),
}

/// Handle of the same connection for tasks that begin requests on it.
#[derive(Clone)]
pub enum Requests {
    /// HTTP/2.
    H2(h2::Requests),
    /// HTTP/3.
    H3(h3::Requests),
    /// FastCGI.
    Fcgi(fcgi::Requests),
}

/// Calls the protocol of a server's connection.
macro_rules! on_server {
    ($connection:expr, $protocol:ident => $call:expr) => {
        match $connection {
            Self::H2($protocol) => $call,
            Self::H3($protocol) => $call,
            Self::Fcgi($protocol) => $call,
        }
    };
}

impl ServerConnection {
    /// Starts the protocol of `terms` on an established transport. Requests begin once it is ready
    /// ([`ServerConnection::poll_ready`]).
    pub fn new(transport: Transport, terms: ServerTerms) -> (Self, Requests) {
        match terms {
            ServerTerms::H2(terms) => {
                let (connection, requests) = h2::ServerConnection::new(transport, terms);
                (Self::H2(Box::new(connection)), Requests::H2(requests))
            }
            ServerTerms::Qmux(terms, settings) => {
                let (connection, requests) = h3::ServerConnection::over_bytes(transport, settings, terms);
                (Self::H3(Box::new(connection)), Requests::H3(requests))
            }
        }
    }

    /// Ready with whether requests can begin; false: the connection has ended.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>, requests: &Requests) -> Poll<bool> {
        let Requests::H3(requests) = requests else { return Poll::Ready(true) };
        if self.poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        if requests.is_ready() { Poll::Ready(true) } else { Poll::Pending }
    }

    /// Starts HTTP/3 on a QUIC connection. `tls` is the result of its handshake.
    pub fn over_quic(link: Link, terms: h3::Terms, tls: Option<Arc<HandshakeInfo>>) -> (Self, Requests) {
        let (connection, requests) = h3::ServerConnection::new(link, terms, tls);
        (Self::H3(Box::new(connection)), Requests::H3(requests))
    }

    /// Starts HTTP/3 on a QUIC connection whose handshake is in progress, and has to be complete at the `deadline`.
    pub fn over_early_quic(link: Link, terms: h3::Terms, deadline: Option<Moment>) -> (Self, Requests) {
        let (connection, requests) = h3::ServerConnection::new_early(link, terms, deadline);
        (Self::H3(Box::new(connection)), Requests::H3(requests))
    }

    /// Starts FastCGI on an established transport.
    pub fn of_fcgi(transport: Transport, terms: fcgi::Terms, now: Moment) -> (Self, Requests) {
        let (connection, requests) = fcgi::ServerConnection::new(transport, terms, now);
        (Self::Fcgi(Box::new(connection)), Requests::Fcgi(requests))
    }

    /// Takes over a client's connection whose input begins with the preface of such a protocol, as one to a server
    /// (reverse HTTP). `None`: there is no such preface.
    pub fn reversed(client: Downstream, terms: h2::Terms) -> Option<(Self, Requests)> {
        let Downstream::H1(server) = client else { return None };
        if !server.received().starts_with(wire::h2::PREFACE) {
            return None;
        }
        let (connection, requests) = h2::ServerConnection::reversed(server.transport, server.input, terms);
        Some((Self::H2(Box::new(connection)), Requests::H2(requests)))
    }

    /// Moves frames in both directions. Ready when the connection has ended, also because it is unused.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on_server!(self, protocol => protocol.poll(cx))
    }

    /// Sends a ping to the server of an idle connection every `interval`. `None`: its protocol has none.
    pub fn ping(&mut self, now: Moment, interval: Duration) -> Option<Ping> {
        match self {
            Self::H2(protocol) => Some(protocol.ping(now, interval)),
            Self::H3(_) | Self::Fcgi(_) => None,
        }
    }

    /// Updates the time.
    pub fn advance(&mut self, now: Moment) {
        on_server!(self, protocol => protocol.advance(now));
    }

    /// When [`Self::advance`] has to be called at the latest, if requests wait for another one.
    pub fn deadline(&self) -> Option<Moment> {
        match self {
            Self::H2(_) | Self::H3(_) => None,
            Self::Fcgi(protocol) => protocol.deadline(),
        }
    }

    /// Whether another worker may take it over: no request is in progress, and no part of a frame was received.
    pub fn is_movable(&self) -> bool {
        match self {
            Self::H2(protocol) => protocol.is_movable(),
            Self::H3(_) | Self::Fcgi(_) => false,
        }
    }

    /// Makes it plain data, for another worker. `None`: it is lost.
    pub fn pack(self) -> Option<Handover> {
        match self {
            Self::H2(protocol) => Some(Handover(protocol.pack())),
            Self::H3(_) | Self::Fcgi(_) => None,
        }
    }

    /// Returns the counts of a connection of QMux that has ended. `None`: it is another one.
    pub fn end_counts(&self) -> Option<qmux::EndCounts> {
        match self {
            Self::H3(protocol) => protocol.end_counts(),
            Self::H2(_) | Self::Fcgi(_) => None,
        }
    }

    /// Returns the events since the last call. `None`: its protocol counts none.
    pub fn take_counts(&self) -> Option<HttpCounts> {
        match self {
            Self::H2(protocol) => Some(HttpCounts::H2(protocol.take_counts())),
            Self::H3(protocol) => Some(HttpCounts::H3(protocol.take_counts())),
            Self::Fcgi(_) => None,
        }
    }
}

/// A server's connection on its way to another worker.
pub struct Handover(h2::MovedConnection);

impl Handover {
    /// Resumes the connection on the current worker. `None`: it is lost.
    pub fn unpack(self) -> Option<(ServerConnection, Requests)> {
        let (connection, requests) = self.0.unpack()?;
        Some((ServerConnection::H2(Box::new(connection)), Requests::H2(requests)))
    }
}

impl Requests {
    /// Returns the protocol of the connection. `None`: it is not HTTP.
    pub fn protocol(&self) -> Option<Protocol> {
        match self {
            Self::H2(_) => Some(Protocol::H2),
            Self::H3(_) => Some(Protocol::H3),
            Self::Fcgi(_) => None,
        }
    }

    /// Wakes the connection's task.
    pub fn wake(&self) {
        match self {
            Self::H2(requests) => requests.wake(),
            Self::H3(requests) => requests.wake(),
            Self::Fcgi(_) => {}
        }
    }

    /// Begins a request; `None`: the maximum is in progress, or the connection is about to end.
    pub fn begin(&self) -> Option<Carrier> {
        match self {
            Self::H2(requests) => requests.begin().map(Carrier::H2),
            Self::H3(requests) => requests.begin().map(Carrier::H3),
            Self::Fcgi(requests) => requests.begin().map(|request| Carrier::FcgiShare(Box::new(request))),
        }
    }

    /// Whether no more requests can begin on it.
    pub fn is_closing(&self) -> bool {
        on_server!(self, protocol => protocol.is_closing())
    }

    /// Whether the server has sent its parameters (SETTINGS).
    pub fn is_settled(&self) -> bool {
        match self {
            Self::H2(requests) => requests.is_settled(),
            Self::H3(requests) => requests.is_settled(),
            Self::Fcgi(_) => true,
        }
    }

    /// The number of requests in progress.
    pub fn open(&self) -> usize {
        on_server!(self, protocol => protocol.open())
    }

    /// Lets no more requests begin; the connection ends with the last one.
    pub fn close(&self) {
        on_server!(self, protocol => protocol.close());
    }

    /// The number of answers received whole.
    pub fn answers(&self) -> u32 {
        on_server!(self, protocol => protocol.answers())
    }

    /// Whether the handshake is not complete: a request that begins may be sent as early data.
    pub fn is_early(&self) -> bool {
        on_server!(self, protocol => protocol.is_early())
    }

    /// Queries about the socket of the connection.
    pub fn socket(&self) -> SocketQuery {
        on_server!(self, protocol => protocol.socket())
    }

    /// The result of the handshake, once it is complete.
    pub fn handshake_info(&self) -> Option<&Arc<HandshakeInfo>> {
        on_server!(self, protocol => protocol.handshake_info())
    }

    /// The number of requests that may be in progress at a time.
    pub fn limit(&self) -> usize {
        on_server!(self, protocol => protocol.limit())
    }

    /// Whether both are handles of the same connection.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::H2(own), Self::H2(other)) => own.is(other),
            (Self::H3(own), Self::H3(other)) => own.is(other),
            (Self::Fcgi(own), Self::Fcgi(other)) => own.is(other),
            _ => false,
        }
    }
}

impl Carrier {
    /// The handle of the multiplexed connection of HTTP that carries the request.
    pub fn requests(&self) -> Option<Requests> {
        match self {
            Self::H2(request) => Some(Requests::H2(request.requests().clone())),
            Self::H3(request) => Some(Requests::H3(request.requests().clone())),
            Self::Own(_) | Self::Fcgi(_) | Self::FcgiShare(_) => None,
        }
    }
}
