//! Counters of name servers, for `show resolvers` and the statistics. One worker writes them. Must never decide anything.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one worker writes and others read.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Counters of one name server (management manual, "show resolvers").
#[derive(Debug, Default)]
pub struct Counts {
    pub sent: Count,
    pub send_error: Count,
    pub valid: Count,
    pub update: Count,
    pub cname: Count,
    pub cname_error: Count,
    pub any_err: Count,
    pub nx: Count,
    pub timeout: Count,
    pub refused: Count,
    pub other: Count,
    pub invalid: Count,
    pub too_big: Count,
    pub truncated: Count,
    pub outdated: Count,
}

impl Counts {
    /// Returns all counters in HAProxy's order: the name in the statistics, the one in `show resolvers`, the counter.
    pub fn rows(&self) -> [(&'static str, &'static str, &Count); 15] {
        [
            ("sent", "sent", &self.sent),
            ("send_error", "snd_error", &self.send_error),
            ("valid", "valid", &self.valid),
            ("update", "update", &self.update),
            ("cname", "cname", &self.cname),
            ("cname_error", "cname_error", &self.cname_error),
            ("any_err", "any_err", &self.any_err),
            ("nx", "nx", &self.nx),
            ("timeout", "timeout", &self.timeout),
            ("refused", "refused", &self.refused),
            ("other", "other", &self.other),
            ("invalid", "invalid", &self.invalid),
            ("too_big", "too_big", &self.too_big),
            ("truncated", "truncated", &self.truncated),
            ("outdated", "outdated", &self.outdated),
        ]
    }

    /// Resets all counters.
    pub fn clear(&self) {
        self.rows().into_iter().for_each(|(_, _, count)| count.clear());
    }
}
