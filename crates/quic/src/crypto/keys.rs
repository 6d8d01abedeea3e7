//! The keys of rustls as the library needs them.

use bytes::BytesMut;
use quinn_proto::crypto::{self, CryptoError, KeyPair, Keys};
use tls::quic::{DirectionalKeys, HeaderProtectionKey, PacketKeySet};

use super::padding::length_without_padding;

/// Bytes of a packet from the beginning of its number to its sample (RFC 9001, section 5.4.2).
const NUMBER: usize = 4;
/// Length of the sample in bytes, and of the tag, of all ciphers of TLS 1.3.
const SAMPLE: usize = 16;

/// The key of a direction that protects payloads.
struct PacketKey(Box<dyn tls::quic::PacketKey>);

impl crypto::PacketKey for PacketKey {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header: usize) {
        let (header, sealed) = bytes.split_at_mut(header);
        let (payload, room) = sealed.split_at_mut(sealed.len() - self.0.tag_len());
        match self.0.encrypt_in_place(packet, header, payload) {
            Ok(tag) => room.copy_from_slice(tag.as_ref()),
            // Only a packet of an impossible size fails; it must not leave in plain text.
            Err(_) => payload.fill(0),
        }
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let plain = self.0.decrypt_in_place(packet, header, payload.as_mut()).map_err(|_| CryptoError)?;
        let length = length_without_padding(plain);
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// The key of a direction that protects headers.
struct HeaderKey(Box<dyn HeaderProtectionKey>);

/// Splits a packet into its first byte, its number, and the sample. `None`: it is too short.
fn parts(packet: &mut [u8], number_at: usize, sample: usize) -> Option<(&mut u8, &mut [u8], &[u8])> {
    let (header, rest) = packet.split_at_mut_checked(number_at.checked_add(NUMBER)?)?;
    let (first, header) = header.split_first_mut()?;
    Some((first, header.get_mut(number_at.checked_sub(1)?..)?, rest.get(..sample)?))
}

impl crypto::HeaderKey for HeaderKey {
    fn decrypt(&self, number_at: usize, packet: &mut [u8]) {
        if let Some((first, number, sample)) = parts(packet, number_at, self.0.sample_len()) {
            // An unprotected header fails the authentication of its packet.
            let _ = self.0.decrypt_in_place(sample, first, number);
        }
    }

    fn encrypt(&self, number_at: usize, packet: &mut [u8]) {
        if let Some((first, number, sample)) = parts(packet, number_at, self.0.sample_len()) {
            // The peer drops a packet whose header it cannot read.
            let _ = self.0.encrypt_in_place(sample, first, number);
        }
    }

    fn sample_size(&self) -> usize {
        self.0.sample_len()
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

/// Converts the keys of payloads of both directions.
pub(super) fn packet_pair(keys: PacketKeySet) -> KeyPair<Box<dyn crypto::PacketKey>> {
    KeyPair { local: Box::new(PacketKey(keys.local)), remote: Box::new(PacketKey(keys.remote)) }
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
