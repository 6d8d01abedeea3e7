//! The state of a store as limits see it. Must never change a limit.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Whether a store can be used, and how many nodes use it.
#[derive(Debug, Default)]
pub struct Standing {
    /// Incremented with each change: odd while the store can be used. What was learned in another epoch is void.
    epoch: AtomicU32,
    /// Number of nodes that use the store; 0: unknown.
    nodes: AtomicU32,
}

impl Standing {
    /// Returns the number of the current state.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    /// Whether the store cannot be used in a state.
    #[inline]
    pub const fn is_lost(epoch: u32) -> bool {
        epoch.is_multiple_of(2)
    }

    /// Changes the state, unless it is the same.
    pub fn set(&self, is_lost: bool) {
        let change = |epoch: u32| (Self::is_lost(epoch) != is_lost).then(|| epoch.wrapping_add(1));
        // Without a change the value stays.
        let _ = self.epoch.fetch_update(Relaxed, Relaxed, change);
    }

    /// Returns the number of nodes, at least 1.
    #[inline]
    pub fn nodes(&self) -> u32 {
        self.nodes.load(Relaxed).max(1)
    }

    /// Sets the number of nodes.
    pub fn set_nodes(&self, nodes: u32) {
        self.nodes.store(nodes, Relaxed);
    }

    /// Returns how many tokens of a key that is new to this node may be taken before the store has answered: half of this node's
    /// share in the burst, at least 1. A single node is bounded by its own rate alone.
    pub fn first_allowance(&self, burst: u32) -> u32 {
        match self.nodes() {
            1 => u32::MAX,
            nodes => burst.div_ceil(nodes.saturating_mul(2)),
        }
    }

    /// Returns how many tokens may be taken in addition to the lease while the store has `left`: half of this node's share, at least
    /// one if there is one, since other nodes take some at the same time. A single node is bounded by its own rate alone.
    pub fn allowance(&self, left: i64) -> u32 {
        match self.nodes() {
            1 => u32::MAX,
            nodes => {
                let share = left.max(0) / i64::from(nodes);
                u32::try_from((share / 2).max(share.min(1))).unwrap_or(u32::MAX)
            }
        }
    }

    /// Returns how many tokens of a key that was not used for some time may be taken before the store has answered, if it has `left`
    /// at most: the allowance for a new key if nothing is missing, otherwise a quarter of this node's share, rounded up.
    pub fn returning_allowance(&self, left: i64, burst: u32) -> u32 {
        match self.nodes() {
            1 => u32::try_from(left.clamp(0, burst.into())).unwrap_or(0),
            _ if left >= i64::from(burst) => self.first_allowance(burst),
            nodes => u32::try_from(left.max(0)).unwrap_or(0).div_ceil(nodes.saturating_mul(4)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_set_again_keeps_its_number() {
        let standing = Standing::default();
        let mut found = Vec::new();
        for is_lost in [true, false, false, true, true, false] {
            standing.set(is_lost);
            assert_eq!(Standing::is_lost(standing.epoch()), is_lost);
            found.push(standing.epoch());
        }
        assert_eq!(found, [0, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn allowances_are_parts_of_a_share() {
        let all = u32::MAX;
        let rows = [
            (0, 10, all, all),
            (1, 10, all, all),
            (2, 10, 3, 2),
            (3, 100, 17, 16),
            (3, 3, 1, 1),
            (3, 2, 1, 0),
            (3, 0, 0, 0),
        ];
        for (nodes, tokens, first, later) in rows {
            let standing = Standing::default();
            standing.set_nodes(nodes);
            let found = (standing.first_allowance(tokens), standing.allowance(tokens.into()));
            assert_eq!(found, (first, later), "{nodes} {tokens}");
        }
        let rows =
            [(1, 7, 7), (1, 30, 20), (1, -1, 0), (2, 20, 5), (2, 19, 3), (2, 1, 1), (2, 0, 0), (2, -3, 0), (3, 50, 4)];
        for (nodes, left, expected) in rows {
            let standing = Standing::default();
            standing.set_nodes(nodes);
            assert_eq!(standing.returning_allowance(left, 20), expected, "{nodes} {left}");
        }
        let pair = Standing::default();
        pair.set_nodes(2);
        assert_eq!((pair.allowance(-5), pair.allowance(1 << 40)), (0, u32::MAX));
    }
}
