//! Early data to servers: which requests may go so, in which protocol, and what a refusal comes to. Must never send any.

use config::spec::{Mode, RetryOn};
use policy::program::{MuxProtocol, Server, ServerTls};
use tls::{Asked, HandshakeInfo};

use crate::stream::connect::Request;
use crate::stream_state::{EarlyRequest, StreamState};

impl Request<'_> {
    /// The name that the handshake of a new connection asks for; with early data, where the request may go so and its
    /// protocol is known. `special`: what is to be spoken instead of what others get.
    pub(super) fn with_early_data(
        &self,
        asked: Asked,
        (server, tls): (&Server, &ServerTls),
        special: Option<MuxProtocol>,
    ) -> Asked {
        // The server has to say first that it takes such a request (RFC 8441).
        if special == Some(MuxProtocol::Http2) || !self.may_be_early_at(tls) {
            return asked;
        }
        match special.or(server.connecting.protocol) {
            // Whatever the handshake agrees on.
            Some(_) => asked.with_early_data(true),
            None => tls.client.with_early_data(asked),
        }
    }

    /// Whether the request may share a connection to the server whose handshake is not over.
    pub(super) fn may_be_early(&self, server: &Server) -> bool {
        server.connecting.tls.as_deref().is_some_and(|tls| self.may_be_early_at(tls))
    }

    /// Whether the request may go to the server as early data: it has come so from the client, and tells the server that, or
    /// `retry-on` lists that it may be sent a second time and it asks for nothing but an answer (RFC 8470, section 4).
    fn may_be_early_at(&self, tls: &ServerTls) -> bool {
        let state = self.state.borrow();
        let is_http = self.proxy.mode == Mode::Http;
        if !is_http || !tls.client.may_send_early() || state.attempts.early == EarlyRequest::Refused {
            return false;
        }
        let retries = self.proxy.backend.as_ref().map(|backend| backend.limits.retry_on);
        let is_listed = retries.is_some_and(|retries| retries.contains(RetryOn::EARLY_DATA_REJECTED));
        let is_safe = state.request.known_method().is_safe() && !state.request.framing.has_body();
        self.session.tls().is_some_and(HandshakeInfo::is_early) || is_listed && is_safe
    }
}

/// Whether a request goes out before the handshake of its connection is over.
pub(super) fn note(state: &mut StreamState, is_early: bool) {
    let early = &mut state.attempts.early;
    if *early != EarlyRequest::Refused {
        *early = if is_early { EarlyRequest::Sent } else { EarlyRequest::Unsent };
    }
}

/// A server has not begun with a request. One that has gone out as early data does not go so again, and what the server speaks
/// is found out anew.
pub(super) fn note_refusal(state: &mut StreamState, server: Option<&Server>) {
    if state.attempts.early != EarlyRequest::Sent {
        return;
    }
    state.attempts.early = EarlyRequest::Refused;
    if let Some(tls) = server.and_then(|server| server.connecting.tls.as_deref()) {
        tls.client.forget_protocols();
    }
}
