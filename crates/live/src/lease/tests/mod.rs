//! Limits with a store that is a number: rows of requests and answers.

mod fleet;
mod knowledge;
mod reports;

use super::*;
use config::spec::LostMode;

fn plan(rate: u32, burst: u32) -> LimitPlan {
    let name = "limit".into();
    LimitPlan { store: 0, name, rate, period: Duration::from_secs(1), burst, size: 1_000, lost: LostMode::Local }
}

/// A limit whose store can be used by that number of nodes; 0: it is lost.
fn limit(plan: LimitPlan, nodes: u32) -> Limit {
    let limit = Limit::new(plan, Arc::default(), Key::new(7));
    limit.standing.set_nodes(nodes);
    limit.standing.set(nodes == 0);
    limit
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + millis * 1_000_000)
}

/// Returns the number of requests that are admitted, of `count` at a time.
fn admitted(limit: &Limit, key: &str, millis: u64, count: usize) -> usize {
    (0..count).filter(|_| !limit.exceeds(&LimitKey::text(key.as_bytes()), at(millis))).count()
}

fn urgent(limit: &Limit, millis: u64) -> Vec<Ask> {
    let mut asks = Vec::new();
    limit.ask_urgent(at(millis), Duration::ZERO, 100, &mut asks);
    asks
}

fn due(limit: &Limit, millis: u64) -> Vec<Ask> {
    let mut asks = Vec::new();
    limit.ask_due(at(millis), Duration::ZERO, 100, &mut asks);
    asks
}

fn settle(limit: &Limit, asks: &[Ask], count: u32, left: i64) {
    settle_at(limit, asks, 0, count, left);
}

/// The same at a time, which matters to a node that is the only one.
fn settle_at(limit: &Limit, asks: &[Ask], millis: u64, count: u32, left: i64) {
    asks.iter().for_each(|ask| limit.settle(ask, Grant::Tokens { count, left }, at(millis)));
}

/// What was spent and what is wanted, of one request.
fn numbers(asks: &[Ask]) -> Vec<(i64, u32)> {
    asks.iter().map(|ask| (ask.spent, ask.want)).collect()
}

#[test]
fn a_lost_store_leaves_what_the_line_says() {
    let rows = [(LostMode::Local, 5), (LostMode::Open, 20), (LostMode::Closed, 0)];
    for (lost, expected) in rows {
        let limit = limit(LimitPlan { lost, ..plan(10, 5) }, 0);
        assert_eq!(admitted(&limit, "a", 0, 20), expected, "{lost:?}");
        assert_eq!(urgent(&limit, 10), []);
        let counts = limit.counts();
        assert_eq!((counts.admitted, counts.exceeded), (expected as u64, 20 - expected as u64), "{lost:?}");
    }
}

#[test]
fn the_local_limit_refills() {
    let limit = limit(plan(10, 5), 0);
    let found: Vec<_> = [0, 99, 100, 250, 10_000].iter().map(|millis| admitted(&limit, "a", *millis, 20)).collect();
    assert_eq!(found, [5, 0, 1, 1, 5]);
    assert_eq!(admitted(&limit, "b", 10_000, 20), 5);
}

#[test]
fn a_new_key_has_a_part_of_the_burst_until_the_store_has_answered() {
    // A single node has its own rate alone.
    let rows = [(1, 20), (2, 5), (3, 4), (100, 1)];
    for (nodes, expected) in rows {
        let limit = limit(plan(10, 20), nodes);
        assert_eq!(admitted(&limit, "a", 0, 50), expected, "{nodes}");
        assert_eq!(numbers(&urgent(&limit, 10)), [(expected as i64, 20)], "{nodes}");
        assert_eq!(urgent(&limit, 10), []);
    }
}

#[test]
fn leases_are_spent_and_nothing_else_if_the_store_has_nothing_left() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 1);
    settle(&limit, &urgent(&limit, 10), 7, 0);
    // No more is taken than was requested.
    assert_eq!(admitted(&limit, "a", 20, 50), 2);
    let asks = due(&limit, 110);
    assert_eq!(numbers(&asks), [(0, 22)]);
    settle(&limit, &asks, 7, 0);
    assert_eq!(admitted(&limit, "a", 220, 50), 7);
    settle(&limit, &due(&limit, 310), 0, 80);
    // A part of what is left may be taken in advance, and is reported as spent. No tokens are requested instead of it.
    assert_eq!(admitted(&limit, "a", 320, 50), 20);
    assert_eq!(numbers(&urgent(&limit, 330)), [(20, 58)]);
}

#[test]
fn one_node_never_exceeds_the_limit_whatever_the_store_grants() {
    let limit = limit(plan(10, 5), 1);
    let mut sum = 0;
    for round in 0..100 {
        sum += admitted(&limit, "a", round * 100, 20);
        let asks = [urgent(&limit, round * 100 + 10), due(&limit, round * 100 + 10)].concat();
        settle(&limit, &asks, u32::MAX, i64::MAX);
    }
    assert_eq!(sum, 5 + 99);
}

#[test]
fn tokens_of_idle_keys_are_given_back() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 100);
    settle(&limit, &urgent(&limit, 10), 100, 0);
    assert_eq!(limit.counts().leased, 100);
    // A smaller demand: the excess is given back first.
    admitted(&limit, "a", 100, 10);
    let asks = due(&limit, 110);
    assert_eq!(numbers(&asks), [(-52, 0)]);
    settle(&limit, &asks, 0, 900);
    let mut idle = Vec::new();
    for refresh in 2..10 {
        let asks = due(&limit, refresh * 100 + 10);
        idle.push(numbers(&asks));
        settle(&limit, &asks, 0, 900);
    }
    let expected = [vec![], vec![], vec![], vec![], vec![(-38, 0)], vec![], vec![], vec![]];
    assert_eq!(idle, expected);
    assert_eq!(limit.counts().leased, 0);
}

#[test]
fn a_request_that_was_not_sent_is_repeated() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 100);
    let asks = urgent(&limit, 10);
    assert_eq!(numbers(&asks), [(100, 110)]);
    asks.iter().for_each(|ask| limit.restore(ask));
    admitted(&limit, "a", 20, 10);
    let asks = due(&limit, 110);
    assert_eq!(numbers(&asks), [(110, 38)]);
    settle(&limit, &asks, 38, 0);
    // Tokens that are given back stay with the key.
    admitted(&limit, "a", 120, 1);
    let asks = due(&limit, 310);
    assert_eq!((numbers(&asks), limit.counts().leased), (vec![(-29, 0)], 8));
    asks.iter().for_each(|ask| limit.restore(ask));
    assert_eq!(limit.counts().leased, 37);
    // That of another state of the store, or of another key, is dropped.
    limit.standing.set(true);
    limit.standing.set(false);
    admitted(&limit, "a", 320, 1);
    asks.iter().for_each(|ask| limit.restore(ask));
    assert_eq!(numbers(&urgent(&limit, 330)), [(1, 2)]);
}

#[test]
fn leases_follow_the_demand() {
    // Requests, milliseconds since the last request to the store, tokens wanted: the average demand in 50 ms, and its
    // square root.
    let rows = [(10, 100, 6), (10, 200, 4), (10, 50, 8), (1, 5_000, 1), (5_000, 100, 1_020)];
    for (count, after, expected) in rows {
        let limit = limit(plan(1_000, 1_000), 2);
        admitted(&limit, "a", 0, 1);
        settle(&limit, &urgent(&limit, 0), 0, 0);
        admitted(&limit, "a", after, count);
        let asks = [urgent(&limit, after), due(&limit, after)].concat();
        let wanted: Vec<_> = asks.iter().map(|ask| ask.want).collect();
        assert_eq!(wanted, [expected], "{count} {after}");
    }
}

#[test]
fn what_was_learned_ends_with_the_state_of_the_store() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 1);
    let asks = urgent(&limit, 10);
    limit.standing.set(true);
    settle(&limit, &asks, 1, 900);
    limit.standing.set(false);
    settle(&limit, &asks, 1, 900);
    assert_eq!(limit.counts().leased, 0);
    assert_eq!(admitted(&limit, "a", 20, 900), 250);
    assert_eq!(numbers(&urgent(&limit, 30)), [(250, 930)]);
}

#[test]
fn keys_that_waited_for_a_lost_store_leave_the_list() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 10);
    assert_eq!(urgent(&limit, 10).len(), 1);
    assert_eq!(due(&limit, 100), []);
    limit.standing.set(true);
    limit.standing.set(false);
    admitted(&limit, "b", 200, 3);
    let keys: Vec<_> = due(&limit, 210).into_iter().map(|ask| ask.key).collect();
    assert_eq!(keys, [b"b"]);
    limit.standing.set(true);
    assert_eq!((due(&limit, 310), urgent(&limit, 310)), (vec![], vec![]));
}

#[test]
fn a_key_with_other_data_is_lost_alone() {
    for (lost, expected) in [(LostMode::Local, 4), (LostMode::Open, 20), (LostMode::Closed, 0)] {
        let limit = limit(LimitPlan { lost, ..plan(10, 5) }, 1);
        admitted(&limit, "a", 0, 1);
        urgent(&limit, 0).iter().for_each(|ask| limit.settle(ask, Grant::Foreign, at(0)));
        assert_eq!((admitted(&limit, "a", 10, 20), admitted(&limit, "b", 10, 20)), (expected, 5), "{lost:?}");
        assert_eq!(limit.counts().foreign, 1);
    }
}

#[test]
fn keys_are_bounded_and_idle_ones_are_evicted_first() {
    for size in [1, 10, 1_000, 100_000] {
        let limit = limit(LimitPlan { size, ..plan(10, 5) }, 2);
        let size = u64::from(size);
        for round in 0..2 * size + 100 {
            admitted(&limit, &round.to_string(), 0, 1);
        }
        let counts = limit.counts();
        assert!(counts.keys <= size && counts.keys >= size / 2, "{size} {counts:?}");
        assert_eq!(counts.evicted, 2 * size + 100 - counts.keys);
    }
    let limit = limit(LimitPlan { size: 50, ..plan(10, 5) }, 0);
    for round in 0..1_000 {
        admitted(&limit, "busy", 0, 2);
        admitted(&limit, &round.to_string(), 0, 1);
    }
    // Its state was never lost.
    assert_eq!(admitted(&limit, "busy", 0, 1), 0);
}

#[test]
fn an_answer_for_an_evicted_key_is_dropped() {
    let limit = limit(LimitPlan { size: 1, ..plan(1_000, 1_000) }, 2);
    admitted(&limit, "a", 0, 1);
    let asks = urgent(&limit, 10);
    admitted(&limit, "b", 10, 1);
    settle(&limit, &asks, 1, 0);
    assert_eq!(limit.counts().leased, 0);
    // The list of urgent keys has the new one.
    let keys: Vec<_> = urgent(&limit, 20).into_iter().map(|ask| ask.key).collect();
    assert_eq!(keys, [b"b"]);
}

/// Shards that a call has not reached are the first ones of the next call.
#[test]
fn each_key_is_refreshed_although_a_call_is_bounded() {
    let limit = limit(LimitPlan { size: 100_000, ..plan(10, 5) }, 2);
    let names: Vec<String> = (0..1_000).map(|key| key.to_string()).collect();
    names.iter().for_each(|key| _ = admitted(&limit, key, 0, 1));
    let mut asks = urgent(&limit, 0);
    while asks.len() < 1_000 {
        limit.ask_urgent(at(0), Duration::ZERO, 300, &mut asks);
    }
    settle(&limit, &asks, 1, 1);
    let mut refreshed = std::collections::BTreeSet::new();
    for call in 1..=20 {
        // All keys are in use.
        names.iter().for_each(|key| _ = admitted(&limit, key, call * 100, 1));
        let mut asks = Vec::new();
        limit.ask_due(at(call * 100), Duration::ZERO, 150, &mut asks);
        settle(&limit, &asks, 1, 1);
        refreshed.extend(asks.into_iter().map(|ask| ask.key));
    }
    assert_eq!(refreshed.len(), 1_000);
}

#[test]
fn the_requests_of_one_call_are_bounded() {
    let limit = limit(LimitPlan { size: 100_000, ..plan(10, 5) }, 2);
    for key in 0..1_000 {
        admitted(&limit, &key.to_string(), 0, 1);
    }
    let mut asks = Vec::new();
    while asks.len() < 1_000 {
        let before = asks.len();
        limit.ask_urgent(at(10), Duration::ZERO, 300, &mut asks);
        assert!(asks.len() - before <= 300 && asks.len() > before);
    }
    asks.sort_by(|one, other| one.key.cmp(&other.key));
    asks.dedup_by(|one, other| one.key == other.key);
    assert_eq!(asks.len(), 1_000);
}
