//! Measured costs of rules on one worker (`set profiling rules on`): the number of evaluations and executions, and the time
//! spent. Must never read a clock, and never cost more than a check of a flag while nothing is measured.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

/// Cost of one rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCost {
    /// Number of evaluations.
    pub evaluated: u64,
    /// Number of executions.
    pub taken: u64,
    /// Time of its condition and its action, without waiting.
    pub time: Duration,
}

impl RuleCost {
    /// Adds the cost of another one.
    pub fn add(&mut self, other: RuleCost) {
        self.evaluated += other.evaluated;
        self.taken += other.taken;
        self.time += other.time;
    }
}

/// Costs of rules by the address of their list, which is constant while its configuration exists.
pub type ListCosts = HashMap<usize, Box<[RuleCost]>>;

/// Returns the address of a list.
pub fn key<T>(rules: &[T]) -> usize {
    rules.as_ptr() as usize
}

/// Costs of the rules of the newest configuration that was measured.
#[derive(Debug, Default)]
pub struct RuleCosts {
    is_on: Cell<bool>,
    generation: Cell<u32>,
    lists: RefCell<ListCosts>,
}

impl RuleCosts {
    /// Whether rules are measured.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Starts or stops measuring. Starting clears earlier results.
    pub fn measure(&self, on: bool) {
        if on && !self.is_on.get() {
            self.lists.borrow_mut().clear();
        }
        self.is_on.set(on);
    }

    /// Adds a cost to the rule at `at` of a list of the configuration with that number. Costs of an older configuration than the
    /// newest one are ignored.
    pub fn add<T>(&self, generation: u32, rules: &[T], at: usize, cost: RuleCost) {
        // Generation numbers wrap.
        if generation != self.generation.get() {
            if generation.wrapping_sub(self.generation.get()) > u32::MAX / 2 {
                return;
            }
            self.generation.set(generation);
            self.lists.borrow_mut().clear();
        }
        let mut lists = self.lists.borrow_mut();
        let costs = lists.entry(key(rules)).or_insert_with(|| vec![RuleCost::default(); rules.len()].into());
        if let Some(sum) = costs.get_mut(at) {
            sum.add(cost);
        }
    }

    /// Returns the costs of the configuration with that number.
    pub fn of(&self, generation: u32) -> ListCosts {
        if generation == self.generation.get() { self.lists.borrow().clone() } else { ListCosts::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONCE: RuleCost = RuleCost { evaluated: 1, taken: 0, time: Duration::from_nanos(7) };

    #[test]
    fn a_newer_configuration_begins_anew_and_an_older_one_does_not_count() {
        let (costs, first, second) = (RuleCosts::default(), [(); 0], [1_u8, 2]);
        costs.measure(true);
        for _ in 0..2 {
            costs.add(3, &second, 1, ONCE);
        }
        let twice = RuleCost { evaluated: 2, taken: 0, time: Duration::from_nanos(14) };
        assert_eq!(*costs.of(3)[&key(&second)], [RuleCost::default(), twice]);
        costs.add(2, &second, 1, ONCE);
        assert_eq!(costs.of(3)[&key(&second)][1], twice);
        assert!(costs.of(2).is_empty());
        costs.add(4, &second, 0, ONCE);
        costs.add(4, &first, 5, ONCE);
        assert_eq!(*costs.of(4)[&key(&second)], [ONCE, RuleCost::default()]);
        // Results are kept until measuring starts again.
        costs.measure(false);
        assert!(!costs.is_on() && !costs.of(4).is_empty());
        costs.measure(true);
        assert!(costs.of(4).is_empty());
    }
}
