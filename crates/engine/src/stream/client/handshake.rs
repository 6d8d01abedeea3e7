//! The start of a client's connection: headers of a proxy (`accept-proxy`, `accept-netscaler-cip`), then TLS. The
//! results are stored in the session; a connection that fails here is logged and closed. Must never read a byte itself.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use config::spec::Mode;
use conn::handshake::{self, Failure, Kind, ProxyPreamble};
use conn::transport::{Insecure, Transport};
use expression::record::{Endpoint, Origin, Record};
use expression::sample::ConnectionError;
use live::trace::events;
use policy::program::ExpectedHeader;
use tls::openssl;
use wire::{client_ip, proxy_protocol};

use crate::handshake::{are_too_many, expected, tls_error};
use crate::session::Session;
use crate::stream::record::metrics::{self, Handshake};
use crate::stream::record::tracing;
use crate::stream::request::evaluate::EvalContext;

/// Returns the connection error of failed headers.
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

/// Reads the expected headers, and stores their contents in the session. Returns the bytes after them; `None`: the connection has
/// to be closed, and the reason has been logged.
pub async fn receive(session: &Session, stream: &mut Transport, header: ExpectedHeader) -> Option<Buffer> {
    let limit = session.proxy().timeouts.client_handshake().map(|limit| session.accepted + limit);
    let most = session.generation().program.global.bufsize;
    let mut told = ProxyPreamble::default();
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

/// Performs the TLS handshake with a client; `early`: its bytes received so far. The result is stored in the session. Returns
/// false if the connection has to be closed; the reason has been logged.
pub async fn secure(session: &Session, stream: &mut Transport, early: Buffer) -> bool {
    tracing::session(session, &events::SSLC_NEW, "new SSL connection");
    if are_too_many(session.generation().program.global.max_tls_connections) {
        fail(session, ConnectionError::TLS_TOO_MANY, true);
        return false;
    }
    stream.begin_tls(early.data());
    drop(early);
    let limit = session.proxy().timeouts.client_handshake().map(|limit| session.accepted + limit);
    let mut timer = rt::Timer::new();
    timer.arm(limit);
    // Early data is only accepted for HTTP requests, which can be marked as early.
    let is_http = session.proxy().mode == Mode::Http;
    let shaking = std::future::poll_fn(|cx| match poll(stream, cx, is_http) {
        Poll::Ready(shaken) => Poll::Ready(shaken.map_err(|insecure| tls_error(&insecure))),
        Poll::Pending => timer.poll_expired(cx).map(|()| Err((ConnectionError::TLS_TIMEOUT, true))),
    });
    // Handshakes run in a lower class, so that many of them do not delay established connections.
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
            // Properties negotiated before the failure are logged.
            if let Some(info) = stream.handshake_info() {
                session.keep_tls(Arc::clone(info));
            }
            fail(session, error, is_told);
            false
        }
    }
}

/// Records the reason of a failed handshake, and logs it, except an empty connection with `option dontlognull`.
pub(super) fn fail(session: &Session, error: ConnectionError, is_told: bool) {
    metrics::client_handshake(session, Handshake::Failed);
    tracing::session(session, &events::SSLC_ERR, "SSL handshake failed");
    session.error.set(error);
    if is_told || !session.proxy().options.dontlognull {
        log(session);
    }
}

fn poll(stream: &mut Transport, cx: &mut Context<'_>, may_be_early: bool) -> Poll<Result<(), Insecure>> {
    if may_be_early { stream.poll_handshake(cx) } else { stream.poll_whole_handshake(cx) }
}

/// Returns the reason of a failed connection; for handshakes with OpenSSL's message in parentheses.
fn reason(session: &Session) -> Cow<'static, str> {
    let error = session.error.get();
    match session.tls().and_then(|info| info.failure.as_ref()) {
        Some(failure) if error == ConnectionError::TLS_HANDSHAKE => {
            format!("{} ({})", error.message(), openssl::sentence(failure)).into()
        }
        _ => error.message().into(),
    }
}

/// Logs a connection that failed before anything was served.
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
