//! The keys of stateless resets and of address validation tokens (RFC 9000, sections 8.1 and 10.3). Must never be printed.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac};
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};

/// Size of a derived key in bytes.
const KEY: usize = 32;

/// The keys of an endpoint.
#[derive(Clone)]
pub struct Secrets {
    pub(crate) reset: Arc<dyn HmacKey>,
    pub(crate) tokens: Arc<dyn HandshakeTokenKey>,
    are_shared: bool,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("are_shared", &self.are_shared).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Derives the keys from a secret that other processes have as well (`cluster-secret`).
    pub fn of_cluster(secret: &[u8]) -> Self {
        Self::derived(secret, true)
    }

    /// Derives the keys from random bytes.
    pub fn random(seed: [u8; 32]) -> Self {
        Self::derived(&seed, false)
    }

    fn derived(secret: &[u8], are_shared: bool) -> Self {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"weir quic").extract(secret);
        let reset = hmac::Key::new(hmac::HMAC_SHA256, &expanded(&master, b"stateless reset"));
        let tokens = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&expanded(&master, b"token"));
        Self { reset: Arc::new(ResetKey(reset)), tokens: Arc::new(TokenKey(tokens)), are_shared }
    }

    /// Whether other processes have the same keys, so that a token of one is valid for all.
    pub fn are_shared(&self) -> bool {
        self.are_shared
    }
}

/// Derives a key for one purpose.
fn expanded(key: &hkdf::Prk, purpose: &[u8]) -> [u8; KEY] {
    let mut derived = [0; KEY];
    let purposes = [purpose];
    // The output is as long as the digest, which is always permitted.
    let filled = key.expand(&purposes, hkdf::HKDF_SHA256).and_then(|output| output.fill(&mut derived));
    debug_assert!(filled.is_ok(), "the length is permitted");
    derived
}

/// Signs connection ids: the result is the token of their stateless reset.
struct ResetKey(hmac::Key);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        let signature = hmac::sign(&self.0, data);
        for (to, from) in out.iter_mut().zip(signature.as_ref()) {
            *to = *from;
        }
    }

    fn signature_len(&self) -> usize {
        KEY
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        hmac::verify(&self.0, data, signature).map_err(|_| CryptoError)
    }
}

/// Derives a key for each token.
struct TokenKey(hkdf::Prk);

impl HandshakeTokenKey for TokenKey {
    fn aead_from_hkdf(&self, random: &[u8]) -> Box<dyn AeadKey> {
        let key = UnboundKey::new(&AES_256_GCM, &expanded(&self.0, random));
        Box::new(TokenCipher(key.ok().map(LessSafeKey::new)))
    }
}

/// Seals one token. `None`: no key could be made, and nothing is sealed or opened.
struct TokenCipher(Option<LessSafeKey>);

/// The key is used once.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

impl AeadKey for TokenCipher {
    fn seal(&self, data: &mut Vec<u8>, associated: &[u8]) -> Result<(), CryptoError> {
        let key = self.0.as_ref().ok_or(CryptoError)?;
        key.seal_in_place_append_tag(nonce(), Aad::from(associated), data).map_err(|_| CryptoError)
    }

    fn open<'a>(&self, data: &'a mut [u8], associated: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let key = self.0.as_ref().ok_or(CryptoError)?;
        key.open_in_place(nonce(), Aad::from(associated), data).map_err(|_| CryptoError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(secrets: &Secrets, random: &[u8]) -> Vec<u8> {
        let mut token = b"an address".to_vec();
        assert!(secrets.tokens.aead_from_hkdf(random).seal(&mut token, &[]).is_ok());
        token
    }

    fn opens(secrets: &Secrets, random: &[u8], token: &[u8]) -> bool {
        let mut token = token.to_vec();
        let opened = secrets.tokens.aead_from_hkdf(random).open(&mut token, &[]).map(|plain| plain.to_vec());
        opened.is_ok_and(|plain| plain == b"an address")
    }

    #[test]
    fn keys_depend_on_the_secret_alone() {
        let (own, same, other) =
            (Secrets::of_cluster(b"one"), Secrets::of_cluster(b"one"), Secrets::of_cluster(b"two"));
        let token = sealed(&own, &[1; 16]);
        assert!(opens(&same, &[1; 16], &token));
        assert!(!opens(&other, &[1; 16], &token));
        assert!(!opens(&own, &[2; 16], &token));
        let signature = |secrets: &Secrets| {
            let mut out = [0; 32];
            secrets.reset.sign(b"an id", &mut out);
            out
        };
        assert_eq!(signature(&own), signature(&same));
        assert_ne!(signature(&own), signature(&other));
        assert!(
            own.reset.verify(b"an id", &signature(&own)).is_ok() && own.reset.verify(b"id", &signature(&own)).is_err()
        );
        assert!(own.are_shared() && !Secrets::random([0; 32]).are_shared());
    }

    #[test]
    fn a_changed_token_is_refused() {
        let own = Secrets::random([7; 32]);
        let token = sealed(&own, &[1; 16]);
        for at in 0..token.len() {
            let mut changed = token.clone();
            changed[at] ^= 1;
            assert!(!opens(&own, &[1; 16], &changed), "byte {at}");
        }
    }
}
