//! What all workers know of updates of OCSP answers (management manual, "show ssl ocsp-updates"). Must never ask for one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use base::moment::WallTime;
use tls::ocsp::CertId;

/// How an update went (management manual, "show ssl ocsp-updates").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// There was none.
    #[default]
    Unknown,
    /// The answer is stapled.
    Successful,
    /// No answer of HTTP, or not one of status 200.
    Http,
    /// What came is not said to be an answer of OCSP.
    NoAnswer,
    /// The answer is not believed, or says nothing of the certificate.
    Check,
    /// The certificate is not in use any more.
    Insertion,
}

impl Outcome {
    /// With more about it.
    pub(crate) fn with(self, detail: String) -> Failure {
        Failure { outcome: self, detail: Some(detail.into()) }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Successful => "Update successful",
            Self::Http => "HTTP error",
            Self::NoAnswer => "Missing \"ocsp-response\" header",
            Self::Check => "OCSP response check failure",
            Self::Insertion => "Error during insertion",
        }
    }
}

/// How an update went, and what was wrong more precisely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failure {
    /// How it went.
    pub outcome: Outcome,
    /// What stands in brackets behind its sentence.
    pub detail: Option<Box<str>>,
}

impl From<Outcome> for Failure {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, detail: None }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.outcome.text())?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, " ({detail})"))
    }
}

/// How the updates of one answer went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The first certificate that it is stapled to.
    pub path: Box<str>,
    /// When it is asked for next.
    pub next: Option<WallTime>,
    /// When one came last.
    pub last: Option<WallTime>,
    /// Updates that were good.
    pub successes: u64,
    /// Updates that were not.
    pub failures: u64,
    /// Failures since the last good one.
    pub(crate) in_a_row: u32,
    /// How the last one went.
    pub outcome: Failure,
}

/// The task that looks after updates, as other tasks know it.
#[derive(Debug, Default)]
struct Keeper {
    is_there: bool,
    /// Certificates have changed since it has looked at them.
    is_due: bool,
    waker: Option<Waker>,
}

/// What all workers know of updates.
#[derive(Debug, Default)]
pub struct Updates {
    records: Mutex<BTreeMap<CertId, Record>>,
    keeper: Mutex<Keeper>,
}

impl Updates {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<CertId, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task is to look after them. True: it is the first one.
    pub(crate) fn begin(&self) -> bool {
        !std::mem::replace(&mut self.keeper().is_there, true)
    }

    /// Has the task look at all certificates again. False: there is no task.
    pub(crate) fn wake(&self) -> bool {
        let mut keeper = self.keeper();
        keeper.is_due = true;
        let (is_there, waker) = (keeper.is_there, keeper.waker.take());
        drop(keeper);
        if let Some(waker) = waker {
            waker.wake();
        }
        is_there
    }

    /// Whether certificates have changed since the last such call; the task is woken when they do.
    pub(crate) fn poll_changed(&self, cx: &Context<'_>) -> bool {
        let mut keeper = self.keeper();
        keeper.waker = Some(cx.waker().clone());
        std::mem::take(&mut keeper.is_due)
    }

    /// Every answer that is updated or was ordered, the one that is due first in front.
    pub fn records(&self) -> Vec<(CertId, Record)> {
        let mut records: Vec<_> = self.lock().iter().map(|(id, record)| (id.clone(), record.clone())).collect();
        records.sort_by_key(|(_, record)| record.next.map_or(i64::MAX, |next| next.seconds));
        records
    }
}
