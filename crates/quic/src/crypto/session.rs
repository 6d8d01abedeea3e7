//! A handshake of crate `tls` as the library drives it. Must never know whose handshake it is.

use std::any::Any;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use tls::HandshakeInfo;
use tls::quic::{KeyChange, Secrets};

use crate::crypto::{keys, retry};
use crate::failures::Failures;

/// The version of QUIC.
pub(crate) const VERSION: u32 = 1;

/// A handshake, and then the secrets of key updates.
pub(super) struct Session {
    inner: tls::quic::Session,
    side: Side,
    /// The secrets of the next keys.
    next: Option<Secrets>,
    /// Whether the decision about the protocol was reported.
    is_reported: bool,
    /// The information on the completed handshake, until it is taken.
    info: Mutex<Option<Box<HandshakeInfo>>>,
    /// Gets the information if the handshake fails.
    failures: Option<Arc<Failures>>,
}

impl Session {
    pub(super) fn new(inner: tls::quic::Session, side: Side, failures: Option<Arc<Failures>>) -> Self {
        Self { inner, side, next: None, is_reported: false, info: Mutex::default(), failures }
    }
}

/// Returns the keys of Initial packets. Without any, nothing can be opened.
pub(super) fn initial_keys(destination: &ConnectionId, side: Side) -> Option<Keys> {
    let side = if side.is_client() { tls::quic::Side::Client } else { tls::quic::Side::Server };
    tls::quic::initial_keys(destination, side).map(keys::pair)
}

/// Returns encoded transport parameters.
pub(super) fn encoded(parameters: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    bytes
}

/// Returns the error that the peer gets. It contains the alert alone: the text stays here.
fn error(refusal: &tls::quic::Refusal) -> TransportError {
    let code = refusal.alert.map_or(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED, TransportErrorCode::crypto);
    TransportError { code, frame: None, reason: String::new() }
}

impl crypto::Session for Session {
    fn initial_keys(&self, destination: &ConnectionId, side: Side) -> Keys {
        initial_keys(destination, side).unwrap_or_else(keys::none)
    }

    /// Returns a [`HandshakeInfo`]; that of a completed handshake once.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        if self.inner.is_handshaking() {
            return Some(Box::new(self.inner.info().clone()));
        }
        let info = self.info.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(info)
    }

    /// The information on the handshake has it.
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_keys().map(keys::directional)
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.is_early_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let was_handshaking = self.inner.is_handshaking();
        if let Err(refusal) = self.inner.read(bytes) {
            if let Some(failures) = &self.failures {
                failures.put(self.inner.info().clone());
            }
            return Err(error(&refusal));
        }
        if was_handshaking && !self.inner.is_handshaking() {
            let info = Box::new(self.inner.take_info());
            *self.info.lock().unwrap_or_else(PoisonError::into_inner) = Some(info);
        }
        let is_new = !self.is_reported && self.inner.has_decided();
        self.is_reported |= is_new;
        Ok(is_new)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(bytes) = self.inner.peer_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side, &mut Cursor::new(bytes))?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match self.inner.write(out)? {
            KeyChange::Handshake { keys } => Some(keys::pair(keys)),
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                Some(keys::pair(keys))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.next.as_mut().map(|secrets| keys::packet_pair(secrets.next_packet_keys()))
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        retry::is_valid(original, header, payload)
    }

    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
