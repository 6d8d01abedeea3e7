//! Session ticket keys from a file (configuration manual, "tls-ticket-keys"): three of them, shared by all threads and
//! rotated. Must never print a key except to authorized callers.

use std::sync::{PoisonError, RwLock};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;

/// Number of keys in use at a time; the penultimate one seals.
pub const KEYS: usize = 3;
const SEALING: usize = KEYS - 2;
/// Size of a key's name in bytes.
const NAME: usize = 16;
const SALT: usize = 16;
const TAG: usize = 16;

/// The keys from a file.
pub struct TicketKeys {
    /// The file's name in the configuration.
    pub name: Box<str>,
    /// Oldest first.
    keys: RwLock<[Key; KEYS]>,
}

/// A key: 48 or 80 bytes, the first 16 of which are its name.
#[derive(Clone, PartialEq, Eq)]
struct Key(Box<[u8]>);

/// Why a text has no valid keys, with HAProxy's message after the file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The line with that number is not valid Base64.
    Encoding(usize),
    /// The key in the line with that number has the wrong size.
    Size(usize),
    /// There are fewer than three.
    Few,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Encoding(line) => write!(f, "unable to decode base64 key on line {line}"),
            Self::Size(line) => write!(f, "wrong sized key on line {line}"),
            Self::Few => write!(f, "please supply at least {KEYS} keys in the tls-tickets-file"),
        }
    }
}

impl std::fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketKeys").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Keys are equal if they are from the same file and open the same tickets.
impl PartialEq for TicketKeys {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.keys() == other.keys()
    }
}

impl Eq for TicketKeys {}

fn is_size(length: usize) -> bool {
    matches!(length, 48 | 80)
}

impl TicketKeys {
    /// Takes the last three keys, in order.
    ///
    /// # Errors
    /// There are fewer, or their sizes differ. Lines are counted from 1.
    pub fn new(name: &str, decoded: impl IntoIterator<Item = Option<Vec<u8>>>) -> Result<Self, Wrong> {
        let mut all: Vec<Key> = Vec::new();
        for (place, key) in decoded.into_iter().enumerate() {
            let key = key.ok_or(Wrong::Encoding(place + 1))?;
            let wanted = all.first().map(|first| first.0.len());
            if !is_size(key.len()) || wanted.is_some_and(|wanted| wanted != key.len()) {
                return Err(Wrong::Size(place + 1));
            }
            if all.len() == KEYS {
                all.remove(0);
            }
            all.push(Key(key.into_boxed_slice()));
        }
        let keys: [Key; KEYS] = all.try_into().map_err(|_| Wrong::Few)?;
        Ok(Self { name: name.into(), keys: RwLock::new(keys) })
    }

    fn keys(&self) -> [Key; KEYS] {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the keys, oldest first.
    pub fn secrets(&self) -> [Box<[u8]>; KEYS] {
        self.keys().map(|key| key.0)
    }

    /// Adds a key after the others, and removes the oldest. False: its size differs from theirs.
    pub fn rotate(&self, key: &[u8]) -> bool {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys[0].0.len() != key.len() {
            return false;
        }
        keys.rotate_left(1);
        keys[KEYS - 1] = Key(key.into());
        true
    }

    /// Seals a ticket: the name of the key, a salt, the sealed bytes.
    pub(crate) fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.keys.read().unwrap_or_else(PoisonError::into_inner)[SEALING].clone();
        let mut salt = [0; SALT];
        aws_lc_rs::rand::fill(&mut salt).ok()?;
        let mut sealed = plain.to_vec();
        let cipher = key.cipher(&salt)?;
        // The derived key is used once.
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        cipher.seal_in_place_append_tag(nonce, Aad::from(key.name()), &mut sealed).ok()?;
        Some([key.name(), &salt, &sealed].concat())
    }

    /// Opens a ticket sealed with one of the keys.
    pub(crate) fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME)?;
        let (salt, sealed) = rest.split_at_checked(SALT)?;
        let key = self.keys().into_iter().find(|key| key.name() == name)?;
        if sealed.len() < TAG {
            return None;
        }
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        let length = key.cipher(salt)?.open_in_place(nonce, Aad::from(name), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

impl Key {
    fn name(&self) -> &[u8] {
        &self.0[..NAME]
    }

    /// Derives a separate key for every ticket, so that the number of tickets per key is not limited.
    fn cipher(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.0[NAME..]);
        let derived = hmac::sign(&secret, salt);
        Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, derived.as_ref()).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8, length: usize) -> Vec<u8> {
        vec![number; length]
    }

    fn keys(numbers: &[u8]) -> TicketKeys {
        TicketKeys::new("keys", numbers.iter().map(|number| Some(key(*number, 48)))).unwrap()
    }

    #[test]
    fn files_need_three_keys_of_one_size() {
        let of = |keys: &[Option<Vec<u8>>]| TicketKeys::new("keys", keys.iter().cloned()).err();
        let good = || Some(key(1, 80));
        assert_eq!(of(&[]), Some(Wrong::Few));
        assert_eq!(of(&[good(), good()]), Some(Wrong::Few));
        assert_eq!(of(&[good(), good(), good()]), None);
        assert_eq!(of(&[good(), None, good()]), Some(Wrong::Encoding(2)));
        assert_eq!(of(&[good(), good(), Some(key(1, 48))]), Some(Wrong::Size(3)));
        assert_eq!(of(&[Some(key(1, 47))]), Some(Wrong::Size(1)));
        assert_eq!(keys(&[1, 2, 3, 4]).secrets().map(|key| key[0]), [2, 3, 4]);
    }

    #[test]
    fn the_last_but_one_seals_and_all_open() {
        let own = keys(&[1, 2, 3]);
        let ticket = own.seal(b"a session").unwrap();
        assert_eq!(ticket[..NAME], [2; NAME]);
        assert_ne!(own.seal(b"a session").unwrap(), ticket);
        let is_open = |keys: &TicketKeys| keys.open(&ticket).as_deref() == Some(&b"a session"[..]);
        assert!(is_open(&own) && is_open(&keys(&[2, 9, 9])) && is_open(&keys(&[9, 9, 2])));
        assert!(!is_open(&keys(&[1, 3, 4])));
        assert!(own.rotate(&key(4, 48)) && is_open(&own));
        assert_eq!(own.seal(b"").unwrap()[..NAME], [3; NAME]);
        assert!(!own.rotate(&key(5, 80)) && is_open(&own));
        assert!(own.rotate(&key(5, 48)) && !is_open(&own));
    }

    #[test]
    fn a_ticket_is_whole_or_nothing() {
        let own = keys(&[1, 2, 3]);
        let ticket = own.seal(b"a session").unwrap();
        assert!((0..ticket.len()).all(|length| own.open(&ticket[..length]).is_none()));
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(own.open(&changed), None, "byte {at}");
        }
    }
}
