//! The server side of handshakes: the library asks it for keys and sessions.

use std::sync::Arc;

use quinn_proto::crypto::{self, Keys, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side};

use crate::crypto::retry;
use crate::crypto::session::{Session, VERSION, encoded, initial_keys};
use crate::failures::Failures;

/// The TLS settings of an address, and where failures are reported.
pub(crate) struct ServerSide {
    pub(crate) tls: Arc<tls::Server>,
    pub(crate) failures: Arc<Failures>,
}

impl crypto::ServerConfig for ServerSide {
    fn initial_keys(&self, version: u32, destination: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        if version != VERSION {
            return Err(UnsupportedVersion);
        }
        initial_keys(destination, Side::Server).ok_or(UnsupportedVersion)
    }

    fn retry_tag(&self, _: u32, original: &ConnectionId, packet: &[u8]) -> [u8; retry::TAG] {
        // The client drops a packet without a valid tag.
        retry::tag(original, &[packet]).unwrap_or_default()
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn crypto::Session> {
        let inner = tls::quic::Session::of_server(Arc::clone(&self.tls), encoded(parameters));
        Box::new(Session::new(inner, Side::Server, Some(Arc::clone(&self.failures))))
    }
}
