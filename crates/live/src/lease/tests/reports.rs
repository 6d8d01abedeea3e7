//! What a node reports to the store, and when.

use super::*;

#[test]
fn a_key_in_use_waits_for_its_answer() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 1);
    let asks = urgent(&limit, 10);
    admitted(&limit, "a", 50, 5);
    assert_eq!((due(&limit, 110), urgent(&limit, 110)), (vec![], vec![]));
    settle(&limit, &asks, 1, 0);
    assert_eq!(numbers(&due(&limit, 210)), [(5, 1)]);
}

#[test]
fn what_the_store_does_not_know_is_part_of_the_allowance() {
    let limit = limit(plan(1_000, 1_000), 2);
    admitted(&limit, "a", 0, 1);
    let asks = urgent(&limit, 10);
    assert_eq!(admitted(&limit, "a", 20, 30), 30);
    settle(&limit, &asks, 0, 800);
    assert_eq!(admitted(&limit, "a", 30, 500), 70);
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
