//! Resumption of client sessions, and its time limit: by tickets under keys of this process or of a file, or by a
//! session cache. Must never resume a session that has expired, nor under other terms than its client was verified by.

use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use rustls::TicketRotator;
use rustls::crypto::GetRandomFailed;
use rustls::pki_types::UnixTime;
use rustls::server::{ProducesTickets, StoresServerSessions};

use crate::ticket_keys::TicketKeys;

pub use crate::sessions::SessionStore;

/// Number of blocks of the session cache, usually one per session: HAProxy's default.
pub const CACHE_SIZE: usize = 20_000;

/// The settings of session resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption {
    /// The kind of session tickets.
    pub tickets: Tickets,
    /// Maximum number of seconds after which a session may be resumed (`tune.ssl.lifetime`).
    pub lifetime: u32,
    /// The cache of sessions of clients without tickets.
    pub store: Arc<SessionStore>,
}

/// Session tickets, by the keys that seal them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tickets {
    /// No tickets: sessions are cached here.
    None,
    /// Under keys of this process only.
    Own,
    /// Under keys from a file (`tls-ticket-keys`).
    Keys(Arc<TicketKeys>),
}

impl Default for Resumption {
    /// HAProxy's defaults.
    fn default() -> Self {
        Self { tickets: Tickets::Own, lifetime: 300, store: Arc::new(SessionStore::new(CACHE_SIZE)) }
    }
}

impl Resumption {
    /// What makes tickets, whichever certificate they belong to.
    pub(crate) fn ticketer(&self) -> Result<Option<Arc<Ticketer>>, String> {
        let maker: Arc<dyn ProducesTickets> = match &self.tickets {
            Tickets::None => return Ok(None),
            Tickets::Keys(keys) => Arc::new(Shared { keys: Arc::clone(keys), lifetime: self.lifetime }),
            // Keys change twice in the lifetime and are used once more behind that, so that no ticket is good for longer.
            Tickets::Own => {
                let rotator = TicketRotator::new((self.lifetime / 2).max(1), || Ok(Box::new(Sealer::new()?)));
                Arc::new(rotator.map_err(|error| error.to_string())?)
            }
        };
        Ok(Some(Arc::new(Ticketer(RwLock::new(maker)))))
    }

    /// Goes on with the sessions of `before`, and with its keys where both are the process's own. `ticketers`: what both seal
    /// tickets with. With another lifetime sessions could be resumed for too long.
    pub(crate) fn follow(&self, before: &Self, ticketers: [Option<&Ticketer>; 2]) {
        if self.lifetime != before.lifetime {
            return;
        }
        self.store.follow(&before.store);
        if let ([Some(own), Some(former)], Tickets::Own, Tickets::Own) = (ticketers, &self.tickets, &before.tickets) {
            own.follow(former);
        }
    }

    /// Returns the cache of sessions under some terms.
    pub(crate) fn sessions(&self, context: [u8; 8]) -> Arc<dyn StoresServerSessions> {
        Arc::new(Sessions { lifetime: self.lifetime, store: Arc::clone(&self.store), context })
    }
}

/// The maker of an address' tickets. Its keys may be those of the same address in another configuration.
#[derive(Debug)]
pub(crate) struct Ticketer(RwLock<Arc<dyn ProducesTickets>>);

impl Ticketer {
    fn maker(&self) -> Arc<dyn ProducesTickets> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Seals and opens with the keys of another one from now on.
    pub(crate) fn follow(&self, before: &Self) {
        let maker = before.maker();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = maker;
    }
}

/// Adds to every ticket what its session depends on.
pub(crate) fn bound(inner: &Arc<Ticketer>, context: [u8; 8]) -> Arc<dyn ProducesTickets> {
    Arc::new(BoundTicketer { inner: Arc::clone(inner), context })
}

#[derive(Debug)]
struct BoundTicketer {
    inner: Arc<Ticketer>,
    context: [u8; 8],
}

impl ProducesTickets for BoundTicketer {
    fn enabled(&self) -> bool {
        self.inner.maker().enabled()
    }

    fn lifetime(&self) -> u32 {
        self.inner.maker().lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.inner.maker().encrypt(&[&self.context[..], plain].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.inner.maker().decrypt(ticket)?.strip_prefix(&self.context).map(<[u8]>::to_vec)
    }
}

/// Seals tickets under the keys of a file. A ticket contains its expiry in seconds.
#[derive(Debug)]
struct Shared {
    keys: Arc<TicketKeys>,
    lifetime: u32,
}

/// Returns the session after the expiry, if it has not expired.
fn unexpired(kept: &[u8], now: u64) -> Option<Vec<u8>> {
    let (until, session) = kept.split_first_chunk::<8>()?;
    (now < u64::from_be_bytes(*until)).then(|| session.to_vec())
}

fn until(lifetime: u32) -> u64 {
    UnixTime::now().as_secs().saturating_add(lifetime.into())
}

impl ProducesTickets for Shared {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.seal(&[&until(self.lifetime).to_be_bytes()[..], plain].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        unexpired(&self.keys.open(ticket)?, UnixTime::now().as_secs())
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

    /// Determined by the rotator, which holds the keys.
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

/// Caches sessions under the terms of one certificate.
#[derive(Debug)]
struct Sessions {
    lifetime: u32,
    store: Arc<SessionStore>,
    context: [u8; 8],
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.store.put(key, [&self.context[..], &value].concat(), until(self.lifetime))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let found = self.store.get(key, UnixTime::now().as_secs())?;
        found.strip_prefix(&self.context).map(<[u8]>::to_vec)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let found = self.store.take(key, UnixTime::now().as_secs())?;
        found.strip_prefix(&self.context).map(<[u8]>::to_vec)
    }

    fn can_cache(&self) -> bool {
        self.store.is_used()
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
    fn tickets_of_a_file_end_with_their_lifetime() {
        let keys = TicketKeys::new("keys", (1..4).map(|number| Some(vec![number; 48]))).unwrap();
        let of = |lifetime| {
            let keys = TicketKeys::new("keys", keys.secrets().map(|key| Some(key.to_vec()))).unwrap();
            Resumption { tickets: Tickets::Keys(Arc::new(keys)), lifetime, ..Resumption::default() }
        };
        let maker = |lifetime| of(lifetime).ticketer().unwrap().unwrap().maker();
        let (long, short) = (maker(300), maker(0));
        let ticket = long.encrypt(b"a session").unwrap();
        // Simulates another process with the same file.
        assert_eq!(short.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
        assert_eq!(long.decrypt(&short.encrypt(b"a session").unwrap()), None);
        assert_eq!(unexpired(&[&100_u64.to_be_bytes()[..], b"session"].concat(), 99).as_deref(), Some(&b"session"[..]));
        assert_eq!(unexpired(&[&100_u64.to_be_bytes()[..], b"session"].concat(), 100), None);
        assert_eq!(unexpired(b"short", 0), None);
    }

    #[test]
    fn sessions_are_resumed_under_their_terms_alone() {
        let inner = Resumption::default().ticketer().unwrap().unwrap();
        let (own, other) = (bound(&inner, [1; 8]), bound(&inner, [2; 8]));
        let ticket = own.encrypt(b"a session").unwrap();
        assert_eq!(own.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
        assert_eq!(other.decrypt(&ticket), None);
        let resumption = Resumption::default();
        let (own, other) = (resumption.sessions([1; 8]), resumption.sessions([2; 8]));
        assert!(own.put(b"key".to_vec(), b"session".to_vec()));
        assert_eq!(other.get(b"key"), None);
        assert_eq!(own.get(b"key"), Some(b"session".to_vec()));
        assert_eq!(own.take(b"key"), Some(b"session".to_vec()));
        assert_eq!(own.take(b"key"), None);
    }
}
