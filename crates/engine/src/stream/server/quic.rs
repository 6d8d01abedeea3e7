//! Connections to servers over QUIC: a UDP socket for each, the handshake, and HTTP/3 on it. Must never choose a server.

use std::io;
use std::sync::Arc;

use base::moment::Moment;
use config::spec::{HttpReuse, Mode};
use conn::link::Link;
use conn::pool_key::OwnedPoolKey;
use conn::quic::{HandshakeFailure, Link as QuicLink};
use conn::quota::Reservation;
use expression::sample::ConnectionError;
use policy::program::{Backend, MuxProtocol, Namespace, Server, ServerTls};
use rt::net::{Address, ConnectFailure, ConnectOptions, ConnectStep, DatagramSocket, Shortage};
use tls::HandshakeInfo;

use super::attempt::{Attempt, Missing, Plan, address_of, server_identity};
use super::connect::{Request, WaitResult};
use super::quic_tally::ServerTally;
use super::server_multiplex::NewConnection;
use super::{private_connections, server_multiplex};
use crate::check::Sign;
use crate::handshake::{are_too_many, quic_error};
use crate::outgoing_quic;
use crate::qlog_files::QlogFiles;
use crate::stream::exchange::websocket;
use crate::stream::record::metrics::{self, Handshake};

/// A connection whose handshake has begun.
struct Begun {
    link: QuicLink,
    tally: ServerTally,
    pool_key: Option<Box<OwnedPoolKey>>,
    generation: u32,
}

impl Request<'_> {
    /// Returns the protocol for the request if it differs from that of other requests (`ws`), or if the request needs a connection of
    /// its own (`webtransport`).
    pub(super) fn special_protocol(&self, server: &Server) -> Option<MuxProtocol> {
        let special = server.connecting.websockets?;
        let is_asked = match special {
            MuxProtocol::Quic => self.client.is_session(),
            _ => self.proxy.mode == Mode::Http && websocket::is_asked(&self.state.borrow().request),
        };
        is_asked.then_some(special)
    }

    /// Connects, and begins the request on the connection. `place` is its slot in the server's count. With a `special` protocol, the
    /// connection carries nothing else.
    pub(super) async fn connect_quic(
        &mut self,
        backend: &Backend,
        server: &Server,
        plan: Plan,
        special: Option<MuxProtocol>,
        place: Option<Reservation>,
    ) -> Attempt {
        let Some(tls) = server.connecting.tls.as_deref() else { return Attempt::Unable };
        let Begun { link, tally, pool_key, generation } = match self.begin_quic(server, tls, plan) {
            Ok(begun) => begun,
            Err(over) => return over,
        };
        let (connection, requests) = if link.may_send_early() {
            // The connection's task waits for the end of the handshake, and counts it.
            server_multiplex::over_early_quic(self.session, server, link, self.handshake_deadline())
        } else {
            let shaken = self.shake(server, &link).await;
            tally.end_handshake(shaken.as_ref().is_err_and(|over| !matches!(over, Attempt::Gone)));
            let info = match shaken {
                Ok(info) => info,
                Err(over) => return over,
            };
            self.sign(server, Sign::Connected);
            server_multiplex::over_quic(self.session, server, link, info)
        };
        let private = private_connections::authenticates(&self.state.borrow());
        let Some(carrier) = requests.begin() else { return Attempt::Refused };
        let (answers, glitches, first) = (0, 0, self.first);
        let link = Link { carrier, answers, glitches, private, first, generation, place, pool_key };
        if special.is_some() {
            link.carrier.retire();
        }
        let shared = !private && special.is_none() && backend.http_reuse != HttpReuse::Never;
        let fresh = NewConnection { connection, requests, tally: Some(tally) };
        Attempt::Connected(server_multiplex::start(self.session, self.proxy.index, server, shared, link, fresh))
    }

    /// Opens the socket, and begins the handshake. The error is the result of an attempt that has failed immediately.
    fn begin_quic(&self, server: &Server, tls: &ServerTls, mut plan: Plan) -> Result<Begun, Attempt> {
        let worker = &self.session.worker;
        let global = &self.session.generation().program.global;
        let route = worker.process.outgoing.route(server.serial).ok_or(Attempt::Refused)?;
        let destination = address_of(&worker.process.outgoing.address(server), &plan).ok_or(Attempt::Refused)?;
        let peer = destination.inet().ok_or(Attempt::Refused)?;
        if are_too_many(global.max_tls_connections) {
            self.note_error(ConnectionError::TLS_TOO_MANY);
            return Err(Attempt::Refused);
        }
        let opened =
            self.start(server, route, &destination, &plan, |to, options| self.open_socket(server, to, options));
        let (socket, port) = opened.map_err(|missing| self.report(missing))?;
        metrics::server_session(worker, server);
        let (generation, sni) = (plan.generation, plan.sni.take());
        let identity = self.with_early_data(server_identity(sni.as_deref(), &destination), server, tls, None);
        let begun = outgoing_quic::connect(worker, server, socket, peer, Arc::clone(&tls.client), identity);
        let link = begun.map_err(|_| {
            self.note_error(ConnectionError::TLS_HANDSHAKE);
            Attempt::Refused
        })?;
        let files = worker.process.service::<QlogFiles>();
        files.trace(&link, || format!("server {}/{} at {peer}", self.proxy.name, server.name));
        let tally = ServerTally::new(worker, self.proxy, server, link.observer());
        Ok(Begun { link, tally, pool_key: plan.keep(port), generation })
    }

    /// Opens a UDP socket. If file descriptors are exhausted, an idle connection is closed first.
    fn open_socket(&self, server: &Server, to: &Address, options: &ConnectOptions) -> Result<DatagramSocket, Missing> {
        let peer = to.inet().ok_or(Missing::Server(io::ErrorKind::InvalidInput))?;
        let namespace = match &server.connecting.namespace {
            Some(Namespace::Told) => self.namespace().map(|(name, _)| name),
            _ => outgoing_quic::namespace(server),
        };
        let worker = &self.session.worker;
        let failure = |error: io::Error| ConnectFailure { step: ConnectStep::Bind, error };
        let opened = match outgoing_quic::open(peer, options, namespace).map_err(failure) {
            Err(failed)
                if failed.shortage() == Some(Shortage::Descriptors) && worker.links.evict_any(&worker.process.pool) =>
            {
                outgoing_quic::open(peer, options, namespace).map_err(failure)
            }
            opened => opened,
        };
        opened.map_err(Missing::of)
    }

    /// Returns the time at which a handshake that begins now has to be complete (`timeout connect`).
    fn handshake_deadline(&self) -> Option<Moment> {
        let own = self.state.borrow().rules.orders.get().timeouts;
        own.connect.or(self.proxy.timeouts.connect).map(|limit| rt::now() + limit)
    }

    /// Waits for the end of the handshake. The error is the result of an attempt that has failed.
    async fn shake(&mut self, server: &Server, link: &QuicLink) -> Result<Option<Arc<HandshakeInfo>>, Attempt> {
        let deadline = self.handshake_deadline();
        let shaken = rt::in_class(rt::Class::Heavy, self.wait(deadline, |cx| link.poll_handshake(cx))).await;
        let count = |handshake| {
            metrics::server_handshake(&self.session.worker, self.proxy.index, server.serial, handshake);
        };
        match shaken {
            WaitResult::Done(Ok(info)) => {
                count(Handshake::Made { resumed: info.as_ref().is_some_and(|info| info.resumed) });
                // Without the protocol's name, the server does not speak HTTP/3 (RFC 9001, section 8.1).
                if info.as_ref().is_some_and(|info| info.alpn.as_deref() == Some(b"h3")) {
                    return Ok(info);
                }
                self.note_error(ConnectionError::TLS_HANDSHAKE);
                Err(Attempt::Refused)
            }
            WaitResult::Done(Err(HandshakeFailure { closed, info })) => {
                count(Handshake::Failed);
                self.note_error(quic_error(&closed, info.as_deref()));
                self.state.borrow_mut().attempts.server_tls = info;
                Err(Attempt::Refused)
            }
            WaitResult::Expired if link.heard() == 0 => {
                self.note_error(ConnectionError::NONE);
                Err(Attempt::Expired)
            }
            WaitResult::Expired => {
                count(Handshake::Failed);
                self.note_error(ConnectionError::TLS_TIMEOUT);
                Err(Attempt::Expired)
            }
            WaitResult::Gone => Err(Attempt::Gone),
        }
    }
}
