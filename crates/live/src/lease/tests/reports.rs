//! What a node reports to the store, and when.

use super::*;

#[test]
fn a_scarce_key_is_requested_again_before_its_answer() {
    let limit = limit(plan(1_000, 10), 2);
    assert_eq!(admitted(&limit, "a", 0, 10), 3);
    let mut asks = urgent(&limit, 10);
    // What is on its way is not requested twice.
    assert_eq!(numbers(&asks), [(3, 13)]);
    for (millis, count, expected) in [(15, 10, None), (26, 10, Some((0, 15))), (46, 1, None)] {
        admitted(&limit, "a", millis, count);
        let more = urgent(&limit, millis + 4);
        assert_eq!(numbers(&more), expected.into_iter().collect::<Vec<_>>(), "{millis}");
        asks.extend(more);
    }
    settle(&limit, &asks, 5, 0);
    assert_eq!(limit.counts().leased, 10);
}

#[test]
fn the_requests_of_a_key_without_an_answer_are_bounded() {
    let limit = limit(plan(1_000, 1_000), 2);
    let mut asks = Vec::new();
    for round in 0..100 {
        admitted(&limit, "a", 20 * round, 1);
        asks.extend(urgent(&limit, 20 * round));
        asks.extend(due(&limit, 20 * round));
    }
    assert_eq!(asks.len(), 16);
    settle_at(&limit, &asks, 2_000, 0, 0);
    admitted(&limit, "a", 2_000, 1);
    assert_eq!(urgent(&limit, 2_000).len(), 1);
    // With a store that takes a second, these are requests of a second.
    let slow = super::limit(plan(1_000, 1_000), 2);
    let mut asks = Vec::new();
    for tick in 0..100 {
        admitted(&slow, "a", 10 * tick, 1);
        slow.ask_urgent(at(10 * tick), Duration::from_secs(1), 100, &mut asks);
    }
    assert!((7..=9).contains(&asks.len()), "{}", asks.len());
}

#[test]
fn an_answer_that_is_late_finds_its_key_in_use() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 10);
    let asks = urgent(&limit, 10);
    (1..=20).for_each(|refresh| assert_eq!(due(&limit, 100 * refresh), []));
    settle(&limit, &asks, 5, 0);
    assert_eq!(numbers(&due(&limit, 2_100)), [(-5, 0)]);
}

#[test]
fn a_key_with_other_data_is_tried_again_with_all_keys() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 10);
    urgent(&limit, 10).iter().for_each(|ask| limit.settle(ask, Grant::Foreign, at(20)));
    admitted(&limit, "a", 50, 10);
    assert_eq!(urgent(&limit, 60), []);
    assert_eq!(due(&limit, 110).len(), 1);
}

/// So that keys that are far above their limits do not occupy the store.
#[test]
fn the_scarce_keys_of_a_call_are_bounded() {
    let limit = limit(LimitPlan { size: 64, ..plan(1_000, 1_000) }, 2);
    let names: Vec<String> = (0..20).map(|key| key.to_string()).collect();
    names.iter().for_each(|key| _ = admitted(&limit, key, 0, 1));
    // New keys are all requested.
    let mut asks = urgent(&limit, 10);
    assert_eq!(asks.len(), 20);
    names.iter().for_each(|key| _ = admitted(&limit, key, 30, 1));
    asks.extend(urgent(&limit, 30));
    assert_eq!(asks.len(), 24);
    // The others are requested with all keys in use.
    names.iter().for_each(|key| _ = admitted(&limit, key, 110, 1));
    asks.extend(due(&limit, 110));
    assert_eq!(asks.len(), 40);
    // So are those that return after a pause.
    settle(&limit, &asks, 0, 900);
    for refresh in 2..10 {
        settle(&limit, &due(&limit, 100 * refresh), 0, 900);
    }
    names.iter().for_each(|key| _ = admitted(&limit, key, 5_000, 1));
    assert_eq!(urgent(&limit, 5_000).len(), 20);
}

#[test]
fn what_the_store_does_not_know_is_part_of_the_allowance() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 1);
    let asks = urgent(&limit, 10);
    assert_eq!(admitted(&limit, "a", 20, 30), 30);
    settle(&limit, &asks, 0, 800);
    assert_eq!(admitted(&limit, "a", 30, 100), 100);
    // Reported, but the answer is that of an earlier request.
    let again = urgent(&limit, 30);
    assert_eq!(again[0].spent, 130);
    admitted(&limit, "a", 50, 10);
    let last = urgent(&limit, 50);
    settle(&limit, &again, 0, 800);
    assert_eq!((last[0].spent, admitted(&limit, "a", 60, 500)), (10, 190));
}

#[test]
fn a_debt_is_reported_although_nothing_is_wanted() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 10);
    let asks = urgent(&limit, 10);
    admitted(&limit, "a", 50, 5);
    settle(&limit, &asks, 8, 500);
    let asks = due(&limit, 110);
    assert_eq!(numbers(&asks), [(5, 0)]);
    // It was not sent. The next one gives the tokens back as well.
    asks.iter().for_each(|ask| limit.restore(ask));
    assert_eq!(numbers(&due(&limit, 210)), [(5 - 8, 0)]);
}

#[test]
fn a_key_that_takes_the_place_of_another_one_is_listed_once() {
    let limit = limit(LimitPlan { size: 1, ..plan(1_000, 1_000) }, 2);
    for key in ["a", "b", "c"] {
        admitted(&limit, key, 0, 1);
    }
    let asks = urgent(&limit, 10);
    assert_eq!(asks.len(), 1);
    settle(&limit, &asks, 1, 0);
    assert_eq!(limit.counts().leased, 1);
}

#[test]
fn each_state_of_the_store_is_learned_by_a_single_node() {
    let limit = limit(plan(10, 20), 1);
    for (millis, left, expected) in [(0, 19, 19), (10_000, 3, 4)] {
        limit.standing.set(true);
        limit.standing.set(false);
        assert_eq!(admitted(&limit, "a", millis, 1), 1);
        settle_at(&limit, &urgent(&limit, millis + 10), millis + 10, 0, left);
        assert_eq!(admitted(&limit, "a", millis + 20, 50), expected, "{millis}");
    }
}

#[test]
fn debts_have_the_age_of_their_first_token() {
    let limit = limit(plan(100, 100), 2);
    // Milliseconds, tokens spent, time of the request to the store, and the age in milliseconds.
    let rows = [(0, 10, 10, 10), (5_000, 5, 5_050, 50), (10_000, 5, 20_000, 1_000), (20_000, 0, 20_100, 0)];
    for (millis, count, asked, expected) in rows {
        assert_eq!(admitted(&limit, "a", millis, count), count);
        let asks = [urgent(&limit, asked), due(&limit, asked)].concat();
        settle_at(&limit, &asks, asked, 0, 100);
        let ages: Vec<_> = asks.iter().map(|ask| ask.age.as_millis()).collect();
        assert_eq!(ages, vec![expected; usize::from(count > 0)], "{millis}");
    }
    // The first of these was added again before the others were taken.
    admitted(&limit, "a", 30_000, 1);
    admitted(&limit, "a", 30_080, 20);
    assert_eq!(urgent(&limit, 30_090)[0].age, Duration::from_millis(20));
}
