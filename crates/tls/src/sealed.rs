//! Encryption of private keys that several nodes share in a store. A sealed value can be opened only under the name under which it
//! was sealed. Must never print a key.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use aws_lc_rs::{hkdf, hmac};

/// First byte of a sealed value: the format's version.
const VERSION: u8 = 1;

/// Key of sealed values, derived from a secret that all nodes have (`cluster-secret`).
#[derive(Clone)]
pub struct SealingKey {
    cipher: Arc<LessSafeKey>,
    /// Digest of the secret, to compare keys.
    digest: [u8; 32],
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey")
    }
}

impl PartialEq for SealingKey {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// Length of a derived key.
struct Length;

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        AES_256_GCM.key_len()
    }
}

impl SealingKey {
    /// Derives the key from a secret.
    ///
    /// # Errors
    /// The library rejects the key; not expected.
    pub fn derived(secret: &[u8]) -> Result<Self, String> {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"weir store").extract(secret);
        let mut key = [0; 32];
        let filled = master.expand(&[b"seal"], Length).and_then(|output| output.fill(&mut key));
        let cipher = filled.and_then(|()| UnboundKey::new(&AES_256_GCM, &key));
        let cipher = cipher.map_err(|_| "cannot derive a key".to_owned())?;
        let mut digest = [0; 32];
        digest.copy_from_slice(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"weir store"), secret).as_ref());
        Ok(Self { cipher: Arc::new(LessSafeKey::new(cipher)), digest })
    }

    /// Encrypts a text under a name: version, nonce, ciphertext, tag.
    ///
    /// # Errors
    /// The random number generator fails.
    pub fn seal(&self, name: &str, text: &[u8]) -> Result<Vec<u8>, String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| "no random numbers".to_owned())?;
        let mut sealed = text.to_vec();
        let aad = Aad::from(name.as_bytes());
        let appended = self.cipher.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed);
        appended.map_err(|_| "cannot encrypt".to_owned())?;
        Ok([&[VERSION], &nonce[..], &sealed].concat())
    }

    /// Decrypts a value that was sealed under a name. `None`: another name, another secret, or no sealed value.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.strip_prefix(&[VERSION])?.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let aad = Aad::from(name.as_bytes());
        let length = self.cipher.open_in_place(Nonce::assume_unique_for_key(*nonce), aad, &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_is_opened_under_its_name_and_secret_only() {
        let key = SealingKey::derived(b"secret").unwrap();
        let sealed = key.seal("a", b"text").unwrap();
        assert_eq!(key.open("a", &sealed).as_deref(), Some(&b"text"[..]));
        assert_eq!(key.open("b", &sealed), None);
        let other = SealingKey::derived(b"other").unwrap();
        assert_eq!((other.open("a", &sealed), other == key), (None, false));
        assert_eq!(SealingKey::derived(b"secret").unwrap(), key);
        assert_ne!(key.seal("a", b"text").unwrap(), sealed, "the nonce is fresh");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(key.open("a", &damaged), None, "byte {at}");
            assert_eq!(key.open("a", &sealed[..at]), None, "{at} bytes");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        assert_eq!(format!("{:?}", SealingKey::derived(b"secret").unwrap()), "SealingKey");
    }
}
