//! The client side of one handshake.

use std::sync::{Arc, Mutex, PoisonError};

use quinn_proto::ConnectError;
use quinn_proto::crypto;
use quinn_proto::transport_parameters::TransportParameters;
use tls::{Failure, ServerIdentity};

use crate::crypto::session::{Session, encoded};

/// The settings of one connection to a server.
pub(crate) struct ClientSide {
    pub(crate) tls: Arc<tls::Client>,
    pub(crate) identity: ServerIdentity,
    pub(crate) alpn: Option<Vec<Vec<u8>>>,
    /// Why the session could not be created.
    pub(crate) failure: Mutex<Option<Failure>>,
}

impl crypto::ClientConfig for ClientSide {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let made =
            tls::quic::Session::of_client(&self.tls, self.identity.clone(), self.alpn.as_deref(), encoded(parameters));
        match made {
            Ok(inner) => Ok(Box::new(Session::of_client(inner))),
            Err(failure) => {
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                Err(ConnectError::InvalidServerName(name.to_owned()))
            }
        }
    }
}
