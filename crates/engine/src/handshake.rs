//! What comes before a client's first bytes: the headers of a balancer in front (`accept-proxy`, `accept-netscaler-cip`),
//! then TLS. What is found becomes the session's; a connection that fails there is told of in the log and closed. Must
//! never read a byte itself.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use config::spec::Mode;
use conn::handshake::{self, Entrance, Expected, Failure, Kind, Told};
use conn::transport::{Insecure, Transport, open_tls_connections};
use expression::record::{Endpoint, Origin, Record};
use expression::sample::ConnectionError;
use live::trace::events;
use policy::program::{Bind, ExpectedHeader};

use tls::failure::Reason;
use tls::openssl;
use wire::{client_ip, proxy_protocol};

use crate::session::Session;
use crate::stream::evaluate::EvalContext;
use crate::stream::metrics::{self, Handshake};
use crate::stream::tracing;

/// What a `bind` line says about headers, as the reader of them takes it.
fn expected(header: ExpectedHeader) -> Expected {
    Expected { netscaler: header.netscaler, proxy: header.proxy }
}

/// What connections to an address begin with, for those who serve no clients there.
pub fn entrance(bind: &Bind) -> Entrance {
    Entrance { expected: expected(bind.listening.header), tls: bind.tls.clone() }
}

/// The error of a connection whose headers failed.
const fn error(failure: Failure) -> ConnectionError {
    use {client_ip::Malformed as NetScaler, proxy_protocol::Malformed as Proxy};
    match failure {
        Failure::Empty(Kind::Proxy) => ConnectionError::PROXY_EMPTY,
        Failure::Aborted(Kind::Proxy) => ConnectionError::PROXY_ABORTED,
        Failure::Expired(Kind::Proxy) => ConnectionError::PROXY_TIMEOUT,
        Failure::Truncated(Kind::Proxy) | Failure::Proxy(Proxy::TooLong) => ConnectionError::PROXY_TRUNCATED,
        Failure::Proxy(Proxy::NotAHeader) => ConnectionError::PROXY_MISSING,
        Failure::Proxy(Proxy::Invalid | Proxy::Checksum) => ConnectionError::PROXY_INVALID,
        Failure::Proxy(Proxy::Protocol) => ConnectionError::PROXY_PROTOCOL,
        Failure::Empty(Kind::NetScaler) => ConnectionError::NETSCALER_EMPTY,
        Failure::Aborted(Kind::NetScaler) => ConnectionError::NETSCALER_ABORTED,
        Failure::Expired(Kind::NetScaler) => ConnectionError::NETSCALER_TIMEOUT,
        Failure::Truncated(Kind::NetScaler) | Failure::NetScaler(NetScaler::Length) => {
            ConnectionError::NETSCALER_TRUNCATED
        }
        Failure::NetScaler(NetScaler::Magic) => ConnectionError::NETSCALER_MAGIC,
        Failure::NetScaler(NetScaler::Protocol) => ConnectionError::NETSCALER_PROTOCOL,
    }
}

/// Reads the headers that are expected, and gives the session what they tell. Returns what came behind them; `None`: the
/// connection is to be closed, and why has been logged.
pub async fn receive(session: &Session, stream: &mut Transport, header: ExpectedHeader) -> Option<Buffer> {
    let timeouts = &session.proxy().timeouts;
    let limit = timeouts.client_hs.or(timeouts.client).map(|limit| session.accepted + limit);
    let most = session.generation().program.global.bufsize;
    let mut told = Told::default();
    let input = handshake::receive(stream, expected(header), most, limit, &mut told).await;
    if let Some((source, destination)) = told.addresses {
        session.replace_addresses(source, destination);
    }
    match input {
        Ok(input) => {
            if let Some(header) = told.proxy {
                session.keep_proxy_header(header);
            }
            session.complete_handshake(rt::now());
            Some(input)
        }
        Err(failure) => {
            session.error.set(error(failure));
            if told.received || !session.proxy().options.dontlognull {
                log(session);
            }
            None
        }
    }
}

/// Shakes hands with a client whose address speaks TLS; `early` is what has come of that. The session is given what was
/// found. False: the connection is to be closed, and why has been logged.
pub async fn secure(session: &Session, stream: &mut Transport, early: Buffer) -> bool {
    tracing::session(session, &events::SSLC_NEW, "new SSL connection");
    if are_too_many(session.generation().program.global.max_tls_connections) {
        fail(session, ConnectionError::TLS_TOO_MANY, true);
        return false;
    }
    stream.begin_tls(early.data());
    drop(early);
    let timeouts = &session.proxy().timeouts;
    let limit = timeouts.client_hs.or(timeouts.client).map(|limit| session.accepted + limit);
    let mut timer = rt::Timer::new();
    timer.arm(limit);
    // Early data makes sense to requests, which can tell others that they have come so.
    let is_http = session.proxy().mode == Mode::Http;
    let shaking = std::future::poll_fn(|cx| match poll(stream, cx, is_http) {
        Poll::Ready(shaken) => Poll::Ready(shaken.map_err(|insecure| tls_error(&insecure))),
        Poll::Pending => timer.poll_expired(cx).map(|()| Err((ConnectionError::TLS_TIMEOUT, true))),
    });
    // A storm of handshakes does not keep those waiting who have shaken hands.
    match rt::in_class(rt::Class::Heavy, shaking).await {
        Ok(()) => {
            tracing::session(session, &events::SSLC_HANDSHAKE, "SSL handshake done");
            let info = stream.handshake_info();
            metrics::client_handshake(session, Handshake::Made { resumed: info.is_some_and(|info| info.resumed) });
            if let Some(info) = info {
                session.keep_tls(Arc::clone(info));
            }
            session.complete_handshake(rt::now());
            true
        }
        Err((error, is_told)) => {
            // What was known by then is logged.
            if let Some(info) = stream.handshake_info() {
                session.keep_tls(Arc::clone(info));
            }
            fail(session, error, is_told);
            false
        }
    }
}

/// Notes why there is no secure connection, and logs it unless it is nothing and that is not logged.
fn fail(session: &Session, error: ConnectionError, is_told: bool) {
    metrics::client_handshake(session, Handshake::Failed);
    tracing::session(session, &events::SSLC_ERR, "SSL handshake failed");
    session.error.set(error);
    if is_told || !session.proxy().options.dontlognull {
        log(session);
    }
}

/// Whether there are more connections by TLS than `maxsslconn` permits (0: any number), this one counted: of two that begin at a time
/// on two threads, the later one sees both.
pub fn are_too_many(most: u32) -> bool {
    most > 0 && open_tls_connections() > u64::from(most)
}

/// Whether one more connection to a server by TLS is more than `maxsslconn` permits; 0: any number.
pub fn is_one_too_many(most: u32) -> bool {
    most > 0 && open_tls_connections() >= u64::from(most)
}

fn poll(stream: &mut Transport, cx: &mut Context<'_>, may_be_early: bool) -> Poll<Result<(), Insecure>> {
    if may_be_early { stream.poll_handshake(cx) } else { stream.poll_whole_handshake(cx) }
}

/// The error of a connection that did not become secure, and whether the log tells of it in any case.
pub fn tls_error(insecure: &Insecure) -> (ConnectionError, bool) {
    match insecure {
        Insecure::Closed { received } => (ConnectionError::TLS_EMPTY, *received),
        Insecure::Connection(_) => (ConnectionError::TLS_ABORTED, true),
        Insecure::Handshake(failure) => (
            match failure.reason() {
                Reason::UnknownAuthority => ConnectionError::TLS_UNKNOWN_CA,
                Reason::Untrusted => ConnectionError::TLS_UNTRUSTED,
                Reason::WrongName => ConnectionError::TLS_WRONG_NAME,
                Reason::Other => ConnectionError::TLS_HANDSHAKE,
            },
            true,
        ),
    }
}

/// Why a connection failed; that a handshake did, with OpenSSL's words in parentheses.
fn reason(session: &Session) -> Cow<'static, str> {
    let error = session.error.get();
    match session.tls().and_then(|info| info.failure.as_ref()) {
        Some(failure) if error == ConnectionError::TLS_HANDSHAKE => {
            format!("{} ({})", error.message(), openssl::sentence(failure)).into()
        }
        _ => error.message().into(),
    }
}

/// The line about a connection that failed before anything was served.
fn log(session: &Session) {
    if !session.log().is_wanted() {
        return;
    }
    let bind = session.bind();
    let client = session.client().map_or_else(|| Endpoint::Unix(bind.map_or(0, |bind| bind.id)), Endpoint::Inet);
    let live = &session.worker.process.live;
    let record = Record {
        client,
        destination: session.known_destination().map_or(Endpoint::Absent, Endpoint::Inet),
        frontend: &session.proxy().name,
        tls_frontend: session.is_secure(),
        tls_version: session.tls().and_then(|info| info.version_name()),
        bind_name: bind.map_or("", |bind| &bind.name),
        backend: &session.proxy().name,
        server: "<NOSRV>",
        origin: Origin::SessionKilled,
        termination: *b"PR--",
        request_date: session.accept_date(),
        actconn: live.process.actconn(),
        feconn: live.proxies[session.frontend].feconn(),
        ..session.worker.logger.record(session.log(), session.accept_date())
    };
    let (logger, state) = (&session.worker.logger, session.worker.take_stream_state());
    EvalContext::log(session, &state.borrow()).lend(|context| {
        logger.connection_error(session.log(), &record, Some(context), &reason(session));
    });
    session.worker.keep_stream_state(state);
}
