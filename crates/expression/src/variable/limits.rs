//! Memory limits of variables (`tune.vars.*`, configuration manual, section 3.2). The limit of a scope includes the
//! narrower scopes: the process includes its sessions, a session its transaction, a transaction its request and
//! response. Must never access a variable.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The configured limits in bytes; `None`: unlimited.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct VariableSizes {
    /// `tune.vars.global-max-size`.
    pub global: Option<usize>,
    /// `tune.vars.proc-max-size`.
    pub process: Option<usize>,
    /// `tune.vars.sess-max-size`.
    pub session: Option<usize>,
    /// `tune.vars.txn-max-size`.
    pub transaction: Option<usize>,
    /// `tune.vars.reqres-max-size`.
    pub message: Option<usize>,
    /// `tune.vars.check-max-size`.
    pub check: Option<usize>,
}

impl VariableSizes {
    /// Returns the resulting limits, with nothing charged yet; `None`: no limits.
    pub fn limits(&self) -> Option<VariableLimits> {
        let process = self.global.into_iter().chain(self.process).min();
        (*self != Self::default()).then(|| VariableLimits {
            session: self.session,
            transaction: self.transaction,
            message: self.message,
            check: self.check,
            process: process.map(|limit| Arc::new(Ledger::new(limit))),
        })
    }
}

/// The limits in bytes; `None`: unlimited.
#[derive(Debug, Default, Clone)]
pub struct VariableLimits {
    /// `tune.vars.sess-max-size`.
    pub session: Option<usize>,
    /// `tune.vars.txn-max-size`.
    pub transaction: Option<usize>,
    /// `tune.vars.reqres-max-size`, for request and response each.
    pub message: Option<usize>,
    /// `tune.vars.check-max-size`.
    pub check: Option<usize>,
    /// The smaller of `tune.vars.global-max-size` and `tune.vars.proc-max-size`: for all variables together.
    pub process: Option<Arc<Ledger>>,
}

/// The total size of all variables of the process in bytes, over all workers.
#[derive(Debug)]
pub struct Ledger {
    limit: usize,
    bytes: AtomicUsize,
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: AtomicUsize::new(0) }
    }

    /// Charges bytes; false, and nothing is charged, if that would exceed the limit.
    #[must_use]
    pub(super) fn take(&self, bytes: usize) -> bool {
        let within = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    /// Charges bytes that are already in use.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Releases bytes.
    pub(super) fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes charged.
    pub fn taken(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
