//! How much memory variables may take (`tune.vars.*`, configuration manual, section 3.2). A coarse scope's limit counts
//! the finer ones in: the process's its sessions, a session's its transaction, a transaction's request and response.
//! Must never know a variable.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the configuration says, bytes; `None`: no limit.
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
    /// The limits that follow, with nothing taken yet; `None`: there are none.
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

/// The limits, bytes; `None`: no limit.
#[derive(Debug, Default, Clone)]
pub struct VariableLimits {
    /// `tune.vars.sess-max-size`.
    pub session: Option<usize>,
    /// `tune.vars.txn-max-size`.
    pub transaction: Option<usize>,
    /// `tune.vars.reqres-max-size`, of each of the two.
    pub message: Option<usize>,
    /// `tune.vars.check-max-size`.
    pub check: Option<usize>,
    /// `tune.vars.global-max-size` or `tune.vars.proc-max-size`, whichever is less: all variables there are.
    pub process: Option<Arc<Ledger>>,
}

/// The bytes of all variables of the process, over all workers.
#[derive(Debug)]
pub struct Ledger {
    limit: usize,
    bytes: AtomicUsize,
}

impl Ledger {
    /// Nothing is taken yet.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: AtomicUsize::new(0) }
    }

    /// Takes so many bytes; false, and nothing is taken, where that would be too many.
    #[must_use]
    pub(super) fn take(&self, bytes: usize) -> bool {
        let within = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    /// Counts bytes that are there already.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives bytes back.
    pub(super) fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
