//! Information on a connection from its handshake, for samples and logs. Must never hold a secret that the
//! configuration does not require.

use std::sync::Arc;

use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

use crate::capture::Capture;
use crate::certificate::Certificate;
use crate::details::Details;
use crate::early_data::EarlyData;
use crate::failure::Failure;
use crate::faults::Fault;
use crate::verify::Authorities;

/// The results of a handshake.
#[derive(Debug, Clone, Default)]
pub struct HandshakeInfo {
    pub version: Option<ProtocolVersion>,
    pub suite: Option<CipherSuite>,
    /// The key exchange group; `None` if a session was resumed without one.
    pub group: Option<NamedGroup>,
    /// The protocol selected by ALPN.
    pub alpn: Option<Box<[u8]>>,
    /// The server name (SNI) sent by the client.
    pub server_name: Option<Box<[u8]>>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The certificate presented by this side.
    pub own: Option<Arc<Certificate>>,
    /// The captured part of the ClientHello, if configured.
    pub hello: Option<Arc<Capture>>,
    /// The ignored errors of the client's certificate.
    pub faults: Vec<Fault>,
    /// The trusted authorities, if clients are verified.
    pub authorities: Option<Arc<Authorities>>,
    /// The peer's certificate and its chain, in DER.
    pub peer: Vec<Box<[u8]>>,
    /// Further details, if configured.
    pub details: Option<Box<Details>>,
    /// Set if early data was received from the client, or sent to the server.
    pub early: Option<Arc<EarlyData>>,
    /// The reason why the handshake failed.
    pub failure: Option<Box<Failure>>,
}

impl HandshakeInfo {
    pub fn is_tls13(&self) -> bool {
        self.version == Some(ProtocolVersion::TLSv1_3)
    }

    /// Whether early data was received and the handshake is not complete: the data may be a replay (RFC 8446, section
    /// 8).
    pub fn is_early(&self) -> bool {
        self.early.as_ref().is_some_and(|early| early.is_pending())
    }

    /// Returns OpenSSL's name of the version.
    pub fn version_name(&self) -> Option<&'static str> {
        match self.version? {
            ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
            ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
            _ => None,
        }
    }
}
