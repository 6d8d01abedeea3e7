//! State of OCSP updates, shared by all workers (management manual, "show ssl ocsp-updates"). Must never request a response.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use base::moment::WallTime;
use tls::ocsp::CertId;

/// Outcome of an update (management manual, "show ssl ocsp-updates").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// No update was attempted.
    #[default]
    Unknown,
    /// The response is stapled.
    Successful,
    /// No HTTP response, or not one of status 200.
    Http,
    /// The content type of the response is not `application/ocsp-response`.
    NoAnswer,
    /// The response is invalid, or does not cover the certificate.
    Check,
    /// The certificate is no longer in use.
    Insertion,
}

impl Outcome {
    /// Adds a detail to the outcome.
    pub(crate) fn with(self, detail: String) -> Failure {
        Failure { outcome: self, detail: Some(detail.into()) }
    }

    /// Number of the outcome in `show ssl ocsp-updates`.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Text of the outcome in `show ssl ocsp-updates`.
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

/// Outcome of an update, with an optional detail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failure {
    pub outcome: Outcome,
    /// Detail, printed in brackets after the text of the outcome.
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

/// Update history of one response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Name of the first certificate that the response is stapled to.
    pub path: Box<str>,
    /// Time of the next update.
    pub next: Option<WallTime>,
    /// Time of the last successful update.
    pub last: Option<WallTime>,
    /// Number of successful updates.
    pub successes: u64,
    /// Number of failed updates.
    pub failures: u64,
    /// Consecutive failures since the last success.
    pub(crate) in_a_row: u32,
    /// Outcome of the last update.
    pub outcome: Failure,
}

/// Shared state of the update task.
#[derive(Debug, Default)]
struct UpdateTask {
    is_there: bool,
    /// Certificates have changed since the task's last scan.
    is_due: bool,
    waker: Option<Waker>,
}

/// State of OCSP updates.
#[derive(Debug, Default)]
pub struct Updates {
    records: Mutex<BTreeMap<CertId, Record>>,
    keeper: Mutex<UpdateTask>,
}

impl Updates {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<CertId, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeper(&self) -> MutexGuard<'_, UpdateTask> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the update task. Returns true for the first one.
    pub(crate) fn begin(&self) -> bool {
        !std::mem::replace(&mut self.keeper().is_there, true)
    }

    /// Wakes the task for a scan of all certificates. Returns false if there is no task.
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

    /// Whether certificates have changed since the previous call; registers the task to be woken when they change.
    pub(crate) fn poll_changed(&self, cx: &Context<'_>) -> bool {
        let mut keeper = self.keeper();
        keeper.waker = Some(cx.waker().clone());
        std::mem::take(&mut keeper.is_due)
    }

    /// Returns every response that is updated or was ordered, sorted by the time of the next update.
    pub fn records(&self) -> Vec<(CertId, Record)> {
        let mut records: Vec<_> = self.lock().iter().map(|(id, record)| (id.clone(), record.clone())).collect();
        records.sort_by_key(|(_, record)| record.next.map_or(i64::MAX, |next| next.seconds));
        records
    }
}
