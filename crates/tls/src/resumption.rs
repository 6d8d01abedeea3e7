//! How sessions of clients are resumed, and for how long: by tickets under keys of this process, or remembered here. Must never
//! resume one that is older than it may be.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use rustls::TicketRotator;
use rustls::crypto::GetRandomFailed;
use rustls::pki_types::UnixTime;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};

/// Sessions of clients without tickets that are remembered, for each address: HAProxy's default for the process.
const SESSIONS: usize = 20_000;

/// How sessions are resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumption {
    /// By tickets, which clients keep; else sessions are remembered here.
    pub tickets: bool,
    /// Seconds that a session may be resumed for, at most (`tune.ssl.lifetime`).
    pub lifetime: u32,
}

impl Default for Resumption {
    /// As HAProxy.
    fn default() -> Self {
        Self { tickets: true, lifetime: 300 }
    }
}

impl Resumption {
    /// What makes tickets. Keys change twice in the lifetime and are used once more behind that, so that no ticket is good for
    /// longer.
    pub(crate) fn ticketer(self) -> Result<Option<Arc<dyn ProducesTickets>>, String> {
        if !self.tickets {
            return Ok(None);
        }
        let rotator = TicketRotator::new((self.lifetime / 2).max(1), || Ok(Box::new(Sealer::new()?)));
        rotator.map(|rotator| Some(Arc::new(rotator) as Arc<dyn ProducesTickets>)).map_err(|error| error.to_string())
    }

    /// Where sessions are remembered.
    pub(crate) fn sessions(self) -> Arc<dyn StoresServerSessions> {
        Arc::new(Sessions { lifetime: self.lifetime, cache: ServerSessionMemoryCache::new(SESSIONS) })
    }
}

/// Seals tickets under one key.
struct Sealer(RandomizedNonceKey);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    fn new() -> Result<Self, GetRandomFailed> {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).map_err(|_| GetRandomFailed)?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).map(Self).map_err(|_| GetRandomFailed)
    }
}

impl ProducesTickets for Sealer {
    fn enabled(&self) -> bool {
        true
    }

    /// The one that holds the keys knows.
    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::empty(), &mut sealed).ok()?;
        Some([&nonce.as_ref()[..], &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = ticket.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut plain = sealed.to_vec();
        let length = self.0.open_in_place(nonce, Aad::empty(), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

/// Remembers sessions, each with the second until which it is good in front.
struct Sessions {
    lifetime: u32,
    cache: Arc<ServerSessionMemoryCache>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    fn good(kept: &[u8], now: u64) -> Option<Vec<u8>> {
        let (until, session) = kept.split_first_chunk::<8>()?;
        (now < u64::from_be_bytes(*until)).then(|| session.to_vec())
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let until = UnixTime::now().as_secs().saturating_add(self.lifetime.into());
        self.cache.put(key, [&until.to_be_bytes()[..], &value].concat())
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        Self::good(&self.cache.get(key)?, UnixTime::now().as_secs())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        Self::good(&self.cache.take(key)?, UnixTime::now().as_secs())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_opened_by_their_key_alone() {
        let (own, other) = (Sealer::new().unwrap(), Sealer::new().unwrap());
        let ticket = own.encrypt(b"a session").unwrap();
        assert_eq!(own.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
        assert_eq!(other.decrypt(&ticket), None);
        for length in 0..ticket.len() {
            assert_eq!(own.decrypt(&ticket[..length]), None);
        }
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(own.decrypt(&changed), None, "byte {at}");
        }
    }

    #[test]
    fn sessions_are_forgotten_in_time() {
        let kept = [&100_u64.to_be_bytes()[..], b"session"].concat();
        assert_eq!(Sessions::good(&kept, 99).as_deref(), Some(&b"session"[..]));
        assert_eq!(Sessions::good(&kept, 100), None);
        assert_eq!(Sessions::good(b"short", 0), None);
        let never = Resumption { tickets: false, lifetime: 0 }.sessions();
        assert!(never.put(b"key".to_vec(), b"session".to_vec()));
        assert_eq!(never.get(b"key"), None);
        let sessions = Resumption { tickets: false, lifetime: 300 }.sessions();
        assert!(sessions.put(b"key".to_vec(), b"session".to_vec()));
        assert_eq!(sessions.get(b"key"), Some(b"session".to_vec()));
        assert_eq!(sessions.take(b"key"), Some(b"session".to_vec()));
        assert_eq!(sessions.take(b"key"), None);
    }
}
