//! Tables of sums: compared with the tables of their origins, their updates, the ends of their entries.

use super::*;

fn summed(size: u32, life: u32) -> Table {
    let written = plan(size, Some(life));
    Table::new(StickTable { summed: true, shared: true, ..StickTable::new("t.agg", None, &written) }, Key::new(7))
}

/// Stores a counter of an origin.
fn put(table: &Table, key: u32, origin: Origin, value: u32, now: Moment, until: Moment) {
    assert!(table.add_origin(&TableKey::integer(key), origin, now, until, [(DataKind::Gpc0, 0, &[value][..])]));
}

fn origin(index: u16) -> Origin {
    Origin { index, epoch: 1 }
}

/// The keys of the updates after a number.
fn updated(table: &Table, after: u32) -> Vec<u8> {
    table.updates(after, 100).updates.iter().map(|update| update.key[3]).collect()
}

#[test]
fn a_sum_is_that_of_its_origins_at_any_time() {
    // A sum of few origins is computed anew, that of many is kept.
    for origins in [5, 40] {
        follow(origins);
    }
}

/// Compares a sum with the tables of its origins.
fn follow(number: u16) {
    let (life, mut numbers) = (3_000, Numbers(5));
    let sum = Table::new(
        StickTable { summed: true, shared: true, ..StickTable::new("t.agg", None, &plan(10, Some(life))) },
        Key::new(7),
    );
    let origins: Vec<Table> = (0..number).map(|_| table(&plan(10, Some(life)))).collect();
    let (key, mut now) = (TableKey::integer(1), 5_000);
    for _ in 0..4_000 {
        now += numbers.below(40) * numbers.below(40);
        let index = numbers.below(u64::from(number)) as u16;
        let own = &origins[usize::from(index)];
        if numbers.below(3) > 0 {
            own.upsert(&key, at(now), |entry| {
                entry.add(DataKind::Gpc0, 0, numbers.below(9));
                entry.add(DataKind::HttpReqRate, 0, numbers.below(100) * numbers.below(100));
            });
            let until = at(now + u64::from(life));
            own.find(&key, at(now), |entry| {
                let data = [DataKind::Gpc0, DataKind::HttpReqRate].map(|kind| (kind, 0, entry.raw(kind, 0).unwrap()));
                assert!(sum.add_origin(&key, Origin { index, epoch: 0 }, at(now), until, data));
            });
        }
        let get = |table: &Table, kind| table.find(&key, at(now), |entry| entry.get(kind, 0).unwrap()).unwrap_or(0);
        let total = |kind| origins.iter().map(|table| get(table, kind)).sum::<u64>();
        assert_eq!(get(&sum, DataKind::Gpc0), total(DataKind::Gpc0), "{now}");
        // The mean age is rounded to a millisecond, each share to an event; a single event does not fade.
        let (found, expected) = (get(&sum, DataKind::HttpReqRate), total(DataKind::HttpReqRate));
        let tolerance = 2 * u64::from(number) + expected / 100;
        assert!(found.abs_diff(expected) <= tolerance, "{now}: {found} is not {expected}");
        assert_eq!(
            sum.origins(&key, at(now)),
            origins.iter().filter(|table| table.find(&key, at(now), |_| ()).is_some()).count()
        );
    }
}

#[test]
fn nothing_but_origins_changes_a_sum() {
    let written = plan(10, Some(1_000));
    let shared = StickTable { summed: true, shared: true, ..StickTable::new("t.agg", None, &written) };
    let sum = Rc::new(std::sync::Arc::new(Table::new(shared, Key::new(7))));
    let (key, origin) = (TableKey::integer(1), Origin { index: 3, epoch: 9 });
    assert!(sum.add_origin(
        &key,
        origin,
        at(0),
        at(1_000),
        [(DataKind::Gpc0, 0, &[5][..]), (DataKind::GlitchCnt, 0, &[5])]
    ));
    assert_eq!(sum.upsert(&key, at(1), |entry| entry.add(DataKind::Gpc0, 0, 1)), Some(None));
    let tracked = Tracked::new(&sum, &key, at(2), |entry| {
        entry.add(DataKind::HttpReqRate, 0, 1);
    })
    .unwrap();
    assert_eq!(
        [DataKind::Gpc0, DataKind::ConnCur, DataKind::HttpReqRate].map(|kind| tracked.get(at(3), kind, 0)),
        [Some(5), Some(0), Some(0)]
    );
    tracked.end(at(4), |_| {});
    assert_eq!((count(&sum, 1, at(5)), sum.last_update()), (Some(5), 1));
    // The values of a former epoch are removed, those of another origin remain.
    assert!(sum.add_origin(&key, Origin { index: 4, epoch: 1 }, at(5), at(1_000), [(DataKind::Gpc0, 0, &[7][..])]));
    assert_eq!(sum.drop_former(Cursor::default(), 64, Origin { epoch: 10, ..origin }, at(6)).next, None);
    assert_eq!((count(&sum, 1, at(6)), sum.last_update()), (Some(7), 3));
    // A newer session of the peer has begun before the removal has reached the entry.
    assert!(sum.add_origin(&key, Origin { epoch: 11, ..origin }, at(6), at(1_000), [(DataKind::Gpc0, 0, &[4][..])]));
    assert_eq!(sum.drop_former(Cursor::default(), 64, Origin { epoch: 10, ..origin }, at(6)).next, None);
    assert_eq!(count(&sum, 1, at(6)), Some(11));
    // An entry that takes the place of another one has none of its values.
    assert!(sum.remove(&key, at(7)));
    assert!(sum.add_origin(&TableKey::integer(2), origin, at(8), at(1_000), [(DataKind::Gpc0, 0, &[1][..])]));
    assert_eq!((count(&sum, 2, at(8)), sum.origins(&TableKey::integer(2), at(8))), (Some(1), 1));
}

#[test]
fn local_rules_do_not_hide_updates_of_sums() {
    let sum = Rc::new(Arc::new(summed(10, 1_000)));
    for key in 1..=3 {
        put(&sum, key, origin(0), key, at(0), at(1_000));
    }
    // The oldest entry is tracked, counted in, and released.
    let tracked = Tracked::new(&sum, &TableKey::integer(1), at(1), |_| {}).unwrap();
    assert_eq!(updated(&sum, 1), [2, 3]);
    tracked.change(at(2), |entry| entry.add(DataKind::Gpc0, 0, 1));
    tracked.end(at(3), |_| {});
    assert!(sum.refresh(&TableKey::integer(1), at(4), |_| ()).is_some());
    assert_eq!((updated(&sum, 1), updated(&sum, 2)), (vec![2, 3], vec![3]));
    // An entry that a rule has created has no values, and is not sent until it has.
    let tracked = Tracked::new(&sum, &TableKey::integer(9), at(5), |_| {}).unwrap();
    assert_eq!((updated(&sum, 0), updated(&sum, 2)), (vec![1, 2, 3], vec![3]));
    put(&sum, 9, origin(0), 5, at(6), at(1_000));
    assert_eq!((updated(&sum, 2), tracked.get(at(6), DataKind::Gpc0, 0)), (vec![3, 9], Some(5)));
}

#[test]
fn an_entry_ends_with_its_last_values() {
    let sum = Rc::new(Arc::new(summed(10, 1_000)));
    let found = |now| count(&sum, 1, at(now));
    put(&sum, 1, origin(0), 3, at(0), at(100));
    put(&sum, 1, origin(1), 4, at(0), at(50));
    assert_eq!([49, 50, 99, 100].map(found), [Some(7), Some(3), Some(3), None]);
    // Values that now end earlier.
    put(&sum, 1, origin(0), 3, at(200), at(900));
    put(&sum, 1, origin(0), 3, at(201), at(300));
    assert_eq!([299, 300].map(found), [Some(3), None]);
    // The same with more origins, whose sum is kept.
    for until in [900, 300] {
        (0..20).for_each(|index| put(&sum, 1, origin(index), 1, at(302), at(until)));
    }
    assert_eq!([302, 303].map(found), [None, None], "they ended before they came");
    (0..20).for_each(|index| put(&sum, 1, origin(index), 1, at(303), at(390)));
    (0..20).for_each(|index| put(&sum, 1, origin(index), 1, at(304), at(380)));
    assert_eq!([379, 380].map(found), [Some(20), None]);
    // Neither tracking nor rules prolong it.
    put(&sum, 1, origin(0), 3, at(400), at(500));
    let tracked = Tracked::new(&sum, &TableKey::integer(1), at(401), |_| {}).unwrap();
    sum.upsert(&TableKey::integer(1), at(402), |_| ());
    assert_eq!([499, 500, 5_000].map(found), [Some(3), Some(0), Some(0)]);
    sum.sweep(at(5_000), 10);
    tracked.end(at(5_001), |_| {});
    assert_eq!((found(5_001), sum.sweep(at(5_001), 10), sum.used()), (None, None, 0));
    // Values that follow while a tracked one had ended.
    let tracked = Tracked::new(&sum, &TableKey::integer(1), at(6_000), |_| {}).unwrap();
    assert_eq!((found(6_000), tracked.place().number() > 0), (Some(0), true));
    put(&sum, 1, origin(0), 3, at(6_001), at(6_100));
    drop(tracked);
    assert_eq!([6_099, 6_100].map(found), [Some(3), None]);
}

#[test]
fn the_zero_of_removed_values_is_sent() {
    let sum = summed(10, 1_000);
    put(&sum, 1, origin(0), 3, at(0), at(100));
    assert_eq!(sum.drop_former(Cursor::default(), 64, Origin { epoch: 2, ..origin(0) }, at(10)).next, None);
    assert_eq!((updated(&sum, 1), count(&sum, 1, at(99)), count(&sum, 1, at(100))), (vec![1], Some(0), None));
}

#[test]
fn a_removal_examines_a_bounded_number_of_origins() {
    const ORIGINS: u16 = 50;
    let sum = summed(100, 1_000);
    for key in 0..40 {
        (0..ORIGINS).for_each(|index| put(&sum, key, origin(index), 1, at(0), at(1_000)));
    }
    let present = Origin { epoch: 2, ..origin(7) };
    let (mut next, mut steps) = (Some(Cursor::default()), 0);
    while let Some(from) = next {
        let removed = sum.drop_former(from, 100, present, at(1));
        // The last slot may exceed the limit by its origins.
        assert!(removed.cost <= 100 + u32::from(ORIGINS), "{removed:?}");
        (next, steps) = (removed.next, steps + 1);
    }
    assert!(steps >= 20, "{steps} steps");
    assert!((0..40).all(|key| count(&sum, key, at(1)) == Some(u64::from(ORIGINS) - 1)));
}

#[test]
fn values_are_stored_without_copying_them_at_each_growth() {
    const KEYS: u32 = 4_000;
    let sum = summed(KEYS, 1_000);
    let capacity = |table: &Table| {
        let shards = (0..table.parts.len() as u32).map(|at| table.shard(at).origins.capacity());
        shards.sum::<usize>()
    };
    let (mut last, mut growths) = (0, 0);
    for key in 0..KEYS {
        put(&sum, key, origin(0), 1, at(0), at(1_000));
        growths += u32::from(std::mem::replace(&mut last, capacity(&sum)) != last);
    }
    // Of 62 entries in each of 64 shards.
    assert!(growths <= 64 * 10, "{growths}");
}
