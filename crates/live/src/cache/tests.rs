//! Tests of the caches' interface.

use super::*;
use config::spec::EarlyHints;
use std::time::Duration;

fn plan(blocks: u32) -> CachePlan {
    CachePlan {
        name: "c".into(),
        blocks,
        largest: u64::from(blocks) * BLOCK / 2,
        age: 60,
        varies: true,
        variants: 2,
        hints: EarlyHints::Off,
        hint_blocks: 0,
        coalesce: None,
        stale: Duration::ZERO,
        stale_if_error: Duration::ZERO,
        ranges: false,
        standard: false,
        disk: 0,
        disk_path: None,
        tag_field: None,
    }
}

fn cache(plan: CachePlan) -> Arc<Cache> {
    Arc::new(Cache::new(plan, Key::new(7)))
}

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

fn object(seconds: u64) -> Object {
    let mut head = Head::new();
    head.set_status(200, b"OK");
    Object::new(head, Lifetime { stored: at(0), age: 0, left: Duration::from_secs(seconds) })
}

fn store(cache: &Arc<Cache>, key: &str, bytes: usize) -> bool {
    let Some(mut storing) = cache.begin(key.as_bytes(), &Signature::default(), object(60), None) else { return false };
    let fits = storing.push(&vec![b'x'; bytes]);
    if fits {
        storing.finish();
    }
    fits
}

fn hit(cache: &Cache, key: &str, seconds: u64) -> bool {
    matches!(cache.look_up(key.as_bytes(), &Signature::default(), at(seconds)), CacheLookup::Hit(_))
}

#[test]
fn whole_responses_are_found_and_no_others() {
    let cache = cache(plan(64));
    let mut storing = cache.begin(b"a", &Signature::default(), object(60), Some(5)).unwrap();
    assert!(storing.push(b"hel") && !hit(&cache, "a", 0), "it is not whole");
    assert!(cache.begin(b"a", &Signature::default(), object(60), Some(5)).is_none(), "one at a time");
    drop(storing);
    assert!(!hit(&cache, "a", 0) && cache.available() == 64);
    let mut short = cache.begin(b"a", &Signature::default(), object(60), Some(5)).unwrap();
    assert!(short.push(b"hel"));
    short.finish();
    assert!(!hit(&cache, "a", 0) && cache.available() == 64, "bytes are missing");
    let mut long = cache.begin(b"a", &Signature::default(), object(60), Some(5)).unwrap();
    assert!(!long.push(b"hello!"), "more than was announced");
    drop(long);
    let mut whole = cache.begin(b"a", &Signature::default(), object(60), Some(5)).unwrap();
    assert!(whole.push(b"hel") && whole.push(b"lo"));
    whole.finish();
    let CacheLookup::Hit(found) = cache.look_up(b"a", &Signature::default(), at(7)) else { panic!("it is there") };
    assert_eq!((found.body.concat(), found.age(at(7))), (b"hello".to_vec(), 7));
    assert!(!hit(&cache, "b", 0) && hit(&cache, "a", 59) && !hit(&cache, "a", 60));
    drop(found);
    assert_eq!(cache.available(), 64, "what is over is removed");
}

#[test]
fn what_was_not_used_for_the_longest_time_makes_room() {
    let cache = cache(plan(64));
    for key in ["a", "b", "c"] {
        assert!(store(&cache, key, 20_000));
    }
    assert!(hit(&cache, "a", 1));
    assert!(store(&cache, "d", 20_000));
    assert_eq!(["a", "b", "c", "d"].map(|key| hit(&cache, key, 1)), [true, false, true, true]);
    // An entry with readers is kept, and counted.
    let CacheLookup::Hit(read) = cache.look_up(b"c", &Signature::default(), at(1)) else { panic!("it is there") };
    ask(&cache, "e", 5);
    ask(&cache, "f", 5);
    assert!(store(&cache, "e", 30_000) && store(&cache, "f", 30_000));
    assert!(hit(&cache, "c", 1) && !hit(&cache, "a", 1));
    drop(read);
    assert!(!store(&cache, "g", 40_000), "more than a response may have");
    assert!(!store(&cache, "h", 30_000), "the others are asked for more often");
    cache.remove(b"c");
    cache.remove(b"e");
    cache.remove(b"f");
    assert_eq!(cache.available(), 64);
}

/// Looks up a key, hit or miss.
fn ask(cache: &Cache, key: &str, times: usize) {
    (0..times).for_each(|_| drop(cache.look_up(key.as_bytes(), &Signature::default(), at(1))));
}

/// Serves a request, storing the response on a miss. Returns whether it was a hit.
fn serve(cache: &Arc<Cache>, key: &str) -> bool {
    let found = hit(cache, key, 1);
    if !found {
        store(cache, key, 100);
    }
    found
}

/// A crawler requests everything once, while other clients request the same keys repeatedly.
#[test]
fn what_is_asked_for_once_drives_out_nothing_that_is_asked_for_again() {
    let cache = cache(plan(200));
    let known: Vec<String> = (0..150).map(|number| format!("known {number}")).collect();
    for _ in 0..4 {
        for key in &known {
            serve(&cache, key);
        }
    }
    for number in 0..1_000 {
        assert!(!serve(&cache, &format!("once {number}")));
        // New entries are found for a while.
        assert!(serve(&cache, &format!("once {number}")), "{number}");
    }
    let kept = known.iter().filter(|key| hit(&cache, key, 1)).count();
    assert!(kept > 140, "{kept} of 150");
    // Other keys requested repeatedly are added, and those no longer requested are evicted.
    let others: Vec<String> = (0..150).map(|number| format!("other {number}")).collect();
    for _ in 0..40 {
        for key in &others {
            serve(&cache, key);
        }
    }
    let came = others.iter().filter(|key| hit(&cache, key, 1)).count();
    assert!(came > 140, "{came} of 150");
    cache.purge(|_| true);
    let counted = [&cache.used, &cache.window, &cache.protected, &cache.hints].map(|count| count.load(Relaxed));
    assert_eq!(counted, [0; 4]);
}

/// With a few frequent keys and many rare ones, the hit rate exceeds that of LRU.
#[test]
fn frequencies_serve_more_than_the_order_of_uses_alone() {
    const ROOM: usize = 100;
    let cache = cache(plan(ROOM as u32));
    let (mut order, mut random) = (Vec::new(), 1_u64);
    let (mut served, mut by_order) = (0, 0);
    for _ in 0..30_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (random >> 33) as f64 / f64::from(u32::MAX >> 1);
        let key = format!("{}", (5_000.0 * drawn.powi(4)) as u32);
        served += u32::from(serve(&cache, &key));
        match order.iter().position(|known| *known == key) {
            Some(at) => {
                by_order += 1;
                order.remove(at);
            }
            None if order.len() == ROOM => drop(order.remove(0)),
            None => {}
        }
        order.push(key);
    }
    assert!(served * 10 > by_order * 11, "{served} of 30000, {by_order} by the order of their uses");
}

/// Threads that store and look up concurrently: nothing is counted twice or lost.
#[test]
fn blocks_are_counted_right_by_many_threads() {
    let cache = cache(plan(300));
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = thread + 1;
                for _ in 0..4_000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let drawn = (random >> 33) as usize;
                    let key = format!("{}", drawn % 400);
                    match drawn >> 16 & 15 {
                        0 => cache.remove(key.as_bytes()),
                        1 => store(cache, &key, drawn % 9_000),
                        _ => serve(cache, &key),
                    };
                    assert!(cache.used.load(Relaxed) <= 300);
                }
            });
        }
    });
    cache.purge(|_| true);
    let counted = [&cache.used, &cache.window, &cache.protected, &cache.hints].map(|count| count.load(Relaxed));
    assert_eq!(counted, [0; 4]);
}

#[test]
fn variants_are_bounded_and_told_apart() {
    let cache = cache(plan(64));
    let from = |referer: u128| Signature { referer, ..Signature::default() };
    for referer in 1..=3 {
        let mut object = object(60);
        object.variant = (Varies { referer: true, ..Varies::default() }, from(referer));
        let storing = cache.begin(b"a", &from(referer), object, Some(0));
        assert_eq!(storing.is_some(), referer < 3);
        storing.into_iter().for_each(Storing::finish);
    }
    let found = |referer| matches!(cache.look_up(b"a", &from(referer), at(1)), CacheLookup::Hit(_));
    assert_eq!([1, 2, 3, 0].map(found), [true, true, false, false]);
}

#[test]
fn codings_are_accepted_as_rfc_9110_says() {
    let head = |name: &[u8], values: &[&str]| {
        let mut head = Head::new();
        values.iter().for_each(|value| head.append(name, value.as_bytes()));
        head
    };
    let rows: &[(&[&str], &str, bool)] = &[
        (&[], "gzip", true),
        (&[""], "gzip", false),
        (&[""], "", true),
        (&["gzip"], "gzip", true),
        (&["GZIP"], "gzip", true),
        (&["first", "gzip"], "gzip", true),
        (&["gzip;q=0.8"], "gzip", true),
        (&["deflate, gzip;q=0"], "gzip", false),
        (&["gzip"], "", true),
        (&["deflate, identity;q=0"], "", false),
        (&["*"], "br", true),
        (&["gzip;q=0, *"], "br", true),
        (&["gzip;q=0, *"], "gzip", false),
        (&["deflate, *;q=0"], "br", false),
        (&["deflate, *;q=0"], "", false),
        (&["gzip, deflate"], "deflate, gzip", true),
        (&["gzip"], "deflate, gzip", false),
        (&["gzip"], "x-gzip", true),
        (&["X-Gzip"], "gzip", true),
        (&["x-compress"], "compress", true),
        (&["gzip"], "x-compress", false),
    ];
    for (accepted, coding, expected) in rows {
        let request = Codings::of_request(&head(b"accept-encoding", accepted)).unwrap();
        let codings: &[&str] = if coding.is_empty() { &[] } else { &[coding] };
        let response = Codings::of_response(&head(b"content-encoding", codings)).unwrap();
        assert_eq!(response.are_among(request), *expected, "{coding} for {accepted:?}");
    }
    assert_eq!(Codings::of_response(&head(b"content-encoding", &["unknown"])), None);
    let many = (0..17).map(|at| format!("a{at}")).collect::<Vec<_>>().join(",");
    assert_eq!(Codings::of_request(&head(b"accept-encoding", &[&many])), None);
}

#[test]
fn hints_outlive_responses_within_their_share() {
    let cache = cache(CachePlan { hints: EarlyHints::On, hint_blocks: 2, ..plan(64) });
    for key in ["a", "b", "c", "d", "e"] {
        let mut object = object(60);
        object.hints.push(Box::from(&b"</a>; rel=preload"[..]));
        let mut storing = cache.begin(key.as_bytes(), &Signature::default(), object, None).unwrap();
        assert!(storing.push(&[b'x'; 30_000]));
        storing.finish();
    }
    let found = |key: &str| match cache.look_up(key.as_bytes(), &Signature::default(), at(1)) {
        CacheLookup::Hit(_) => "response",
        CacheLookup::Stale(_) => "stale",
        CacheLookup::Hints(_) => "hints",
        CacheLookup::Nothing => "nothing",
    };
    assert_eq!(["a", "b", "c", "d", "e"].map(found), ["nothing", "hints", "hints", "response", "response"]);
}

/// A cache with a file of that size, and the contents of the file.
fn with_disk(bytes: u64) -> (Arc<Cache>, Vec<u8>) {
    let cache = cache(CachePlan { disk: bytes, ..plan(64) });
    (cache, vec![0; usize::try_from(bytes).unwrap()])
}

/// Writes everything that was evicted from memory.
fn write(cache: &Arc<Cache>, file: &mut [u8]) {
    while let Some(leaving) = cache.take_leaving() {
        for (number, key, object) in &leaving.list {
            let Some((record, place)) = cache.record(*number, key, object, at(0)) else { continue };
            let from = usize::try_from(place.offset).unwrap();
            file[from..from + record.len()].copy_from_slice(&record);
            cache.written(key, place);
        }
    }
}

fn read(cache: &Cache, file: &[u8], key: &str) -> Option<Arc<Object>> {
    let place = cache.place(key.as_bytes(), &Signature::default(), at(1))?;
    let from = usize::try_from(place.offset).unwrap();
    cache.restore(key.as_bytes(), &place, &file[from..from + usize::try_from(place.length).unwrap()])
}

#[test]
fn what_leaves_the_memory_lies_in_the_file() {
    let (cache, mut file) = with_disk(100_000);
    // Each takes about half of the memory.
    for key in ["a", "b", "c", "d"] {
        assert!(store(&cache, key, 25_000));
        write(&cache, &mut file);
    }
    assert!(!hit(&cache, "a", 1) && hit(&cache, "d", 1));
    assert_eq!(cache.on_disk(), 2);
    let found = read(&cache, &file, "a").expect("it lies in the file");
    assert_eq!((found.body.concat(), found.head.status()), (vec![b'x'; 25_000], 200));
    assert!(hit(&cache, "a", 1), "it is in the memory again");
    // New responses are stored, however often the others are requested.
    ask(&cache, "a", 9);
    ask(&cache, "d", 9);
    for key in ["x", "y"] {
        assert!(store(&cache, key, 25_000));
        write(&cache, &mut file);
    }
    // Stale responses are not returned.
    assert!(cache.place(b"a", &Signature::default(), at(60)).is_none());
    assert!(cache.place(b"e", &Signature::default(), at(1)).is_none());
}

#[test]
fn the_file_is_a_ring() {
    let (cache, mut file) = with_disk(60_000);
    for number in 0..20 {
        assert!(store(&cache, &format!("{number}"), 20_000 + number * 100));
        write(&cache, &mut file);
        // Every record that it returns is valid.
        for key in 0..=number {
            let found = read(&cache, &file, &format!("{key}"));
            assert!(found.is_none_or(|object| object.length == (20_000 + key * 100) as u64));
        }
        assert!(cache.on_disk() <= 3);
    }
    let (cache, mut file) = with_disk(10_000);
    for key in ["a", "b", "c", "d"] {
        assert!(store(&cache, key, 25_000));
        write(&cache, &mut file);
    }
    assert_eq!(cache.on_disk(), 0, "it is larger than the file");
}

#[test]
fn a_record_that_is_not_whole_is_forgotten() {
    for damage in 0..4 {
        let (cache, mut file) = with_disk(100_000);
        for key in ["a", "b", "c"] {
            assert!(store(&cache, key, 25_000));
            write(&cache, &mut file);
        }
        match damage {
            0 => file.fill(0),
            1 => file[20_000] ^= 1,
            2 => file[60] ^= 0x80,
            // Nothing could be read.
            _ => {
                let place = cache.place(b"a", &Signature::default(), at(1)).unwrap();
                assert!(cache.restore(b"a", &place, &[]).is_none());
            }
        }
        assert!(read(&cache, &file, "a").is_none(), "{damage}");
        assert_eq!(cache.on_disk(), 0);
    }
}

#[test]
fn what_is_removed_does_not_come_back_from_the_file() {
    for how in 0..4 {
        let (cache, mut file) = with_disk(100_000);
        for key in ["a", "b", "c"] {
            assert!(store(&cache, key, 25_000));
        }
        let remove = || match how % 2 {
            0 => assert!(cache.remove(b"a")),
            _ => assert!(cache.purge(|_| true) > 0),
        };
        if how < 2 {
            // It is being written.
            let leaving = cache.take_leaving().unwrap();
            let (number, key, object) = &leaving.list[0];
            let (_, place) = cache.record(*number, key, object, at(0)).unwrap();
            remove();
            cache.written(key, place);
        } else {
            write(&cache, &mut file);
            remove();
        }
        assert_eq!(cache.on_disk(), 0, "{how}");
        assert!(read(&cache, &file, "a").is_none());
    }
    // A newer response also replaces an older one.
    let (cache, mut file) = with_disk(100_000);
    for key in ["a", "b", "c"] {
        assert!(store(&cache, key, 25_000));
        write(&cache, &mut file);
    }
    assert!(store(&cache, "a", 24_000));
    assert!(cache.place(b"a", &Signature::default(), at(1)).is_none());
}

#[test]
fn what_waits_for_the_file_is_bounded() {
    let (cache, _) = with_disk(100_000);
    for number in 0..2_000 {
        assert!(store(&cache, &format!("{number}"), 25_000));
    }
    let leaving = cache.take_leaving().unwrap();
    assert!(leaving.list.len() * 25_000 <= 16 << 20);
    drop(leaving);
    assert!(store(&cache, "a", 25_000) && cache.take_leaving().is_some(), "there is room again");
}
