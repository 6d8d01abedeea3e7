//! `hash-balance-factor`: the maximum load of a server relative to the average. Must never choose a server.

use super::{Candidate, Loads};

/// The bound of each server, by its share of the weights.
#[derive(Debug, Default)]
pub(super) struct LoadBounds {
    /// Percentage of the average; more than 100.
    factor: u64,
    /// By server: the total weight of those before it, and its own weight.
    shares: Vec<(u64, u64)>,
    total: u64,
}

impl LoadBounds {
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

    /// Whether a server may get one of `requests` requests, the total of the backend. The slots are `factor` percent of
    /// them, rounded up, and distributed by weight without losing any to rounding, as in HAProxy; every server has at
    /// least one.
    pub(super) fn admits(&self, server: usize, requests: u32, loads: &Loads) -> bool {
        let (before, weight) = self.shares[server];
        let places = (u64::from(requests) * self.factor).div_ceil(100);
        let own = places * (before + weight) / self.total.max(1) - places * before / self.total.max(1);
        u64::from(loads[server].in_flight()) < own.max(1)
    }
}
