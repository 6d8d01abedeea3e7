//! What a node does with what it does not know of a key: after a pause, after an eviction, and when the number of nodes changes.

use super::*;

/// Requests of 10 per second, 20 at once, of `nodes` nodes.
fn twenty(nodes: u32) -> Limit {
    limit(plan(10, 20), nodes)
}

/// Lets a key leave those in use; the store has `left` tokens.
fn idle(limit: &Limit, from: u64, left: i64) -> u64 {
    let mut millis = from;
    for _ in 0..8 {
        settle_at(limit, &due(limit, millis), millis, 0, left);
        millis += 100;
    }
    assert_eq!(due(limit, millis), []);
    millis
}

#[test]
fn keys_are_bounded_as_soon_as_there_are_several_nodes() {
    for (nodes, expected) in [(2, 5), (4, 3), (100, 1)] {
        let limit = twenty(1);
        admitted(&limit, "a", 0, 1);
        settle_at(&limit, &urgent(&limit, 10), 10, 0, 19);
        limit.standing.set_nodes(nodes);
        assert_eq!(admitted(&limit, "a", 50, 50), expected, "{nodes}");
        // An answer that was given before is no reason to admit more.
        let limit = twenty(1);
        admitted(&limit, "a", 0, 1);
        let end = idle(&limit, 10, 19);
        limit.standing.set_nodes(nodes);
        assert_eq!(admitted(&limit, "a", end, 50), expected, "{nodes}, idle");
    }
}

#[test]
fn a_key_that_returns_has_a_part_of_what_the_store_has_added() {
    // Tokens left, seconds until the key is used again, requests admitted.
    let rows = [(0, 1, 2), (0, 2, 5), (0, 3_600, 5), (-9, 1, 1), (-20, 2, 0), (-20, 3, 2), (19, 1, 5)];
    for (left, seconds, expected) in rows {
        let limit = twenty(2);
        assert_eq!(admitted(&limit, "a", 0, 50), 5);
        settle_at(&limit, &urgent(&limit, 10), 10, 0, left);
        admitted(&limit, "a", 20, 1);
        let asked = 110;
        settle_at(&limit, &due(&limit, asked), asked, 0, left);
        idle(&limit, 200, left);
        let back = asked + seconds * 1_000;
        assert_eq!(admitted(&limit, "a", back, 50), expected, "{left} {seconds}");
        // The store is asked at once.
        assert_eq!(urgent(&limit, back + 10).len(), 1, "{left} {seconds}");
    }
}

#[test]
fn a_key_that_returns_needs_what_it_needs_now() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 1_000);
    settle_at(&limit, &urgent(&limit, 10), 10, 0, 0);
    let end = idle(&limit, 110, 0);
    admitted(&limit, "a", end, 500);
    // Its allowance is used up; 500 requests in 10 ms need 522 tokens, and those of the past more.
    let wanted: Vec<_> = urgent(&limit, end + 10).iter().map(|ask| ask.want).collect();
    assert_eq!(wanted, [522]);
}

#[test]
fn a_node_without_tokens_asks_at_once_while_the_store_has_some() {
    // Tokens left, and those of them that may be taken before the next answer.
    for (left, taken) in [(4, 1), (3, 1), (2, 1), (1, 0)] {
        let limit = twenty(2);
        assert_eq!(admitted(&limit, "a", 0, 50), 5);
        settle_at(&limit, &urgent(&limit, 10), 10, 0, left);
        assert_eq!((admitted(&limit, "a", 20, 2), urgent(&limit, 20).len()), (taken, 0), "{left}, just asked");
        assert_eq!((admitted(&limit, "a", 25, 1), urgent(&limit, 30).len()), (0, 1), "{left}");
    }
    // If it has none, when it has added one.
    for left in [0, -1] {
        let limit = twenty(2);
        admitted(&limit, "a", 0, 50);
        settle_at(&limit, &urgent(&limit, 10), 10, 0, left);
        assert_eq!((admitted(&limit, "a", 100, 1), urgent(&limit, 100).len()), (0, 0), "{left}");
        assert_eq!((admitted(&limit, "a", 105, 1), urgent(&limit, 110).len()), (0, 1), "{left}");
    }
    // Nor if the rate of this node does not allow more.
    let limit = limit(plan(10, 1), 2);
    assert_eq!(admitted(&limit, "a", 0, 1), 1);
    settle_at(&limit, &urgent(&limit, 10), 10, 0, 3);
    assert_eq!((admitted(&limit, "a", 40, 1), urgent(&limit, 50).len()), (0, 0));
}

#[test]
fn a_single_node_learns_what_it_has_forgotten() {
    let limit = limit(LimitPlan { size: 1, ..plan(10, 20) }, 1);
    assert_eq!(admitted(&limit, "a", 0, 50), 20);
    settle_at(&limit, &urgent(&limit, 10), 10, 0, 0);
    admitted(&limit, "b", 20, 1);
    // The key was evicted. Later tokens make up for what is admitted until the store has answered.
    assert_eq!(admitted(&limit, "a", 100, 50), 20);
    let asks = urgent(&limit, 110);
    assert_eq!(numbers(&asks), [(20, 20)]);
    settle_at(&limit, &asks, 110, 0, -19);
    assert_eq!([1_900, 2_010, 2_110].map(|millis| admitted(&limit, "a", millis, 50)), [0, 1, 1]);
    // The store is believed once.
    settle_at(&limit, &due(&limit, 2_120), 2_120, 0, -100);
    assert_eq!(admitted(&limit, "a", 2_210, 50), 1);
}

#[test]
fn a_single_node_continues_with_what_a_former_process_has_left() {
    // Tokens left after the first request, and requests that are admitted in addition; rounding may add one.
    for (left, expected) in [(3, 4), (0, 1), (-1, 0), (-1_000_000, 0), (19, 19), (1_000, 19)] {
        let limit = twenty(1);
        assert_eq!(admitted(&limit, "a", 0, 1), 1);
        settle_at(&limit, &urgent(&limit, 10), 10, 0, left);
        assert_eq!(admitted(&limit, "a", 20, 50), expected, "{left}");
        // No answer blocks a key for longer than the store itself would.
        assert_eq!(admitted(&limit, "a", 20_000, 50), 20, "{left}");
    }
}

#[test]
fn what_is_on_its_way_to_the_store_is_taken() {
    let limit = twenty(1);
    admitted(&limit, "a", 0, 1);
    let first = urgent(&limit, 10);
    admitted(&limit, "a", 20, 4);
    let second = due(&limit, 110);
    assert_eq!(numbers(&second), [(4, 1)]);
    // Of the 10 that were left, the second request takes 4. Rounding, and what was added, are one each.
    settle_at(&limit, &first, 120, 0, 10);
    assert_eq!(admitted(&limit, "a", 120, 50), 8);
}

#[test]
fn a_node_that_stays_alone_learns_what_the_others_have_taken() {
    let limit = twenty(2);
    admitted(&limit, "a", 0, 1);
    settle_at(&limit, &urgent(&limit, 10), 10, 0, 2);
    limit.standing.set_nodes(1);
    let end = idle(&limit, 110, 2);
    // It is the last one, and has what the store has left: 2, and 9 that were added.
    assert_eq!(admitted(&limit, "a", end, 50), 11);
    settle_at(&limit, &urgent(&limit, end + 10), end + 10, 0, 0);
    assert!(admitted(&limit, "a", end + 20, 50) <= 1);
}

#[test]
fn a_single_node_is_exact_with_a_store_that_counts_late() {
    for (rate, burst) in [(10, 20), (333, 7), (1_000, 1_000)] {
        let (one, alone) = (limit(plan(rate, burst), 1), limit(plan(rate, burst), 0));
        let mut sums = [0, 0];
        for millis in (0..20_000).step_by(7) {
            let count = if millis % 3_000 < 1_500 { 9 } else { 0 };
            sums[0] += admitted(&one, "a", millis, count);
            sums[1] += admitted(&alone, "a", millis, count);
            if millis % 91 == 0 {
                let left = i64::from(burst) - sums[0] as i64;
                settle_at(&one, &urgent(&one, millis), millis, 0, left.max(0));
                settle_at(&one, &due(&one, millis), millis, 0, left.max(0));
            }
        }
        assert_eq!(sums[0], sums[1], "{rate} {burst}");
    }
}
