//! The keys of rustls as the library needs them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::BytesMut;
use quinn_proto::crypto::{self, CryptoError, KeyPair, Keys};
use tls::quic::{DirectionalKeys, HeaderProtectionKey, PacketKeySet, Secrets};

use super::padding::length_without_padding;

/// Bytes of a packet from the beginning of its number to its sample (RFC 9001, section 5.4.2).
const NUMBER: usize = 4;
/// Length of the sample in bytes, and of the tag, of all ciphers of TLS 1.3.
const SAMPLE: usize = 16;

/// A key, or where one is found.
trait Holder<K: ?Sized>: Send + Sync {
    /// Returns the key.
    fn key(&self) -> &K;
}

impl<K: ?Sized + Send + Sync> Holder<K> for Box<K> {
    fn key(&self) -> &K {
        self
    }
}

/// A direction of a connection.
#[derive(Clone, Copy)]
enum Direction {
    Local,
    Remote,
}

/// A key of Initial packets. The endpoint opens the first packet with it, and the connection goes on with it.
struct InitialKey {
    keys: Arc<tls::quic::Keys>,
    direction: Direction,
}

impl InitialKey {
    fn directional(&self) -> &DirectionalKeys {
        match self.direction {
            Direction::Local => &self.keys.local,
            Direction::Remote => &self.keys.remote,
        }
    }
}

impl Holder<dyn tls::quic::PacketKey> for InitialKey {
    fn key(&self) -> &(dyn tls::quic::PacketKey + 'static) {
        &*self.directional().packet
    }
}

impl Holder<dyn HeaderProtectionKey> for InitialKey {
    fn key(&self) -> &(dyn HeaderProtectionKey + 'static) {
        &*self.directional().header
    }
}

/// The secrets of key updates. Each derivation replaces them by those of the next update.
pub(super) type UpdateSecrets = Mutex<Secrets>;

/// The keys of payloads after a key update. They are derived when the first packet uses them (RFC 9001, section 6.3): most
/// connections end before.
pub(super) struct Generation {
    secrets: Arc<UpdateSecrets>,
    keys: OnceLock<PacketKeySet>,
}

impl Generation {
    /// The keys of the generation before have to be derived by then.
    pub(super) fn new(secrets: &Arc<UpdateSecrets>) -> Self {
        Self { secrets: Arc::clone(secrets), keys: OnceLock::new() }
    }

    /// Returns the keys, and derives them first if nothing has used them.
    pub(super) fn keys(&self) -> &PacketKeySet {
        self.keys.get_or_init(|| self.secrets.lock().unwrap_or_else(PoisonError::into_inner).next_packet_keys())
    }
}

/// A key of a generation.
struct LaterKey {
    generation: Arc<Generation>,
    direction: Direction,
}

impl Holder<dyn tls::quic::PacketKey> for LaterKey {
    fn key(&self) -> &(dyn tls::quic::PacketKey + 'static) {
        let keys = self.generation.keys();
        match self.direction {
            Direction::Local => &*keys.local,
            Direction::Remote => &*keys.remote,
        }
    }
}

/// The key of a direction that protects payloads.
struct PacketKey<H>(H);

impl<H: Holder<dyn tls::quic::PacketKey>> crypto::PacketKey for PacketKey<H> {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header: usize) {
        let key = self.0.key();
        let (header, sealed) = bytes.split_at_mut(header);
        let (payload, room) = sealed.split_at_mut(sealed.len() - key.tag_len());
        match key.encrypt_in_place(packet, header, payload) {
            Ok(tag) => room.copy_from_slice(tag.as_ref()),
            // Only a packet of an impossible size fails; it must not leave in plain text.
            Err(_) => payload.fill(0),
        }
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let plain = self.0.key().decrypt_in_place(packet, header, payload.as_mut()).map_err(|_| CryptoError)?;
        let length = length_without_padding(plain);
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.key().tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.key().confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.key().integrity_limit()
    }
}

/// The key of a direction that protects headers.
struct HeaderKey<H>(H);

/// Splits a packet into its first byte, its number, and the sample. `None`: it is too short.
fn parts(packet: &mut [u8], number_at: usize, sample: usize) -> Option<(&mut u8, &mut [u8], &[u8])> {
    let (header, rest) = packet.split_at_mut_checked(number_at.checked_add(NUMBER)?)?;
    let (first, header) = header.split_first_mut()?;
    Some((first, header.get_mut(number_at.checked_sub(1)?..)?, rest.get(..sample)?))
}

impl<H: Holder<dyn HeaderProtectionKey>> crypto::HeaderKey for HeaderKey<H> {
    fn decrypt(&self, number_at: usize, packet: &mut [u8]) {
        let key = self.0.key();
        if let Some((first, number, sample)) = parts(packet, number_at, key.sample_len()) {
            // An unprotected header fails the authentication of its packet.
            let _ = key.decrypt_in_place(sample, first, number);
        }
    }

    fn encrypt(&self, number_at: usize, packet: &mut [u8]) {
        let key = self.0.key();
        if let Some((first, number, sample)) = parts(packet, number_at, key.sample_len()) {
            // The peer drops a packet whose header it cannot read.
            let _ = key.encrypt_in_place(sample, first, number);
        }
    }

    fn sample_size(&self) -> usize {
        self.0.key().sample_len()
    }
}

/// Converts the keys of one direction.
pub(super) fn directional(keys: DirectionalKeys) -> (Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>) {
    (Box::new(HeaderKey(keys.header)), Box::new(PacketKey(keys.packet)))
}

/// Converts the keys of both directions.
pub(super) fn pair(keys: tls::quic::Keys) -> Keys {
    let ((local_header, local_packet), (remote_header, remote_packet)) =
        (directional(keys.local), directional(keys.remote));
    Keys {
        header: KeyPair { local: local_header, remote: remote_header },
        packet: KeyPair { local: local_packet, remote: remote_packet },
    }
}

/// Converts the keys of Initial packets.
pub(super) fn initial_pair(keys: &Arc<tls::quic::Keys>) -> Keys {
    let key = |direction| InitialKey { keys: Arc::clone(keys), direction };
    Keys {
        header: KeyPair {
            local: Box::new(HeaderKey(key(Direction::Local))),
            remote: Box::new(HeaderKey(key(Direction::Remote))),
        },
        packet: KeyPair {
            local: Box::new(PacketKey(key(Direction::Local))),
            remote: Box::new(PacketKey(key(Direction::Remote))),
        },
    }
}

/// Returns the keys of payloads of a generation.
pub(super) fn packet_pair(generation: &Arc<Generation>) -> KeyPair<Box<dyn crypto::PacketKey>> {
    let key = |direction| Box::new(PacketKey(LaterKey { generation: Arc::clone(generation), direction }));
    KeyPair { local: key(Direction::Local), remote: key(Direction::Remote) }
}

/// Keys that open nothing and send nothing readable: of a cipher that is missing.
struct Missing;

impl crypto::PacketKey for Missing {
    fn encrypt(&self, _: u64, bytes: &mut [u8], header: usize) {
        bytes[header..].fill(0);
    }

    fn decrypt(&self, _: u64, _: &[u8], _: &mut BytesMut) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn tag_len(&self) -> usize {
        SAMPLE
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        0
    }
}

impl crypto::HeaderKey for Missing {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

/// Returns keys that open nothing.
pub(super) fn none() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Missing), remote: Box::new(Missing) },
        packet: KeyPair { local: Box::new(Missing), remote: Box::new(Missing) },
    }
}
