//! A handshake of crate `tls` as the library drives it. Must never know whose handshake it is.

use std::any::Any;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use tls::HandshakeInfo;
use tls::quic::KeyChange;

use crate::crypto::keys::{Generation, UpdateSecrets};
use crate::crypto::{keys, retry};
use crate::failures::Failures;

/// The version of QUIC.
pub(crate) const VERSION: u32 = 1;

/// A handshake, and then the secrets of key updates.
pub(super) struct Session {
    inner: tls::quic::Session,
    side: Side,
    /// The keys of Initial packets that the endpoint has derived.
    initial: Mutex<Option<InitialKeys>>,
    /// The secrets of key updates, after the handshake.
    updates: Option<Arc<UpdateSecrets>>,
    /// The keys of the next update.
    next: Option<Arc<Generation>>,
    /// Whether the decision about the protocol was reported.
    is_reported: bool,
    /// The information on the completed handshake, until it is taken.
    info: Mutex<Option<Box<HandshakeInfo>>>,
    /// Gets the information if the handshake fails.
    failures: Option<Arc<Failures>>,
}

impl Session {
    pub(super) fn of_client(inner: tls::quic::Session) -> Self {
        Self::new(inner, Side::Client, None, None)
    }

    /// `initial` are the keys with which the endpoint has opened the first packet.
    pub(super) fn of_server(inner: tls::quic::Session, failures: Arc<Failures>, initial: Option<InitialKeys>) -> Self {
        Self::new(inner, Side::Server, Some(failures), initial)
    }

    fn new(
        inner: tls::quic::Session,
        side: Side,
        failures: Option<Arc<Failures>>,
        initial: Option<InitialKeys>,
    ) -> Self {
        let (initial, info) = (Mutex::new(initial), Mutex::default());
        Self { inner, side, initial, updates: None, next: None, is_reported: false, info, failures }
    }
}

/// The keys of Initial packets to a connection id that the client has chosen.
pub(super) struct InitialKeys {
    destination: ConnectionId,
    keys: Arc<tls::quic::Keys>,
}

impl InitialKeys {
    /// Derives the keys. `None`: the cipher is missing.
    pub(super) fn new(destination: &ConnectionId, side: Side) -> Option<Self> {
        let side = if side.is_client() { tls::quic::Side::Client } else { tls::quic::Side::Server };
        let keys = Arc::new(tls::quic::initial_keys(destination, side)?);
        Some(Self { destination: *destination, keys })
    }

    /// Converts the keys.
    pub(super) fn pair(&self) -> Keys {
        keys::initial_pair(&self.keys)
    }
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
        let known = self.initial.lock().unwrap_or_else(PoisonError::into_inner).take();
        let known = known.filter(|known| known.destination == *destination);
        let initial = known.or_else(|| InitialKeys::new(destination, side));
        initial.map_or_else(keys::none, |initial| initial.pair())
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
                self.updates = Some(Arc::new(Mutex::new(next)));
                Some(keys::pair(keys))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let secrets = self.updates.as_ref()?;
        if let Some(current) = &self.next {
            current.keys();
        }
        let next = self.next.insert(Arc::new(Generation::new(secrets)));
        Some(keys::packet_pair(next))
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        retry::is_valid(original, header, payload)
    }

    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
