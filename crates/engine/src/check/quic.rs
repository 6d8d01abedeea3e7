//! Checks of servers over QUIC: the connection and its handshake, and HTTP/3 for checks of HTTP. Must never judge a response.

use std::sync::Arc;

use conn::multiplexed::ServerConnection;
use conn::quic::{HandshakeFailure, Link};
use conn::sequential_client::Solo;
use expression::sample::ConnectionError;
use live::health::CheckStatus;
use policy::check::Connect;
use policy::program::MuxProtocol;
use rt::net::{Address, ConnectOptions};
use tls::asked_name;

use super::messages;
use super::running::{Outcome, RunningCheck, Waited};
use crate::handshake::{is_one_too_many, quic_error};
use crate::outgoing_quic;

impl<'a> RunningCheck<'a> {
    /// Whether a connection goes by QUIC: that to the server's own address, unless `check-proto` names another protocol.
    pub(super) fn goes_by_quic(&self, connect: &Connect) -> bool {
        self.server.connecting.quic.is_some() && self.protocol(connect) == Some(MuxProtocol::Quic)
    }

    /// Connects, and performs the handshake.
    pub(super) async fn connect_by_quic(
        &mut self,
        connect: &'a Connect,
        destination: &Address,
        options: &ConnectOptions,
    ) -> Result<(), Outcome> {
        let link = self.begin_quic(connect, destination, options)?;
        let info = match self.within(|cx| link.poll_handshake(cx)).await {
            Waited::Done(Ok(info)) => info,
            Waited::Done(Err(HandshakeFailure { closed, info })) => {
                let reason = quic_error(&closed, info.as_deref()).message();
                return Err(Outcome::new(CheckStatus::L6Response, messages::at_connect(self, connect, reason)));
            }
            Waited::Expired if link.heard() == 0 => return Err(self.not_in_time(connect)),
            Waited::Expired => {
                return Err(Outcome::new(CheckStatus::L6Timeout, messages::at_connect(self, connect, "")));
            }
        };
        self.keep_alone();
        self.connection.spare = None;
        if self.check.is_http {
            let terms = outgoing_quic::http3_terms(&self.generation.program.global, self.server);
            let (connection, requests) = ServerConnection::over_quic(link, terms, info);
            self.connection.solo = Some(Box::new(Solo::new(connection, requests)));
        }
        self.restart_timeout();
        Ok(())
    }

    /// Opens the socket, and begins the handshake.
    fn begin_quic(&self, connect: &Connect, destination: &Address, options: &ConnectOptions) -> Result<Link, Outcome> {
        let server = self.server;
        let broken = |error: ConnectionError| {
            let message = messages::at_connect(self, connect, error.message());
            Outcome::new(CheckStatus::L6Response, message)
        };
        let Some((tls, peer)) = server.connecting.tls.as_deref().zip(destination.inet()) else {
            return Err(Outcome::new(CheckStatus::SocketError, String::new()));
        };
        if is_one_too_many(self.generation.program.global.max_tls_connections) {
            return Err(broken(ConnectionError::TLS_TOO_MANY));
        }
        let socket = outgoing_quic::open(peer, options, outgoing_quic::namespace(server)).map_err(|error| {
            let message = messages::at_connect(self, connect, &messages::of_system(&error));
            Outcome::new(CheckStatus::L4Connection, message)
        })?;
        let sni = self.server_name(connect, tls);
        let identity = asked_name(sni.as_deref(), Some(peer.ip()));
        outgoing_quic::connect(self.worker, server, socket, peer, Arc::clone(&tls.client), identity)
            .map_err(|_| broken(ConnectionError::TLS_HANDSHAKE))
    }
}
