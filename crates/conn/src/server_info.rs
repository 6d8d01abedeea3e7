//! Properties of a server connection, for requests that share it. Must never move a byte.

use std::cell::OnceCell;
use std::sync::Arc;

use rt::net::SocketQuery;
use tls::HandshakeInfo;

use crate::transport::Transport;

/// Properties of a server connection, independent of the owner of its transport.
#[derive(Debug, Clone)]
pub struct About {
    /// The result of its TLS handshake, set once that is complete.
    pub tls: OnceCell<Arc<HandshakeInfo>>,
    /// Queries about its socket.
    pub socket: SocketQuery,
}

impl About {
    #[cfg(any(test, feature = "machine"))]
    pub(crate) fn of_none() -> Self {
        Self { tls: OnceCell::new(), socket: SocketQuery::of_none() }
    }

    /// Of a transport that stands.
    pub fn of(transport: &Transport) -> Self {
        let tls = transport.handshake_info().map_or_else(OnceCell::new, |info| Arc::clone(info).into());
        Self { tls, socket: transport.socket() }
    }
}
