//! What is known of a connection to a server, for requests that do not have it for themselves. Must never move a byte.

use std::cell::OnceCell;
use std::sync::Arc;

use rt::net::SocketQuery;
use tls::HandshakeInfo;

use crate::transport::Transport;

/// What is known of a connection to a server, whoever moves its bytes.
#[derive(Debug, Clone)]
pub struct About {
    /// What its handshake has found, once that is over.
    pub tls: OnceCell<Arc<HandshakeInfo>>,
    /// Queries about its socket.
    pub socket: SocketQuery,
}

impl About {
    /// Of no connection.
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
