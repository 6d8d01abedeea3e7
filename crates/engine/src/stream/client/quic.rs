//! A session whose client is connected by QUIC: from its first datagram to its end. Must never parse a message.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use conn::multiplexed::{Connection, Protocol};
use conn::quic::{Closed, HandshakeFailure, Link, Observer};
use expression::sample::ConnectionError;
use live::Entry;
use live::trace::events;
use rt::LocalRc;
use rt::net::SocketQuery;

use super::multiplexed::QuicClient;
use super::quic_tally::QuicTally;
use super::run::{Rejection, judge, leave};
use super::{handshake, multiplexed};
use crate::generation::FrontendHandle;
use crate::handshake::are_too_many;
use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::record::metrics::{self, Handshake};
use crate::stream::record::{tracing, tracking};
use crate::worker::Worker;

/// Starts the session of an accepted connection on this worker. A connection that is rejected by `tcp-request connection` rules
/// never becomes a task.
pub fn start_quic(worker: &Rc<Worker>, handle: &Rc<FrontendHandle>, bind: usize, link: Link, slots: Entry) {
    let (peer, listening) = (link.peer(), link.listening());
    let destination = SocketAddr::new(link.local().unwrap_or(listening.ip()), listening.port());
    let make = || Session::new(worker, handle, bind, SocketQuery::of_none(), Some(peer), slots);
    let session = LocalRc::new(|| StreamTask::own(make()));
    session.set_destination(destination);
    StreamTask::enter(&session);
    link.set_tag(session.tag());
    metrics::connection(&session);
    if session.proxy().rules.connection.is_empty() {
        spawn(session, link);
    } else {
        // A panic is attributed to the session, not to the listener's task.
        rt::contain(session.tag(), || screen(session, link));
    }
}

/// Runs the rules on connections, and continues with a connection that passes. Headers of a proxy in front do not exist in QUIC.
fn screen(session: LocalRc<StreamTask>, link: Link) {
    match judge(&session, true) {
        Ok(_) => spawn(session, link),
        Err(rejection) => {
            reject(&link, rejection);
            drop(link);
            leave(&session);
        }
    }
}

/// Ends a connection that a rule rejects. One that is not silent is closed when its link is dropped.
fn reject(link: &Link, rejection: Rejection) {
    if let Rejection::Silent(_) = rejection {
        link.forget();
    }
}

fn spawn(session: LocalRc<StreamTask>, link: Link) {
    rt::spawn_with(rt::Class::Normal, session.tag(), (session, link), |(session, link)| run(session, link));
}

/// Runs a session to its end, or until it is killed: everything that it holds is then dropped.
async fn run(session: LocalRc<StreamTask>, link: Link) {
    let ended = rt::unless(|| session.is_killed(), serve(&session, link)).await;
    if ended.is_none() {
        session.conclude_killed();
    }
    leave(&session);
}

/// Serves a connection from its handshake on, until it and all of its streams have ended.
async fn serve(session: &LocalRc<StreamTask>, link: Link) {
    session.register().await;
    let tally = QuicTally::new(session, Observer::of(&link));
    let is_secure = rt::boxed(secure(session, &link)).await;
    tally.end_handshake(is_secure);
    if !is_secure {
        return;
    }
    if !session.proxy().rules.session.is_empty()
        && let Err(rejection) = judge(session, false)
    {
        return reject(&link, rejection);
    }
    metrics::session(session);
    tracking::session(session);
    let share = multiplexed::stream_share(session, Protocol::H3);
    let terms = multiplexed::terms(session, Protocol::H3, share.as_deref());
    let Some(connection) = Connection::over_quic(link, terms) else { return };
    let mut client = QuicClient::new();
    tracing::session(session, &events::QCC_NEW, "new QUIC connection");
    tracing::session(session, &events::H3C_NEW, "new H3 connection");
    tally.during(multiplexed::serve_quic(session, &mut client, connection, share)).await;
    tracing::session(session, &events::H3C_END, "H3 connection terminated");
    tracing::session(session, &events::QCC_END, "QUIC connection terminated");
}

/// Performs the handshake. Returns false if the connection has ended; the reason was logged.
async fn secure(session: &Session, link: &Link) -> bool {
    tracing::session(session, &events::SSLC_NEW, "new SSL connection");
    if are_too_many(session.generation().program.global.max_tls_connections) {
        handshake::fail(session, ConnectionError::TLS_TOO_MANY, true);
        return false;
    }
    let limit = session.proxy().timeouts.client_handshake().map(|limit| session.accepted + limit);
    let mut timer = rt::Timer::new();
    timer.arm(limit);
    let shaking = std::future::poll_fn(|cx| match link.poll_handshake(cx) {
        std::task::Poll::Ready(shaken) => std::task::Poll::Ready(shaken.map_err(Some)),
        std::task::Poll::Pending => timer.poll_expired(cx).map(|()| Err(None)),
    });
    let failure = match rt::in_class(rt::Class::Heavy, shaking).await {
        Ok(info) => {
            tracing::session(session, &events::SSLC_HANDSHAKE, "SSL handshake done");
            let resumed = info.as_ref().is_some_and(|info| info.resumed);
            metrics::client_handshake(session, Handshake::Made { resumed });
            if let Some(info) = info {
                session.keep_tls(info);
            }
            session.complete_handshake(rt::now());
            return true;
        }
        Err(failure) => failure,
    };
    let error = failure.as_ref().map_or(ConnectionError::TLS_TIMEOUT, error);
    if let Some(info) = failure.and_then(|failure: HandshakeFailure| failure.info).or_else(|| link.handshake_info()) {
        session.keep_tls(Arc::clone(&info));
    }
    handshake::fail(session, error, true);
    false
}

/// Returns the connection error of a failed handshake.
fn error(failure: &HandshakeFailure) -> ConnectionError {
    match failure.closed {
        Closed::TimedOut => ConnectionError::TLS_TIMEOUT,
        Closed::ByPeer { .. } | Closed::Reset => ConnectionError::TLS_ABORTED,
        _ => ConnectionError::TLS_HANDSHAKE,
    }
}
