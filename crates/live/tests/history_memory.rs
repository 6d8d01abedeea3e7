//! Test that a history at full size takes no more memory than its bound, counted by the allocator. Must never share its
//! process with another test, whose allocations would be counted.

use std::alloc::System;

use base::WallTime;
use live::history::{
    Activities, CAPACITY, History, HistoryKind, INTERVAL, Interval, MOST_BYTES, MOST_SERIES, Reading, Totals,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use weir_live as live;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// More proxies than are considered, each a frontend and a backend.
const PROXIES: usize = 50_000;
/// As many proxies in most intervals: the others would take long.
const USUAL: usize = 500;

/// Records an interval in which the later proxies are the busier ones.
fn record(history: &History, number: u64, proxies: usize) {
    let totals = || (0..proxies as u64).map(|index| Some(number * index)).collect();
    let activities = Activities { frontends: totals(), backends: totals() };
    let mut kept = history.kept();
    let mut readings =
        vec![Reading { totals: Totals { requests: number, ..Totals::default() }, ..Reading::of_process() }];
    for kind in [HistoryKind::Frontend, HistoryKind::Backend] {
        for index in (0..proxies).filter(|index| kept.has(kind, *index)) {
            let name = format!("{index:0>300}").into();
            readings.push(Reading { kind, index, name, ..Reading::of_process() });
        }
    }
    let end = WallTime { seconds: number as i64 * 10, nanos: 0 };
    let interval = (number > 0).then_some(Interval { end, length: INTERVAL });
    history.record(interval, readings, &activities);
}

#[test]
fn a_full_history_takes_no_more_than_its_bound() {
    let region = Region::new(ALLOCATOR);
    let taken = || {
        let change = region.change();
        change.bytes_allocated.saturating_sub(change.bytes_deallocated)
    };
    let (history, mut most) = (History::default(), 0);
    for number in 0..=CAPACITY as u64 {
        let is_last = number + 5 > CAPACITY as u64;
        record(&history, number, if is_last { PROXIES } else { USUAL });
        most = most.max(taken());
    }
    assert_eq!(history.objects(HistoryKind::Backend).len(), MOST_SERIES);
    assert!(most <= MOST_BYTES, "{most}");
    // Most of it is there, and the history counts it like the allocator.
    assert!(taken() > MOST_BYTES * 9 / 10, "{}", taken());
    assert!(history.bytes().abs_diff(taken()) < 4096, "{} {}", history.bytes(), taken());
    history.end();
    assert!(taken() < 4096, "{}", taken());
}
