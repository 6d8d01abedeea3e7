//! A table compared with a simple model, and used by four threads at once.

mod sums;

use super::*;
use config::span::Span;
use config::spec::{DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

fn store(kind: DataKind, period: u32) -> StoreSpec {
    StoreSpec { kind, elements: 1, period }
}

fn plan(size: u32, expire: Option<u32>) -> TableSpec {
    TableSpec {
        span: Span::default(),
        key: TableKeySpec::Integer,
        size,
        expire,
        nopurge: false,
        recv_only: false,
        write_to: None,
        server_key: ServerKeySpec::Name,
        byte_rate_factor: 1,
        store: vec![store(DataKind::Gpc0, 0), store(DataKind::ConnCur, 0), store(DataKind::HttpReqRate, 1_000)],
        peers: None,
    }
}

fn table(written: &TableSpec) -> Table {
    Table::new(StickTable::new("t", None, written), Key::new(7))
}

fn at(millis: u64) -> Moment {
    Moment::ZERO + Duration::from_millis(millis)
}

fn count(table: &Table, number: u32, now: Moment) -> Option<u64> {
    table.find(&TableKey::integer(number), now, |entry| entry.get(DataKind::Gpc0, 0).unwrap())
}

fn bump(table: &Table, number: u32, now: Moment) -> Option<u64> {
    table.upsert(&TableKey::integer(number), now, |entry| entry.add(DataKind::Gpc0, 0, 1).unwrap())
}

#[test]
fn an_entry_ends_when_it_was_not_refreshed_for_long_enough() {
    let table = table(&plan(10, Some(100)));
    assert_eq!(bump(&table, 1, at(0)), Some(1));
    assert_eq!(count(&table, 1, at(99)), Some(1));
    assert_eq!(bump(&table, 1, at(99)), Some(2));
    assert_eq!((count(&table, 1, at(198)), count(&table, 1, at(199))), (Some(2), None));
    assert_eq!(bump(&table, 1, at(200)), Some(1), "a new one begins at nothing");
    assert_eq!(table.used(), 1);
    assert_eq!(table.sweep(at(299), 10), Some(at(300)));
    assert_eq!((table.sweep(at(300), 10), table.used()), (None, 0));
}

#[test]
fn a_full_table_drops_the_oldest_entry_that_nobody_tracks() {
    let table = table(&plan(3, None));
    let handle = Rc::new(Arc::new(table));
    let tracked = Tracked::new(&handle, &TableKey::integer(1), at(0), |_| {}).unwrap();
    for number in [2, 3, 2, 4] {
        assert!(bump(&handle, number, at(1)).is_some());
    }
    let there: Vec<_> = (1..5).map(|number| count(&handle, number, at(1)).is_some()).collect();
    assert_eq!((there, handle.used()), (vec![true, true, false, true], 3));
    tracked.end(at(2), |_| {});
    assert_eq!((handle.available(), handle.remove(&TableKey::integer(1), at(2))), (0, true));
    assert_eq!(handle.available(), 1);
}

#[test]
fn a_table_that_must_not_purge_refuses() {
    let table = table(&TableSpec { nopurge: true, ..plan(2, Some(50)) });
    assert_eq!([1, 2, 3].map(|number| bump(&table, number, at(0)).is_some()), [true, true, false]);
    assert_eq!(bump(&table, 3, at(49)), None);
    assert_eq!(bump(&table, 3, at(50)), Some(1), "what is over makes room");
}

#[test]
fn tracking_pins_an_entry_and_counts_connections() {
    let handle = Rc::new(Arc::new(table(&plan(2, Some(10)))));
    let key = TableKey::integer(5);
    let read = |now| handle.find(&key, now, |entry| (entry.get(DataKind::ConnCur, 0).unwrap(), entry.trackers));
    let first = Tracked::new(&handle, &key, at(0), |_| {}).unwrap();
    let second = Tracked::new(&handle, &key, at(1), |_| {}).unwrap();
    assert_eq!(read(at(500)), Some((2, 2)), "a tracked entry does not end");
    assert!(!handle.remove(&key, at(500)));
    drop(first);
    assert_eq!(read(at(500)), Some((1, 1)));
    second.end(at(600), |entry| {
        entry.add(DataKind::Gpc0, 0, 3);
    });
    assert_eq!((read(at(609)), count(&handle, 5, at(609)), read(at(610))), (Some((0, 0)), Some(3), None));
}

#[test]
fn peers_are_told_of_the_last_refreshment_of_each_entry_and_not_of_what_they_told() {
    let mut shared = StickTable::new("t", None, &plan(1_000, Some(1_000)));
    shared.shared = true;
    let table = Table::new(shared, Key::new(9));
    for number in [1, 2, 3, 1] {
        bump(&table, number, at(0));
    }
    let words = [41];
    assert!(table.learn(&TableKey::integer(9), at(0), at(50), [(DataKind::Gpc0, 0, &words[..])]));
    let numbers = |after, most| -> Vec<(u32, u8)> {
        table.updates(after, most).updates.iter().map(|update| (update.number, update.key[3])).collect()
    };
    assert_eq!(numbers(0, 10), [(2, 2), (3, 3), (4, 1)]);
    assert_eq!((numbers(2, 1), numbers(4, 10)), (vec![(3, 3)], vec![]));
    assert_eq!((count(&table, 9, at(49)), count(&table, 9, at(50))), (Some(41), None));
    bump(&table, 9, at(49));
    assert_eq!(numbers(4, 10), [(5, 9)]);
}

/// A random operation.
fn step(table: &Table, model: &mut HashMap<u32, (u64, u64)>, random: u64, now: u64, life: u64) {
    let (verb, number) = (random % 8, ((random >> 8) % 48) as u32);
    let key = TableKey::integer(number);
    let alive = model.get(&number).copied().filter(|(_, until)| *until > now).map(|(value, _)| value);
    match verb {
        0..4 => {
            let value = alive.unwrap_or(0) + 1;
            assert_eq!(bump(table, number, at(now)), Some(value));
            model.insert(number, (value, now + life));
        }
        4 => {
            assert!(table.remove(&key, at(now)));
            model.remove(&number);
        }
        5 => {
            let refreshed = table.refresh(&key, at(now), |entry| entry.get(DataKind::Gpc0, 0).unwrap());
            assert_eq!(refreshed, alive);
            if let Some(value) = alive {
                model.insert(number, (value, now + life));
            }
        }
        6 => {
            table.sweep(at(now), 64);
            model.retain(|_, (_, until)| *until > now);
            assert_eq!(table.used() as usize, model.len());
        }
        _ => assert_eq!(count(table, number, at(now)), alive),
    }
}

#[test]
fn a_table_does_what_a_simple_map_does() {
    for seed in 1..40_u64 {
        let table = table(&plan(64 * (1 + (seed as u32 % 3) * 30), Some(200)));
        let (mut model, mut random, mut now) = (HashMap::new(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0);
        for _ in 0..4_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            now += (random >> 40) % 7;
            step(&table, &mut model, random, now, 200);
        }
        for number in 0..48 {
            let expected = model.get(&number).filter(|(_, until)| *until > now).map(|(value, _)| *value);
            assert_eq!(count(&table, number, at(now)), expected, "seed {seed}, key {number}");
        }
    }
}

#[test]
fn four_threads_count_exactly() {
    const ROUNDS: u32 = 5_000;
    let table = Arc::new(table(&plan(4_096, Some(60_000))));
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let table = Arc::clone(&table);
            scope.spawn(move || {
                let handle = Rc::new(table);
                for round in 0..ROUNDS {
                    // Half of it on one key shared by all threads.
                    let number =
                        if round % 2 == 0 { 0 } else { 1 + (round.wrapping_mul(2_654_435_761) ^ thread) % 900 };
                    let key = TableKey::integer(number);
                    let tracked = Tracked::new(&handle, &key, at(1), |entry| {
                        entry.add(DataKind::Gpc0, 0, 1);
                    });
                    let tracked = tracked.unwrap();
                    tracked.change(at(1), |entry| entry.add(DataKind::HttpReqRate, 0, 1));
                    if round % 3 == 0 { drop(tracked) } else { tracked.end(at(1), |_| {}) }
                }
            });
        }
    });
    let (mut total, mut events, mut entries) = (0, 0, 0);
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = table.page(from, 16, at(1), |_, entry| {
            total += entry.get(DataKind::Gpc0, 0).unwrap();
            events += entry.get(DataKind::HttpReqRate, 0).unwrap();
            assert_eq!((entry.get(DataKind::ConnCur, 0), entry.trackers), (Some(0), 0));
            entries += 1;
        });
    }
    assert_eq!((total, events), (u64::from(4 * ROUNDS), u64::from(4 * ROUNDS)));
    assert_eq!((count(&table, 0, at(1)), table.used()), (Some(u64::from(2 * ROUNDS)), entries));
}

#[test]
fn four_threads_never_hold_more_than_there_is_room_for() {
    let table = Arc::new(table(&plan(500, Some(60_000))));
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let table = Arc::clone(&table);
            scope.spawn(move || {
                for round in 0..4_000 {
                    assert!(bump(&table, round * 4 + thread, at(1)).is_some());
                    assert!(table.used() <= 500);
                }
            });
        }
    });
    let there = (0..16_000).filter(|number| count(&table, *number, at(1)).is_some()).count();
    assert_eq!((there, table.used()), (500, 500));
}

/// A generator of numbers below a limit.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
