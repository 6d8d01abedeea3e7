//! What is known of a connection since its handshake, for samples and logs. Must never hold a secret that the configuration
//! does not ask for.

use std::sync::Arc;

use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

use crate::capture::Capture;
use crate::certificate::Certificate;
use crate::details::Details;
use crate::early::EarlyData;
use crate::failure::Failure;
use crate::faults::Fault;
use crate::verify::Authorities;

/// What a handshake has found.
#[derive(Debug, Clone, Default)]
pub struct HandshakeInfo {
    /// The version.
    pub version: Option<ProtocolVersion>,
    /// The cipher suite.
    pub suite: Option<CipherSuite>,
    /// The group that keys were exchanged over; none where a session was resumed without.
    pub group: Option<NamedGroup>,
    /// The protocol that ALPN has chosen.
    pub alpn: Option<Box<[u8]>>,
    /// The name that the client has asked for.
    pub server_name: Option<Box<[u8]>>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The certificate that this side has shown.
    pub own: Option<Arc<Certificate>>,
    /// What was kept of the client's hello, where that was asked for.
    pub hello: Option<Arc<Capture>>,
    /// What is wrong with the client's certificate and was ignored.
    pub faults: Vec<Fault>,
    /// Who is believed where clients are verified.
    pub authorities: Option<Arc<Authorities>>,
    /// The peer's certificate and those behind it, in DER.
    pub peer: Vec<Box<[u8]>>,
    /// What else the configuration asks for.
    pub details: Option<Box<Details>>,
    /// Early data has come from the client, or was sent to the server.
    pub early: Option<Arc<EarlyData>>,
    /// Why the handshake failed.
    pub failure: Option<Box<Failure>>,
}

impl HandshakeInfo {
    /// Whether the version is 1.3.
    pub fn is_tls13(&self) -> bool {
        self.version == Some(ProtocolVersion::TLSv1_3)
    }

    /// Whether early data has come and the handshake is not over: someone may have repeated what another has sent (RFC 8446,
    /// section 8).
    pub fn is_early(&self) -> bool {
        self.early.as_ref().is_some_and(|early| early.is_pending())
    }

    /// The version as OpenSSL calls it.
    pub fn version_name(&self) -> Option<&'static str> {
        match self.version? {
            ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
            ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
            _ => None,
        }
    }
}
