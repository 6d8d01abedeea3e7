//! A cache of verified passwords, so that the slow verification is done once and not for every request. Must never hold
//! a password, and never more than a bounded number of proofs.

use expression::crypt::PasswordHash;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::mem;
use std::sync::{PoisonError, RwLock};

/// The digest of a password hash and a verified password under a secret key.
pub type Proof = [u8; 32];

/// Maximum number of proofs of one generation; there are two.
const MOST: usize = 2048;

/// Verified passwords.
#[derive(Debug)]
pub struct Passwords {
    key: [u8; 8],
    known: RwLock<[HashSet<Proof>; 2]>,
}

impl Passwords {
    /// Creates an empty cache; `random` keys the proofs.
    pub fn new(random: u64) -> Self {
        Self { key: random.to_ne_bytes(), known: RwLock::default() }
    }

    /// Computes the proof of a password.
    pub fn proof(&self, hidden: &PasswordHash, password: &[u8]) -> Proof {
        let text = hidden.text().as_bytes();
        let start = Sha256::new().chain_update(self.key).chain_update((text.len() as u64).to_ne_bytes());
        start.chain_update(text).chain_update(password).finalize().into()
    }

    /// Whether the password was verified recently: not too many others were since.
    pub fn has(&self, proof: &Proof) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|generation| generation.contains(proof))
    }

    /// Records a verified password.
    pub fn learn(&self, proof: Proof) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let [young, old] = &mut *known;
        if young.len() >= MOST {
            *old = mem::take(young);
        }
        young.insert(proof);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_learnt_is_known_and_bounded() {
        let passwords = Passwords::new(7);
        let hidden = PasswordHash::parse("abJnggxhB/yWI").expect("a form");
        let first = passwords.proof(&hidden, b"password");
        assert!(!passwords.has(&first) && first != passwords.proof(&hidden, b"passwor"));
        assert_ne!(first, Passwords::new(8).proof(&hidden, b"password"));
        passwords.learn(first);
        assert!(passwords.has(&first));
        for number in 0..3 * MOST as u64 {
            passwords.learn(passwords.proof(&hidden, &number.to_ne_bytes()));
        }
        assert!(!passwords.has(&first));
        let known = passwords.known.read().expect("no panic");
        assert!(known.iter().all(|generation| generation.len() <= MOST));
    }
}
