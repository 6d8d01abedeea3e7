//! The server side of handshakes: the library asks it for keys and sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn_proto::crypto::{self, Keys, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side};

use crate::crypto::retry;
use crate::crypto::session::{InitialKeys, Session, VERSION, encoded};
use crate::failures::Failures;

/// The TLS settings of an address, and where failures are reported.
pub(crate) struct ServerSide {
    tls: Arc<tls::Server>,
    failures: Arc<Failures>,
    /// The keys of the newest first packet, for the session that it begins.
    initial: Mutex<Option<InitialKeys>>,
}

impl ServerSide {
    pub(crate) fn new(tls: Arc<tls::Server>, failures: Arc<Failures>) -> Self {
        Self { tls, failures, initial: Mutex::default() }
    }

    fn initial(&self) -> MutexGuard<'_, Option<InitialKeys>> {
        self.initial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl crypto::ServerConfig for ServerSide {
    fn initial_keys(&self, version: u32, destination: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        if version != VERSION {
            return Err(UnsupportedVersion);
        }
        let derived = InitialKeys::new(destination, Side::Server).ok_or(UnsupportedVersion)?;
        Ok(self.initial().insert(derived).pair())
    }

    fn retry_tag(&self, _: u32, original: &ConnectionId, packet: &[u8]) -> [u8; retry::TAG] {
        // The client drops a packet without a valid tag.
        retry::tag(original, &[packet]).unwrap_or_default()
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn crypto::Session> {
        let inner = tls::quic::Session::of_server(Arc::clone(&self.tls), encoded(parameters));
        let initial = self.initial().take();
        Box::new(Session::of_server(inner, Arc::clone(&self.failures), initial))
    }
}
