//! Records (RFC 8446, section 5; RFC 5246, section 6.2): one direction of a connection with established keys. Seals
//! plain bytes into records, and opens records in place. Must never interpret the content of a record.

use std::ops::Range;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;

/// Size of a record's header in bytes: its type, version and length.
pub const HEADER: usize = 5;
/// Maximum number of plain bytes in a record.
pub const LARGEST: usize = 16_384;
/// Maximum number of bytes after the header: RFC 8446 permits 256 more than the plain ones, RFC 5246 2,048. AEAD
/// ciphers need less.
const LARGEST_SEALED: usize = LARGEST + 256;
/// Maximum size of a whole record in bytes.
pub const LARGEST_RECORD: usize = HEADER + LARGEST_SEALED;
/// Maximum number of bytes that sealing adds to a record: TLS 1.2 with GCM includes a nonce of 8 bytes.
pub const OVERHEAD: usize = HEADER + EXPLICIT_NONCE + TAG + 1;
const TAG: usize = 16;
const EXPLICIT_NONCE: usize = 8;
/// Maximum number of records under one key: as many are safe with AES-GCM (RFC 8446, section 5.5).
const MOST_RECORDS: u64 = 1 << 24;

/// The content type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// `change_cipher_spec`, without a meaning in TLS 1.3.
    ChangeCipherSpec,
    /// An alert.
    Alert,
    /// Handshake and post-handshake messages.
    Handshake,
    /// Application data.
    Data,
}

impl Content {
    const fn number(self) -> u8 {
        match self {
            Self::ChangeCipherSpec => 20,
            Self::Alert => 21,
            Self::Handshake => 22,
            Self::Data => 23,
        }
    }

    const fn of(number: u8) -> Option<Self> {
        match number {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::Data),
            _ => None,
        }
    }
}

/// Why a record was refused, by its alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// `unexpected_message`: of no known type, or out of place.
    Unexpected,
    /// `bad_record_mac`: it was not sealed with the key.
    BadMac,
    /// `record_overflow`: too long.
    Overflow,
    /// `protocol_version`: its header is not that of TLS.
    Version,
}

/// The construction of nonces, and the additions to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// TLS 1.3: the content type is encrypted.
    Inner,
    /// TLS 1.2 with GCM: part of the nonce is sent explicitly (RFC 5288).
    ExplicitNonce,
    /// TLS 1.2 with ChaCha20-Poly1305 (RFC 7905).
    Implicit,
}

/// The keys of one direction.
pub struct Protection {
    key: LessSafeKey,
    iv: [u8; 12],
    form: Form,
    sequence: u64,
    is_limited: bool,
}

impl Protection {
    /// Creates the keys negotiated by a handshake, starting at a sequence number. `None`: the cipher is not supported.
    pub fn new(secrets: &ConnectionTrafficSecrets, sequence: u64, is_tls13: bool) -> Option<Self> {
        let of = |algorithm: &'static Algorithm, key: &[u8], iv: &[u8], form: Form| {
            let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
            let is_limited = form == Form::Inner && algorithm != &CHACHA20_POLY1305;
            Some(Self { key, iv: iv.try_into().ok()?, form, sequence, is_limited })
        };
        let (gcm, chacha) = match is_tls13 {
            true => (Form::Inner, Form::Inner),
            false => (Form::ExplicitNonce, Form::Implicit),
        };
        match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => of(&AES_128_GCM, key.as_ref(), iv.as_ref(), gcm),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => of(&AES_256_GCM, key.as_ref(), iv.as_ref(), gcm),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                of(&CHACHA20_POLY1305, key.as_ref(), iv.as_ref(), chacha)
            }
            _ => None,
        }
    }

    /// Whether the key has sealed nearly the maximum number of records.
    pub fn is_worn(&self) -> bool {
        self.is_limited && self.sequence >= MOST_RECORDS - 16
    }

    /// Whether post-handshake messages are those of TLS 1.3.
    pub fn is_tls13(&self) -> bool {
        self.form == Form::Inner
    }

    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// Calls `work` with the additional authenticated data of a record: in TLS 1.3 its header, in TLS 1.2 its sequence
    /// number, type, version and plain length.
    fn with_associated<T>(&self, content: Content, plain: usize, work: impl FnOnce(&[u8]) -> T) -> T {
        if self.form == Form::Inner {
            let [high, low] = length(plain + 1 + TAG);
            return work(&[Content::Data.number(), 3, 3, high, low]);
        }
        let mut associated = [0; 13];
        associated[..8].copy_from_slice(&self.sequence.to_be_bytes());
        let [high, low] = length(plain);
        associated[8..].copy_from_slice(&[content.number(), 3, 3, high, low]);
        work(&associated)
    }

    /// Appends one record that carries `pieces`, at most [`LARGEST`] bytes in total. False: nothing was appended,
    /// because the key must no longer be used.
    pub fn seal(&mut self, content: Content, pieces: [&[u8]; 2], out: &mut Vec<u8>) -> bool {
        let plain = pieces[0].len() + pieces[1].len();
        debug_assert!(plain <= LARGEST, "a record carries no more");
        let Some(next) = self.sequence.checked_add(1) else { return false };
        let nonce = self.nonce();
        let (outer, explicit, inner) = match self.form {
            Form::Inner => (Content::Data, &[][..], &[content.number()][..]),
            Form::ExplicitNonce => (content, &nonce[4..], &[][..]),
            Form::Implicit => (content, &[][..], &[][..]),
        };
        let begin = out.len();
        let [high, low] = length(explicit.len() + plain + inner.len() + TAG);
        out.extend_from_slice(&[outer.number(), 3, 3, high, low]);
        out.extend_from_slice(explicit);
        let from = out.len();
        out.extend_from_slice(pieces[0]);
        out.extend_from_slice(pieces[1]);
        out.extend_from_slice(inner);
        let sealed = self.with_associated(content, plain, |associated| {
            let nonce = Nonce::assume_unique_for_key(nonce);
            self.key.seal_in_place_separate_tag(nonce, Aad::from(associated), &mut out[from..])
        });
        match sealed {
            Ok(tag) => {
                out.extend_from_slice(tag.as_ref());
                self.sequence = next;
                true
            }
            Err(_) => {
                out.truncate(begin);
                false
            }
        }
    }

    /// Opens a complete record in place. Returns its content type, and the range of its plain bytes.
    ///
    /// # Errors
    /// The connection must be ended with the alert.
    pub fn open(&mut self, record: &mut [u8]) -> Result<(Content, Range<usize>), RecordError> {
        let outer = Content::of(record[0]).ok_or(RecordError::Unexpected)?;
        if self.form == Form::Inner && outer != Content::Data {
            // A peer in compatibility mode may send a change_cipher_spec, but not after the handshake (RFC 8446,
            // section 5).
            return Err(RecordError::Unexpected);
        }
        let from = HEADER + if self.form == Form::ExplicitNonce { EXPLICIT_NONCE } else { 0 };
        let plain = record.len().checked_sub(from + TAG).ok_or(RecordError::BadMac)?;
        let next = self.sequence.checked_add(1).ok_or(RecordError::Unexpected)?;
        let mut nonce = self.nonce();
        if self.form == Form::ExplicitNonce {
            nonce[..4].copy_from_slice(&self.iv[..4]);
            nonce[4..].copy_from_slice(&record[HEADER..from]);
        }
        let of_content =
            if self.form == Form::Inner { plain.checked_sub(1).ok_or(RecordError::BadMac)? } else { plain };
        self.with_associated(outer, of_content, |associated| {
            let nonce = Nonce::assume_unique_for_key(nonce);
            self.key.open_in_place(nonce, Aad::from(associated), &mut record[from..]).map(|_| ())
        })
        .map_err(|_| RecordError::BadMac)?;
        self.sequence = next;
        let mut end = from + plain;
        let mut content = outer;
        if self.form == Form::Inner {
            // The content type is the last byte that is not padding (RFC 8446, section 5.4).
            let last = record[from..end].iter().rposition(|byte| *byte != 0).ok_or(RecordError::Unexpected)?;
            content = Content::of(record[from + last]).ok_or(RecordError::Unexpected)?;
            end = from + last;
        }
        if end - from > LARGEST {
            return Err(RecordError::Overflow);
        }
        Ok((content, from..end))
    }
}

/// Returns the length of the record at the front of `bytes`, including its header. `None`: its header is incomplete.
///
/// # Errors
/// It is not a record, or too long.
pub fn record_length(bytes: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    if header[1] != 3 {
        return Err(RecordError::Version);
    }
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if length > LARGEST_SEALED { Err(RecordError::Overflow) } else { Ok(Some(HEADER + length)) }
}

/// Encodes a length in two bytes. No record is longer.
fn length(bytes: usize) -> [u8; 2] {
    (bytes as u16).to_be_bytes()
}
