//! State of ACME certificates, shared by all workers: the state of each, offered challenge tokens, orders. Must never send a
//! request to an ACME server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use base::moment::{Moment, WallTime};

/// Delay after a first failed attempt; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(300);
/// Upper bound on the delay after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(12 * 3600);

/// State of all ACME certificates.
#[derive(Debug, Default)]
pub struct Registry {
    inner: Mutex<Inner>,
    /// Set while tokens are offered, so that requests do not take the lock otherwise.
    has_tokens: AtomicBool,
    /// Directory in which certificates are stored.
    folder: OnceLock<Arc<rt::Folder>>,
}

#[derive(Debug, Default)]
struct Inner {
    certificates: BTreeMap<Box<str>, RenewalState>,
    /// `http-01` key authorizations, by token.
    tokens: BTreeMap<Box<str>, Box<str>>,
    /// Whether an operator has set the record, by certificate and domain.
    records: BTreeMap<(Box<str>, Box<str>), bool>,
    waiting: Vec<Waker>,
    /// Something has changed since the scheduler last looked.
    is_due: bool,
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

    /// Whether any challenge token is offered. Called for each request; takes no lock.
    pub fn is_asked(&self) -> bool {
        self.has_tokens.load(Ordering::Relaxed)
    }

    /// Returns the key authorization for a token.
    pub fn answer(&self, token: &[u8]) -> Option<Box<str>> {
        self.lock().tokens.get(std::str::from_utf8(token).ok()?).cloned()
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

    pub(crate) fn end(&self, name: &str, is_good: bool, now: Moment) {
        self.change(|inner| {
            let standing = inner.certificates.entry(name.into()).or_default();
            standing.state = State::Stopped;
            if is_good {
                (standing.failures, standing.paused) = (0, None);
            } else {
                let pause = FIRST_PAUSE.saturating_mul(1 << standing.failures.min(16)).min(LONGEST_PAUSE);
                standing.failures = standing.failures.saturating_add(1);
                standing.paused = Some(now + pause);
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
        self.lock().tokens.insert(token.into(), answer.into());
        self.has_tokens.store(true, Ordering::Relaxed);
    }

    pub(crate) fn remove_token(&self, token: &str) {
        let mut inner = self.lock();
        inner.tokens.remove(token);
        self.has_tokens.store(!inner.tokens.is_empty(), Ordering::Relaxed);
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
            registry.end("a", false, now);
            pauses.push(registry.standing("a").paused_until(now).as_secs());
        }
        assert_eq!(pauses, [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 43_200, 43_200]);
        registry.end("a", true, now);
        assert_eq!(registry.standing("a").paused_until(now), Duration::ZERO);
    }

    #[test]
    fn tokens_are_answered_as_long_as_they_are_asked_for() {
        let registry = Registry::default();
        assert_eq!(registry.answer(b"t"), None);
        registry.add_token("t", "t.x");
        assert_eq!((registry.answer(b"t").as_deref(), registry.answer(b"\xff")), (Some("t.x"), None));
        registry.remove_token("t");
        assert_eq!(registry.answer(b"t"), None);
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
