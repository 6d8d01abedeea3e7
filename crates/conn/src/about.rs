//! What is known of a connection to a server, for requests that do not have it for themselves. Must never move a byte.

use std::sync::Arc;

use rt::net::SocketQuery;
use tls::HandshakeInfo;

use crate::transport::Transport;

/// What is known of a connection to a server, whoever moves its bytes.
#[derive(Debug, Clone)]
pub struct About {
    /// What its handshake has found.
    pub tls: Option<Arc<HandshakeInfo>>,
    /// Queries about its socket.
    pub socket: SocketQuery,
}

impl About {
    /// Of no connection.
    #[cfg(any(test, feature = "machine"))]
    pub(crate) fn of_none() -> Self {
        Self { tls: None, socket: SocketQuery::of_none() }
    }

    /// Of a transport that stands.
    pub fn of(transport: &Transport) -> Self {
        Self { tls: transport.handshake_info().cloned(), socket: transport.socket() }
    }
}
