//! The process's allocated memory and its budget: one common state of scarcity for all workers. Must never allocate or
//! free anything, because the allocator calls it.
//!
//! Counts the bytes that the allocator was asked for. A limit of the kernel is reached before that count, because of
//! the allocator's own overhead: the budget is the limit minus other memory under it, and if the kernel refuses earlier
//! still, it becomes the amount in use then.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// How much memory is left to allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Supply {
    /// Sufficient.
    Ample,
    /// No new work is started: connections and requests wait, idle connections are closed.
    Scarce,
    /// Work in progress waits as well, except for a few tasks at a time.
    Critical,
}

/// Minimum number of bytes for clients in any budget: with less, waiting would free nothing.
const LEAST: usize = 8 << 20;

/// Memory is scarce from this share of the clients' part of the budget, in sixteenths, or once at most this number of
/// bytes is left, whichever is later.
const SCARCE: Threshold = Threshold { sixteenths: 12, leaves: 256 << 20 };
/// Likewise for critical memory.
const CRITICAL: Threshold = Threshold { sixteenths: 14, leaves: 128 << 20 };
/// Beyond this, no more long-lived data is kept: stick table entries, for which no request waits.
const KEPT: Threshold = Threshold { sixteenths: 8, leaves: 512 << 20 };
/// Beyond this, not even a few tasks proceed.
const LAST: Threshold = Threshold { sixteenths: 15, leaves: 64 << 20 };

struct Threshold {
    sixteenths: usize,
    leaves: usize,
}

impl Threshold {
    fn of(&self, account: &Account) -> usize {
        let fixed = account.fixed.load(Relaxed);
        let clients = account.budget().saturating_sub(fixed);
        fixed.saturating_add((clients / 16 * self.sixteenths).max(clients.saturating_sub(self.leaves)))
    }
}

/// The memory account of a process.
#[derive(Debug)]
pub struct Account {
    used: AtomicUsize,
    /// Bytes used by the configuration.
    fixed: AtomicUsize,
    budget: AtomicUsize,
    failed: AtomicUsize,
    supply: AtomicU8,
}

impl Default for Account {
    fn default() -> Self {
        Self::new()
    }
}

impl Account {
    /// Creates an account without a limit.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            used: AtomicUsize::new(0),
            fixed: AtomicUsize::new(0),
            budget: AtomicUsize::new(usize::MAX),
            failed: AtomicUsize::new(0),
            supply: AtomicU8::new(Supply::Ample as u8),
        }
    }

    /// Returns how scarce memory is.
    #[inline]
    pub fn supply(&self) -> Supply {
        match self.supply.load(Relaxed) {
            0 => Supply::Ample,
            1 => Supply::Scarce,
            _ => Supply::Critical,
        }
    }

    /// Adds allocated bytes (negative: freed bytes).
    pub fn enter(&self, bytes: isize) {
        // A thread may free memory allocated by another one that has not added it yet: the sum wraps around
        // temporarily.
        self.used.fetch_add(bytes as usize, Relaxed);
        self.judge();
    }

    /// Returns the number of allocated bytes.
    pub fn used(&self) -> usize {
        let used = self.used.load(Relaxed);
        if used > isize::MAX as usize { 0 } else { used }
    }

    /// Returns the number of bytes that may be allocated; `usize::MAX`: unlimited.
    pub fn budget(&self) -> usize {
        self.budget.load(Relaxed)
    }

    /// Sets the budget in bytes, before clients are accepted: memory in use now is not counted as the clients'.
    pub fn begin(&self, bytes: usize) {
        self.fixed.store(self.used(), Relaxed);
        self.set_budget(bytes);
    }

    /// Sets the budget in bytes.
    pub fn set_budget(&self, bytes: usize) {
        self.budget.store(bytes.max(self.least()), Relaxed);
        self.judge();
    }

    fn least(&self) -> usize {
        self.fixed.load(Relaxed).saturating_add(LEAST)
    }

    /// Records that the kernel has refused memory: the budget becomes the amount in use plus the freed reserve.
    pub fn refused(&self, reserve: usize) {
        self.failed.fetch_add(1, Relaxed);
        self.budget.fetch_min(self.used().saturating_add(reserve).max(self.least()), Relaxed);
        self.judge();
    }

    /// Returns the number of allocations that the kernel refused at first.
    pub fn failed(&self) -> usize {
        self.failed.load(Relaxed)
    }

    /// Whether there is enough for a few of the tasks that wait while memory is critical.
    pub fn bears_a_few(&self) -> bool {
        self.used() < LAST.of(self)
    }

    /// Whether there is enough for data that outlives its connection.
    pub fn may_keep(&self) -> bool {
        self.budget() == usize::MAX || self.used() < KEPT.of(self)
    }

    /// Returns the number of bytes that can be allocated before memory is scarce.
    pub fn ample_bytes(&self) -> usize {
        SCARCE.of(self).saturating_sub(self.used())
    }

    fn judge(&self) {
        let supply = match self.used() {
            used if used >= CRITICAL.of(self) => Supply::Critical,
            used if used >= SCARCE.of(self) => Supply::Scarce,
            _ => Supply::Ample,
        };
        if self.supply.load(Relaxed) != supply as u8 {
            self.supply.store(supply as u8, Relaxed);
        }
    }
}

/// The memory account of this process.
pub static PROCESS: Account = Account::new();

#[cfg(test)]
mod tests {
    use super::*;

    const MB: isize = 1 << 20;

    #[test]
    fn memory_is_scarce_before_it_is_gone() {
        let account = Account::new();
        account.enter(1000 * MB);
        assert_eq!(account.supply(), Supply::Ample, "there is no limit");
        account.set_budget(1600 << 20);
        assert_eq!((account.supply(), account.ample_bytes()), (Supply::Ample, 344 << 20));
        for (bytes, supply, few) in [
            (344 * MB, Supply::Scarce, true),
            (127 * MB, Supply::Scarce, true),
            (MB, Supply::Critical, true),
            (64 * MB, Supply::Critical, false),
            (-193 * MB, Supply::Ample, true),
        ] {
            account.enter(bytes);
            assert_eq!((account.supply(), account.bears_a_few()), (supply, few), "{} MB", account.used() >> 20);
        }
    }

    #[test]
    fn a_small_budget_is_shared_out_in_proportion() {
        let account = Account::new();
        account.set_budget(64 << 20);
        account.enter(32 * MB - 1);
        assert!(account.may_keep());
        account.enter(1);
        assert!(!account.may_keep(), "connections have the other half");
        account.enter(16 * MB - 1);
        assert_eq!(account.supply(), Supply::Ample);
        account.enter(1);
        assert_eq!(account.supply(), Supply::Scarce);
        account.enter(8 * MB);
        assert_eq!(account.supply(), Supply::Critical);
    }

    #[test]
    fn what_the_configuration_takes_is_not_the_clients() {
        let account = Account::new();
        account.enter(500 * MB);
        account.begin(564 << 20);
        account.enter(48 * MB - 1);
        assert_eq!(account.supply(), Supply::Ample);
        account.enter(1);
        assert_eq!(account.supply(), Supply::Scarce);
        account.enter(-48 * MB);
        account.begin(100 << 20);
        assert_eq!((account.supply(), account.budget()), (Supply::Ample, 508 << 20), "a limit that leaves nothing");
    }

    #[test]
    fn a_kernel_that_refuses_sets_the_budget() {
        let account = Account::new();
        account.enter(100 * MB);
        account.refused(8 << 20);
        assert_eq!((account.supply(), account.budget(), account.failed()), (Supply::Critical, 108 << 20, 1));
        assert!(account.bears_a_few(), "the reserve is for those that free some");
        account.enter(4 * MB);
        account.refused(0);
        assert_eq!((account.supply(), account.budget(), account.bears_a_few()), (Supply::Critical, 104 << 20, false));
        account.enter(-20 * MB);
        assert_eq!(account.supply(), Supply::Scarce);
        account.enter(-20 * MB);
        assert_eq!(account.supply(), Supply::Ample);
    }

    #[test]
    fn what_is_freed_before_it_was_entered_comes_back() {
        let account = Account::new();
        account.set_budget(64 << 20);
        account.enter(-5 * MB);
        assert_eq!((account.used(), account.supply()), (0, Supply::Ample));
        account.enter(60 * MB);
        assert_eq!(account.used(), 55 << 20);
    }
}
