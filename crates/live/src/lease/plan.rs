//! The configuration of a limit. Must never contain anything that changes.

use config::spec::{LimitSpec, LostMode};
use std::time::Duration;

/// A limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitPlan {
    /// Index of its store in the program.
    pub store: usize,
    pub name: Box<str>,
    /// Tokens per period.
    pub rate: u32,
    pub period: Duration,
    /// Tokens that may be taken at once.
    pub burst: u32,
    /// Maximum number of keys of a node.
    pub size: u32,
    pub lost: LostMode,
}

impl LimitPlan {
    /// Returns the plan of a `limit` line.
    pub fn new(store: usize, written: &LimitSpec) -> Self {
        Self {
            store,
            name: written.name.value.as_str().into(),
            rate: written.rate,
            period: Duration::from_millis(written.period),
            burst: written.burst,
            size: written.size,
            lost: written.lost,
        }
    }

    /// Returns the time in which one token is added, in nanoseconds.
    pub fn interval(&self) -> u64 {
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        (period / u64::from(self.rate.max(1))).max(1)
    }
}
