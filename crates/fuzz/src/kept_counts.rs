//! Any bytes as a stats file: no panic, and nothing is returned for unknown objects.


use live::counters::{KeptCounts, ObjectCounters};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let read = KeptCounts::read(data, |_, guid| guid.len() % 2 == 0);
    let counters = ObjectCounters::default();
    for kept in read.lines {
        assert!(kept.guid.len() % 2 == 0);
        for (column, value) in kept.values {
            counters.preset(&column, value, Default::default());
        }
    }
}
