//! `hash-balance-factor`: how far above the average load one server may be. Must never choose.

use super::{Candidate, Loads};

/// The bound of each server, by its share of the weights.
#[derive(Debug, Default)]
pub(super) struct Bound {
    /// Per cent of the average; more than 100.
    factor: u64,
    /// By server: the weights of those before it, and its own.
    shares: Vec<(u64, u64)>,
    total: u64,
}

impl Bound {
    pub(super) fn new(factor: u32) -> Self {
        Self { factor: u64::from(factor), ..Self::default() }
    }

    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.shares = vec![(0, 0); count];
        self.total = 0;
        for candidate in candidates {
            let weight = u64::from(candidate.weight);
            self.shares[candidate.server] = (self.total, weight);
            self.total += weight;
        }
    }

    /// Whether a server may get one of `requests` requests, which are all that the backend has to do with. Places are the
    /// factor's part of them, rounded up, and dealt out along the weights without losing one by rounding, as HAProxy does;
    /// every server may have one.
    pub(super) fn admits(&self, server: usize, requests: u32, loads: &Loads) -> bool {
        let (before, weight) = self.shares[server];
        let places = (u64::from(requests) * self.factor).div_ceil(100);
        let own = places * (before + weight) / self.total.max(1) - places * before / self.total.max(1);
        u64::from(loads[server].in_flight()) < own.max(1)
    }
}
