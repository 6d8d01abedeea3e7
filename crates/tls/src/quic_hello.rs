//! The ClientHello of a QUIC connection that is passed through: it is read from the client's first Initial packets, whose keys
//! anyone on the path can derive (RFC 9001, section 5.2; RFC 9369, section 3.3). Must never take part in the handshake, nor hold
//! more than [`LARGEST`] bytes of it.

use rustls::Side;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Version};
use wire::h3::varint;
use wire::quic::{Initial, VERSION_2, initials};

/// Maximum length of a ClientHello in bytes. Those with post-quantum key shares have about two thousand.
pub const LARGEST: usize = 8 * 1024;
/// Minimum length of a datagram with an Initial packet of a client (RFC 9000, section 14.1).
const LEAST_DATAGRAM: usize = 1_200;
/// Minimum length of the destination ID of a client's first Initial packet (RFC 9000, section 7.2).
const LEAST_ID: usize = 8;
/// Bytes of a packet from the beginning of its number to its sample (RFC 9001, section 5.4.2).
const NUMBER: usize = 4;
/// Length of a handshake message's header in bytes: type and length.
const HEADER: usize = 4;
/// The type of a ClientHello.
const CLIENT_HELLO: u8 = 1;

/// Result of adding a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The ClientHello is complete. It is returned in a record of TLS, as over TCP.
    Whole(Vec<u8>),
    /// More datagrams are needed.
    Part,
    /// No further datagram completes it: the client violates the protocol, or the ClientHello is too large.
    Broken,
}

/// Collects the ClientHello of one connection.
#[derive(Default)]
pub struct HelloCollector {
    /// The connection, once its first Initial packet has been decrypted.
    connection: Option<KnownConnection>,
    /// Bytes of the handshake by their offset; `None`: not received yet.
    bytes: Vec<Option<u8>>,
    /// Number of bytes at the beginning without a gap.
    contiguous: usize,
}

struct KnownConnection {
    version: u32,
    destination: Vec<u8>,
    keys: DirectionalKeys,
}

/// The CRYPTO frames of a packet contradict earlier ones, or another frame is not permitted.
struct Violation;

impl HelloCollector {
    /// Adds a datagram of the client. One without an Initial packet that can be decrypted changes nothing, unless it is the first
    /// one that should have it.
    pub fn add(&mut self, datagram: &[u8]) -> Progress {
        let mut has_initial = false;
        for initial in initials(datagram) {
            has_initial = true;
            let Some(payload) = (datagram.len() >= LEAST_DATAGRAM).then(|| self.decrypt(&initial)).flatten() else {
                // To derive keys is expensive: one attempt for a datagram. All of its packets have one ID (RFC 9000, section 12.2).
                if self.connection.is_none() {
                    return Progress::Broken;
                }
                continue;
            };
            if self.read_frames(&payload).is_err() {
                return Progress::Broken;
            }
        }
        if has_initial && self.connection.is_none() {
            return Progress::Broken;
        }
        self.progress()
    }

    /// Decrypts a packet. `None`: it belongs to another connection, or was forged.
    fn decrypt(&mut self, initial: &Initial<'_>) -> Option<Vec<u8>> {
        let header = &initial.header;
        if let Some(known) = &self.connection {
            let is_meant = (known.version, &known.destination[..]) == (header.version, header.destination);
            return is_meant.then(|| open(&known.keys, initial)).flatten();
        }
        if header.destination.len() < LEAST_ID {
            return None;
        }
        let keys = client_keys(header.destination, header.version)?;
        let payload = open(&keys, initial)?;
        self.connection =
            Some(KnownConnection { version: header.version, destination: header.destination.to_vec(), keys });
        Some(payload)
    }

    /// Reads the frames that a client's Initial packet may have (RFC 9000, section 12.4).
    fn read_frames(&mut self, payload: &[u8]) -> Result<(), Violation> {
        let mut rest = payload;
        while !rest.is_empty() {
            let kind = integer(&mut rest)?;
            match kind {
                // PADDING, PING.
                0x00 | 0x01 => {}
                // ACK, the second kind with counts of ECN.
                0x02 | 0x03 => skip_ack(&mut rest, kind == 0x03)?,
                // CRYPTO.
                0x06 => {
                    let (offset, length) = (integer(&mut rest)?, integer(&mut rest)?);
                    let length = usize::try_from(length).map_err(|_| Violation)?;
                    let (content, after) = rest.split_at_checked(length).ok_or(Violation)?;
                    rest = after;
                    self.insert(usize::try_from(offset).map_err(|_| Violation)?, content)?;
                }
                _ => return Err(Violation),
            }
        }
        Ok(())
    }

    /// Adds bytes of the handshake at an offset. Those that were received before have to be the same.
    fn insert(&mut self, offset: usize, content: &[u8]) -> Result<(), Violation> {
        let end = offset.checked_add(content.len()).filter(|end| *end <= LARGEST).ok_or(Violation)?;
        if self.bytes.len() < end {
            self.bytes.resize(end, None);
        }
        for (place, byte) in self.bytes[offset..end].iter_mut().zip(content) {
            if *place.get_or_insert(*byte) != *byte {
                return Err(Violation);
            }
        }
        Ok(())
    }

    fn progress(&mut self) -> Progress {
        let more = self.bytes[self.contiguous..].iter().take_while(|byte| byte.is_some()).count();
        self.contiguous += more;
        let received = || self.bytes[..self.contiguous].iter().flatten().copied();
        let head: Vec<u8> = received().take(HEADER).collect();
        if head.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Progress::Broken;
        }
        let Some([_, high, middle, low]) = head.first_chunk::<HEADER>() else { return Progress::Part };
        let length = HEADER + u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        if length > LARGEST {
            return Progress::Broken;
        }
        if self.contiguous < length {
            return Progress::Part;
        }
        // `LARGEST` is less than a record holds.
        let [high, low] = (length as u16).to_be_bytes();
        Progress::Whole([0x16, 3, 1, high, low].into_iter().chain(received().take(length)).collect())
    }
}

/// Returns the keys of packets that a client sends before it has an answer. `None`: the cipher has no keys for QUIC.
fn client_keys(destination: &[u8], version: u32) -> Option<DirectionalKeys> {
    #[cfg(test)]
    tests::DERIVATIONS.set(tests::DERIVATIONS.get() + 1);
    let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
    let version = if version == VERSION_2 { Version::V2 } else { Version::V1 };
    Some(suite.keys(destination, Side::Server, version).remote)
}

/// Removes the protection of a packet. Returns its payload.
fn open(keys: &DirectionalKeys, initial: &Initial<'_>) -> Option<Vec<u8>> {
    let mut packet = initial.packet.to_vec();
    let (head, rest) = packet.split_at_mut_checked(initial.number_at)?;
    let (number, behind) = rest.split_at_mut_checked(NUMBER)?;
    let sample = behind.get(..keys.header.sample_len())?;
    let first = head.first_mut()?;
    keys.header.decrypt_in_place(sample, first, number).ok()?;
    let length = usize::from(*first & 3) + 1;
    // The first packets have small numbers: nothing is missing of them.
    let number = number.iter().take(length).fold(0, |number, byte| number << 8 | u64::from(*byte));
    let (header, payload) = packet.split_at_mut(initial.number_at + length);
    let length = keys.packet.decrypt_in_place(number, header, payload).ok()?.len();
    Some(payload.get(..length)?.to_vec())
}

fn integer(rest: &mut &[u8]) -> Result<u64, Violation> {
    varint::read(rest).ok_or(Violation)
}

/// Skips the fields of an ACK frame. Their number is bounded by the bytes that are left.
fn skip_ack(rest: &mut &[u8], has_counts: bool) -> Result<(), Violation> {
    integer(rest)?;
    integer(rest)?;
    let ranges = integer(rest)?;
    let fields = ranges.saturating_mul(2).saturating_add(if has_counts { 4 } else { 1 });
    (0..fields).try_for_each(|_| integer(rest).map(drop))
}

#[cfg(test)]
mod tests;
