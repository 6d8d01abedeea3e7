//! State of ACME certificates, shared by all workers: the state of each, offered challenge tokens, orders. Must never send a
//! request to an ACME server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use base::moment::{Moment, WallTime};
use tls::account::AccountKey;

/// Delay after a first failed attempt; doubled after each further one.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(300);
/// Upper bound on the delay after failures.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(12 * 3600);

/// State of all ACME certificates.
#[derive(Debug, Default)]
pub struct Registry {
    inner: Mutex<Inner>,
    /// Set while tokens are offered, or all tokens are answered, so that requests do not take the lock otherwise.
    has_answers: AtomicBool,
    /// Directory in which certificates are stored.
    folder: OnceLock<Arc<rt::Folder>>,
}

#[derive(Debug, Default)]
struct Inner {
    certificates: BTreeMap<Box<str>, RenewalState>,
    /// `http-01` key authorizations, by token.
    tokens: BTreeMap<Box<str>, Box<str>>,
    /// The account that nodes share over a store. All tokens for `shared_names` are answered with its thumbprint.
    account: Option<SharedAccount>,
    /// Names of certificates that nodes share and prove by `http-01`, in lower case.
    shared_names: BTreeSet<Box<str>>,
    /// Versions of the certificates that were obtained from the store, or published in it, by identifier.
    versions: BTreeMap<Box<str>, u64>,
    /// Whether an operator has set the record, by certificate and domain.
    records: BTreeMap<(Box<str>, Box<str>), bool>,
    waiting: Vec<Waker>,
    /// Something has changed since the scheduler last looked.
    is_due: bool,
}

/// The account that nodes share.
#[derive(Debug, Clone)]
pub struct SharedAccount {
    pub key: Arc<AccountKey>,
    /// The key in PEM.
    pub text: Arc<[u8]>,
    thumbprint: Box<str>,
}

impl SharedAccount {
    /// Parses a key in PEM.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let key = AccountKey::read(text)?;
        let thumbprint = key.thumbprint().into();
        Ok(Self { key: Arc::new(key), text: text.into(), thumbprint })
    }
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    Obtained,
    /// The next attempt is delayed by the number of failures.
    Failed,
    /// The next attempt is delayed by the time that holds for all nodes.
    Paused(Duration),
}

/// Renewal state of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Idle: renewed only by an order.
    #[default]
    Stopped,
    /// A renewal is scheduled.
    Scheduled,
    /// A renewal is running.
    Running,
}

/// Renewal state and schedule of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RenewalState {
    pub state: State,
    /// Time of the next renewal.
    pub due: Option<WallTime>,
    /// A renewal was ordered (`acme renew`).
    pub is_ordered: bool,
    failures: u32,
    paused: Option<Moment>,
}

impl RenewalState {
    /// Returns the remaining delay after failed attempts.
    pub fn paused_until(&self, now: Moment) -> Duration {
        self.paused.map_or(Duration::ZERO, |until| until.saturating_since(now))
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let waiting = {
            let mut inner = self.lock();
            change(&mut inner);
            std::mem::take(&mut inner.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Sets the directory in which certificates are stored. Only the first call has an effect.
    pub fn keep_in(&self, folder: Arc<rt::Folder>) {
        let _ = self.folder.set(folder);
    }

    pub(crate) fn folder(&self) -> Option<&Arc<rt::Folder>> {
        self.folder.get()
    }

    /// Returns the state of a certificate.
    pub fn standing(&self, name: &str) -> RenewalState {
        self.lock().certificates.get(name).copied().unwrap_or_default()
    }

    /// Orders a renewal. Returns false if one is running.
    pub fn order(&self, name: &str) -> bool {
        let mut is_new = false;
        self.change(|inner| {
            let standing = inner.certificates.entry(name.into()).or_default();
            is_new = standing.state != State::Running;
            standing.is_ordered |= is_new;
            inner.is_due = true;
        });
        is_new
    }

    /// Records that an operator has set the record of a domain. Returns the number of records of the certificate that are still
    /// awaited; `None`: this domain is not awaited.
    pub fn set_record(&self, name: &str, domain: &str) -> Option<usize> {
        let mut left = None;
        self.change(|inner| {
            if let Some(is_set) = inner.records.get_mut(&(name.into(), domain.into())) {
                *is_set = true;
                left = Some(inner.records.iter().filter(|((own, _), is_set)| **own == *name && !**is_set).count());
            }
        });
        left
    }

    /// Whether any challenge token is answered. Called for each request; takes no lock.
    pub fn is_asked(&self) -> bool {
        self.has_answers.load(Ordering::Relaxed)
    }

    /// Returns the key authorization for a token. `host`: the `Host` field of the request.
    pub fn answer(&self, token: &[u8], host: Option<&[u8]>) -> Option<Box<str>> {
        let token = std::str::from_utf8(token).ok()?;
        let inner = self.lock();
        let is_shared = || host.and_then(name_of).is_some_and(|name| inner.shared_names.contains(&*name));
        let shared = || inner.account.as_ref().filter(|_| is_token(token) && is_shared());
        let made = || shared().map(|account| format!("{token}.{}", account.thumbprint).into());
        inner.tokens.get(token).cloned().or_else(made)
    }

    /// Returns the account that nodes share.
    pub(crate) fn account(&self) -> Option<SharedAccount> {
        self.lock().account.clone()
    }

    /// Sets the account that nodes share. Renewals that have waited for it begin.
    pub(crate) fn set_account(&self, account: SharedAccount) {
        self.change(|inner| {
            inner.account = Some(account);
            inner.is_due = true;
            self.note_answers(inner);
        });
    }

    /// Sets the names for which all tokens are answered.
    pub(crate) fn share_names(&self, names: impl Iterator<Item = Box<str>>) {
        self.lock().shared_names = names.collect();
    }

    /// Returns the version of a certificate that nodes share; 0: none was obtained.
    pub(crate) fn version(&self, certificate: &str) -> u64 {
        self.lock().versions.get(certificate).copied().unwrap_or(0)
    }

    /// Records the version of a certificate that was installed. The renewal is scheduled again.
    pub(crate) fn set_version(&self, certificate: &str, version: u64) {
        self.change(|inner| {
            inner.versions.insert(certificate.into(), version);
            inner.is_due = true;
        });
    }

    fn note_answers(&self, inner: &Inner) {
        self.has_answers.store(!inner.tokens.is_empty() || inner.account.is_some(), Ordering::Relaxed);
    }

    pub(crate) fn set_due(&self, name: &str, due: Option<WallTime>) {
        let mut inner = self.lock();
        let standing = inner.certificates.entry(name.into()).or_default();
        standing.due = due;
        standing.state = if due.is_some() { State::Scheduled } else { State::Stopped };
    }

    pub(crate) fn begin(&self, name: &str) {
        let mut inner = self.lock();
        let standing = inner.certificates.entry(name.into()).or_default();
        (standing.state, standing.is_ordered) = (State::Running, false);
    }

    pub(crate) fn end(&self, name: &str, attempt: Attempt, now: Moment) {
        self.change(|inner| {
            let standing = inner.certificates.entry(name.into()).or_default();
            standing.state = State::Stopped;
            match attempt {
                Attempt::Obtained => (standing.failures, standing.paused) = (0, None),
                Attempt::Failed => {
                    let pause = FIRST_PAUSE.saturating_mul(1 << standing.failures.min(16)).min(LONGEST_PAUSE);
                    standing.failures = standing.failures.saturating_add(1);
                    standing.paused = Some(now + pause);
                }
                Attempt::Paused(pause) => standing.paused = Some(now + pause),
            }
            inner.is_due = true;
        });
    }

    /// Waits until something changes, at most `most`.
    pub(crate) async fn wait(&self, most: Duration) {
        let mut timer = rt::Timer::new();
        timer.arm(Some(rt::now() + most));
        std::future::poll_fn(|cx| {
            let mut inner = self.lock();
            if std::mem::take(&mut inner.is_due) {
                return Poll::Ready(());
            }
            inner.waiting.push(cx.waker().clone());
            drop(inner);
            timer.poll_expired(cx)
        })
        .await;
    }

    pub(crate) fn add_token(&self, token: &str, answer: &str) {
        let mut inner = self.lock();
        inner.tokens.insert(token.into(), answer.into());
        self.note_answers(&inner);
    }

    pub(crate) fn remove_token(&self, token: &str) {
        let mut inner = self.lock();
        inner.tokens.remove(token);
        self.note_answers(&inner);
    }

    /// Waits until an operator has set the records of these domains.
    pub(crate) async fn records(&self, name: &str, domains: &[Box<str>]) {
        let awaited = AwaitedRecords { registry: self, name, domains };
        self.change(|inner| {
            inner.records.extend(domains.iter().map(|domain| ((name.into(), domain.clone()), false)));
        });
        std::future::poll_fn(|cx| {
            let mut inner = self.lock();
            let mut awaited = domains.iter().map(|domain| inner.records.get(&(name.into(), domain.clone())));
            if awaited.all(|is_set| is_set.copied().unwrap_or(true)) {
                return Poll::Ready(());
            }
            inner.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
        drop(awaited);
    }
}

/// Whether all tokens of this form are answered: base64url, of 128 bits or more (RFC 8555, section 8.3).
fn is_token(token: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (22..=256).contains(&token.len()) && token.bytes().all(is_letter)
}

/// Returns the name in a `Host` field, in lower case, without the port.
fn name_of(host: &[u8]) -> Option<String> {
    let host = std::str::from_utf8(host).ok()?;
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    Some(name.to_ascii_lowercase())
}

/// Removes awaited records when dropped.
struct AwaitedRecords<'a> {
    registry: &'a Registry,
    name: &'a str,
    domains: &'a [Box<str>],
}

impl Drop for AwaitedRecords<'_> {
    fn drop(&mut self) {
        let mut inner = self.registry.lock();
        for domain in self.domains {
            inner.records.remove(&(self.name.into(), domain.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_the_next_attempt_later() {
        let registry = Registry::default();
        let now = Moment::default() + Duration::from_secs(60);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            registry.begin("a");
            assert_eq!(registry.standing("a").state, State::Running);
            registry.end("a", Attempt::Failed, now);
            pauses.push(registry.standing("a").paused_until(now).as_secs());
        }
        assert_eq!(pauses, [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 43_200, 43_200]);
        registry.end("a", Attempt::Paused(Duration::from_secs(7)), now);
        assert_eq!(registry.standing("a").paused_until(now), Duration::from_secs(7));
        registry.end("a", Attempt::Obtained, now);
        assert_eq!(registry.standing("a").paused_until(now), Duration::ZERO);
    }

    #[test]
    fn nodes_with_one_account_answer_each_token() {
        let registry = Registry::default();
        let key = tls::issue::Key::generate(tls::issue::KeyKind::P256).unwrap().to_pem();
        let account = SharedAccount::read(key.as_bytes()).unwrap();
        let thumbprint = account.key.thumbprint();
        registry.set_account(account);
        registry.share_names(["a.example", "2001:db8::1"].map(Box::from).into_iter());
        let host = Some(&b"A.example:80"[..]);

        let rows = [
            ("LoqXcYV8q5ONbJQxbmR7SC", true),
            ("LoqXcYV8q5ONbJQxbmR7S", false),
            ("LoqXcYV8q5ONbJQxbmR7S-_9", true),
            ("LoqXcYV8q5ONbJQxbmR7S=", false),
            ("LoqXcYV8q5ONbJQxbmR7S/../../x", false),
            (&"a".repeat(256), true),
            (&"a".repeat(257), false),
        ];
        for (token, is_answered) in rows {
            let expected = is_answered.then(|| format!("{token}.{thumbprint}"));
            assert_eq!(registry.answer(token.as_bytes(), host).as_deref(), expected.as_deref(), "{token}");
        }
        let hosts: [(Option<&[u8]>, bool); 6] = [
            (Some(b"a.example"), true),
            (Some(b"[2001:db8::1]:80"), true),
            (Some(b"b.example"), false),
            (Some(b"[2001:db8::1"), false),
            (Some(b"\xff"), false),
            (None, false),
        ];
        for (host, is_answered) in hosts {
            assert_eq!(registry.answer(rows[0].0.as_bytes(), host).is_some(), is_answered, "{host:?}");
        }
        registry.add_token("t", "t.x");
        registry.remove_token("t");
        assert!(registry.is_asked());
    }

    #[test]
    fn tokens_are_answered_as_long_as_they_are_asked_for() {
        let registry = Registry::default();
        assert_eq!(registry.answer(b"t", None), None);
        registry.add_token("t", "t.x");
        assert_eq!((registry.answer(b"t", None).as_deref(), registry.answer(b"\xff", None)), (Some("t.x"), None));
        registry.remove_token("t");
        assert_eq!(registry.answer(b"t", None), None);
        assert!(!registry.is_asked());
    }

    #[test]
    fn what_is_being_obtained_is_not_ordered_again() {
        let registry = Registry::default();
        assert!(registry.order("a") && registry.standing("a").is_ordered);
        registry.begin("a");
        assert!(!registry.order("a") && !registry.standing("a").is_ordered);
        assert_eq!(registry.set_record("a", "a.example"), None);
    }
}
