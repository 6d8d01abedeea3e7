//! The information on the last handshake that failed in its first datagram: there is no connection to ask for it.

use std::sync::{Mutex, PoisonError};

use tls::HandshakeInfo;

/// Holds the information until the endpoint takes it.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Option<Box<HandshakeInfo>>>);

impl Failures {
    pub(crate) fn put(&self, info: HandshakeInfo) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(info));
    }

    pub(crate) fn take(&self) -> Option<Box<HandshakeInfo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
