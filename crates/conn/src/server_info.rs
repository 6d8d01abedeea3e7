//! Properties of a server connection, for requests that share it. Must never move a byte.

use std::cell::OnceCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rt::net::{Address, SocketQuery};
use tls::HandshakeInfo;

use crate::quic::Link;
use crate::transport::Transport;

/// Properties of a server connection, independent of the owner of its transport.
#[derive(Debug, Clone)]
pub struct About {
    /// The result of its TLS handshake, set once that is complete.
    pub tls: OnceCell<Arc<HandshakeInfo>>,
    /// Queries about its socket.
    pub socket: SocketQuery,
    /// The local address of a QUIC connection.
    address: Option<SocketAddr>,
}

impl About {
    #[cfg(any(test, feature = "machine"))]
    pub(crate) fn of_none() -> Self {
        Self { tls: OnceCell::new(), socket: SocketQuery::of_none(), address: None }
    }

    /// Of a QUIC connection. Its socket answers no queries: TCP's properties do not exist.
    pub fn of_quic(link: &Link, tls: Option<Arc<HandshakeInfo>>) -> Self {
        let address = link.local().map(|ip| SocketAddr::new(ip, link.listening().port()));
        Self { tls: tls.map_or_else(OnceCell::new, OnceCell::from), socket: SocketQuery::of_none(), address }
    }

    /// Returns the local address of the connection. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn local_address(&self) -> io::Result<Address> {
        match self.address {
            Some(address) => Ok(Address::Inet(address)),
            None => self.socket.local_address(),
        }
    }

    /// Of a transport that stands.
    pub fn of(transport: &Transport) -> Self {
        let tls = transport.handshake_info().map_or_else(OnceCell::new, |info| Arc::clone(info).into());
        Self { tls, socket: transport.socket(), address: None }
    }
}
