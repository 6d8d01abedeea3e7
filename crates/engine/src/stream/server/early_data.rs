//! Early data to servers: the eligible requests and protocols, and the effects of a rejection. Must never send any.

use config::spec::{Mode, RetryOn};
use policy::program::{MuxProtocol, Server, ServerTls};
use tls::{HandshakeInfo, ServerIdentity};

use crate::stream::server::connect::Request;
use crate::stream_state::{EarlyRequest, StreamState};

impl Request<'_> {
    /// Returns the name for the handshake of a new connection, with early data if the request may be sent as such and
    /// the protocol is known. `special`: protocol that replaces the server's usual one (`ws`).
    pub(super) fn with_early_data(
        &self,
        asked: ServerIdentity,
        server: &Server,
        tls: &ServerTls,
        special: Option<MuxProtocol>,
    ) -> ServerIdentity {
        // The server first has to announce that it supports such a request (RFC 8441).
        // A request over QMux needs the server's parameters.
        let protocol = special.or(server.connecting.protocol);
        let may_be_qmux = protocol.map_or(tls.client.offers(b"h3"), |protocol| protocol == MuxProtocol::Qmux);
        if special == Some(MuxProtocol::Http2) || may_be_qmux || !self.may_be_early_at(server, tls) {
            return asked;
        }
        match protocol {
            // The protocol is fixed, regardless of ALPN.
            Some(_) => asked.with_early_data(true),
            None => tls.client.with_early_data(asked),
        }
    }

    /// Whether the request may share a connection to the server whose handshake is not complete.
    pub(super) fn may_be_early(&self, server: &Server) -> bool {
        server.connecting.tls.as_deref().is_some_and(|tls| self.may_be_early_at(server, tls))
    }

    /// Whether the request may be sent to the server as early data: it was received as early data itself, and is marked
    /// as such; or `retry-on` allows it to be sent a second time, and its method is safe (RFC 8470, section 4). Over QUIC the method
    /// has to be safe in any case: a server that cannot be reached has possibly processed the request.
    fn may_be_early_at(&self, server: &Server, tls: &ServerTls) -> bool {
        let state = self.state.borrow();
        let is_http = self.proxy.mode == Mode::Http;
        if !is_http || !tls.client.may_send_early() || state.attempts.early == EarlyRequest::Refused {
            return false;
        }
        let retries = self.proxy.backend.as_ref().map(|backend| backend.limits.retry_on);
        let is_listed = retries.is_some_and(|retries| retries.contains(RetryOn::EARLY_DATA_REJECTED));
        let is_safe = state.request.known_method().is_safe() && !state.request.framing.has_body();
        let is_marked = self.session.tls().is_some_and(HandshakeInfo::is_early);
        let is_quic = server.connecting.protocol == Some(MuxProtocol::Quic);
        is_safe && (is_marked || is_listed) || is_marked && !is_quic
    }
}

/// Records whether a request is sent before the handshake of its connection is complete.
pub(super) fn note(state: &mut StreamState, is_early: bool) {
    let early = &mut state.attempts.early;
    if *early != EarlyRequest::Refused {
        *early = if is_early { EarlyRequest::Sent } else { EarlyRequest::Unsent };
    }
}

/// Handles that a server has not processed a request. If it was sent as early data, it is not sent so again, and the
/// server's protocol is negotiated anew.
pub(in crate::stream) fn note_refusal(state: &mut StreamState, server: Option<&Server>) {
    if state.attempts.early != EarlyRequest::Sent {
        return;
    }
    state.attempts.early = EarlyRequest::Refused;
    if let Some(tls) = server.and_then(|server| server.connecting.tls.as_deref()) {
        tls.client.forget_protocols();
    }
}
