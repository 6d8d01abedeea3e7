//! The script of limits, executed as the store would.

use testkit::sleep;

use crate::redis::{Answer, Redis};
use crate::world::*;

const TEXT: &str = include_str!("../../src/store/script.lua");

/// Takes tokens of one key: a token is added each 10 ms, the burst is 20, and 5 are granted in advance. `ask`: tokens spent, their age
/// in milliseconds, and tokens wanted. Returns the tokens granted and those left.
fn take(redis: &Redis, key: &str, ask: [i64; 3]) -> [i64; 2] {
    let [spent, age, want] = [ask[0], ask[1] * 1_000, ask[2]].map(|number| number.to_string());
    let answer = redis.command(&["EVAL", TEXT, "1", key, "take", "10000.000", "20", "5", &spent, &age, &want]);
    match answer {
        Answer::Array(numbers) => match numbers[..] {
            [Answer::Integer(count), Answer::Integer(left)] => [count, left],
            ref other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn run(test: impl AsyncFn(Redis) + Copy + 'static) {
    let worlds = config(&format!("frontend f\n bind {WEIR}\n http-request return status 200\n"));
    worlds.workers(&[1]).seeds(0..1).run(move |_| async move { test(Redis::default()).await });
}

#[test]
fn tokens_are_taken_and_given_back() {
    run(async |redis| {
        // Milliseconds since the row before, request, answer.
        let rows = [
            (0, [0, 0, 8], [8, 12]),
            (0, [3, 0, 0], [0, 9]),
            // In advance.
            (0, [0, 0, 50], [14, -5]),
            (0, [0, 0, 1], [0, -5]),
            (100, [0, 0, 3], [3, 2]),
            (0, [-10, 0, 0], [0, 12]),
            (0, [-10, 0, 0], [0, 20]),
            // The store had never more than the burst.
            (1_000, [0, 0, 50], [25, -5]),
            // Debts are bounded.
            (0, [1_000_000, 0, 10], [0, -145]),
            (1_650, [0, 0, 50], [25, -5]),
        ];
        for (pause, ask, expected) in rows {
            sleep(pause).await;
            assert_eq!(take(&redis, "key", ask), expected, "{ask:?}");
        }
    });
}

#[test]
fn what_is_reported_late_counts_from_its_time() {
    run(async |redis| {
        // The burst, the time since then in which tokens were added, what was spent during which time, and what is left.
        let rows = [
            (0, [10, 0, 0], 10),
            (0, [10, 50, 0], 15),
            (0, [10, 200, 0], 20),
            (0, [30, 100, 0], 0),
            // The burst was used up until a time that is within the age.
            (100, [10, 100, 0], 0),
            (250, [10, 100, 0], 15),
            (5_000, [10, 50, 0], 15),
        ];
        for (at, (pause, ask, left)) in rows.into_iter().enumerate() {
            let key = format!("key{at}");
            if pause > 0 {
                assert_eq!(take(&redis, &key, [20, 0, 0]), [0, 0]);
                sleep(pause).await;
            }
            assert_eq!(take(&redis, &key, ask), [0, left], "{pause} {ask:?}");
        }
    });
}

#[test]
fn keys_expire_and_other_data_stay() {
    run(async |redis| {
        take(&redis, "key", [5, 0, 0]);
        assert_eq!(redis.command(&["PTTL", "key"]), Answer::Integer(2_050));
        take(&redis, "idle", [0, 0, 0]);
        assert_eq!(redis.keys("idle"), [""; 0]);
        // Much more is given back than was taken.
        take(&redis, "full", [20, 0, 0]);
        take(&redis, "full", [-300, 0, 0]);
        assert_eq!(redis.keys("full"), [""; 0]);
        for data in ["text", "1e300", "nan"] {
            redis.set("other", data.as_bytes());
            assert_eq!(take(&redis, "other", [1, 0, 1]), [-1, 0], "{data}");
            assert_eq!(redis.command(&["GET", "other"]), Answer::Text(data.into()));
        }
    });
}

#[test]
fn nodes_count_until_their_lifetime_ends() {
    run(async |redis| {
        let nodes = |node: &str| redis.command(&["EVAL", TEXT, "1", "nodes", "nodes", node, "5000000"]);
        assert_eq!([nodes("a"), nodes("b"), nodes("a")], [1, 2, 2].map(Answer::Integer));
        sleep(3_000).await;
        assert_eq!(nodes("a"), Answer::Integer(2));
        sleep(2_001).await;
        assert_eq!(nodes("a"), Answer::Integer(1));
    });
}
