//! Lists that change: lookups before and after, and from several threads at once.

use crate::expression::tests::Scene;
use crate::pattern::{ChangeError, EntrySelector, ListState, ListStates};
use crate::pattern::{Content, Key, ListLine, Lists, Lookup, Method, Registry, Use};
use crate::sample::Value;
use std::sync::atomic::{AtomicBool, Ordering};

fn list(content: &str, method: Method) -> (Lists, Lookup) {
    let mut registry = Registry::default();
    let usage = |registry: &mut Registry| {
        registry.file("m", Use::Map, ListLine::default(), || Ok(content.as_bytes().to_vec())).expect("a list")
    };
    let list = usage(&mut registry);
    assert_eq!(usage(&mut registry), list, "one list for each name");
    let lookup = registry.lookup(list, method, false, Content::Text).expect("a view");
    (registry.finish(), lookup)
}

/// Looks up a text in the changed list.
fn find(state: &ListState, lookup: &Lookup, text: &str) -> String {
    Scene::default().with(|context| {
        let text = context.copy(text.as_bytes()).expect("a short text");
        let Some(value) = lookup.base.set.prepare(context, Value::Str(text)) else { return "?".to_owned() };
        state.read(|change| {
            change
                .find(lookup, value)
                .expect("few steps")
                .map_or("-".to_owned(), |found| String::from_utf8_lossy(found.value).into_owned())
        })
    })
}

#[test]
fn changes_are_seen_and_order_holds() {
    let (lists, lookup) = list("a 1\nb 2\na 3\n/x 4\n", Method::Str);
    let states = ListStates::new(&lists, Key::default());
    assert!(states.changed(0).is_none());
    let state = states.get(0).expect("a state");
    state.write(|change, fallen| {
        change.add(None, b"a", b"5").expect("added");
        change.add(None, b"c", b"6").expect("added");
        assert!(change.remove(EntrySelector::Reference((1 << 36) + 1), fallen));
    });
    assert!(states.changed(0).is_some());
    assert_eq!(["a", "b", "c", "d"].map(|text| find(state, &lookup, text)), ["3", "2", "6", "-"]);
    state.write(|change, fallen| {
        change.set(EntrySelector::Key(b"a"), b"7").expect("set");
        assert_eq!(change.set(EntrySelector::Key(b"zz"), b"7"), Err(ChangeError::Missing));
        assert!(change.remove(EntrySelector::Key(b"b"), fallen) && !change.remove(EntrySelector::Key(b"b"), fallen));
        assert_eq!(change.count(), 4);
    });
    assert_eq!(["a", "b", "c"].map(|text| find(state, &lookup, text)), ["7", "-", "6"]);
    let keys = state.read(|change| change.page(None, 0, 10));
    let keys: Vec<String> = keys.iter().map(|(_, key, _)| String::from_utf8_lossy(key).into_owned()).collect();
    assert_eq!(keys, ["a", "/x", "a", "c"]);
    state.write(|change, fallen| assert!(change.remove(EntrySelector::Key(b"a"), fallen)));
    assert_eq!(find(state, &lookup, "a"), "-");
}

#[test]
fn a_view_that_is_added_later_sees_earlier_changes() {
    let (lists, _) = list("a 1\nab 2\n", Method::Str);
    let states = ListStates::new(&lists, Key::default());
    let state = states.get(0).expect("a state");
    state.write(|change, fallen| {
        change.add(None, b"b", b"3").expect("added");
        assert!(change.remove(EntrySelector::Key(b"a"), fallen));
    });
    let mut registry = Registry::beside(&lists, "m");
    let read = || Err("the list is known".to_owned());
    let at = registry.file("m", Use::Map, ListLine::default(), read).expect("a list");
    let lookup = registry.lookup(at, Method::Beg, false, Content::Text).expect("a view");
    assert_eq!((at, lookup.view), (0, 1));
    state.add_view(lookup.base.clone());
    assert_eq!(["a", "abc", "bcd"].map(|text| find(state, &lookup, text)), ["-", "2", "3"]);
    state.write(|change, _| change.add(None, b"c", b"4").expect("added"));
    assert_eq!(find(state, &lookup, "cd"), "4");
}

#[test]
fn a_list_that_is_added_later_has_the_next_place() {
    let (lists, _) = list("a 1\n", Method::Str);
    let states = ListStates::new(&lists, Key::default());
    let mut registry = Registry::beside(&lists, "n");
    let at = registry.file("n", Use::Map, ListLine::default(), || Ok(b"b 2\n".to_vec())).expect("a list");
    let lookup = registry.lookup(at, Method::Str, false, Content::Text).expect("a view");
    let list = registry.finish().all[0].clone();
    assert_eq!((states.add(&list, Key::default()), lists.add(list), at), (Ok(1), Ok(1), 1));
    assert_eq!((lists.find("m"), lists.find("n"), lists.all[1].id), (Some(0), Some(1), 1));
    assert_eq!(find(states.get(1).expect("a state"), &lookup, "b"), "2");
}

#[test]
fn the_finest_counts_wherever_it_lies() {
    let (lists, lookup) = list("10.0.0.0/8 a\n10.1.2.0/24 b\n", Method::Ip);
    let states = ListStates::new(&lists, Key::default());
    let state = states.get(0).expect("a state");
    state.write(|change, _| {
        change.add(None, b"10.1.0.0/16", b"c").expect("added");
        change.add(None, b"10.0.0.0/8", b"d").expect("added");
        assert!(matches!(change.add(None, b"zz", b"d"), Err(ChangeError::Pattern(_))));
    });
    assert_eq!(["10.9.9.9", "10.1.9.9", "10.1.2.3"].map(|text| find(state, &lookup, text)), ["a", "c", "b"]);
}

#[test]
fn versions_replace_each_other_at_once() {
    let (lists, lookup) = list("a 1\nb 2\n", Method::Beg);
    let states = ListStates::new(&lists, Key::default());
    let state = states.get(0).expect("a state");
    state.write(|change, fallen| {
        assert_eq!(change.add(Some(1), b"a", b"9"), Err(ChangeError::Future));
        assert_eq!((change.prepare(), change.prepare()), (1, 2));
        change.add(Some(1), b"x", b"9").expect("added");
        change.add(Some(2), b"a", b"8").expect("added");
        assert!(!change.commit(0, fallen) && !change.commit(3, fallen));
    });
    assert_eq!(["ax", "x"].map(|text| find(state, &lookup, text)), ["1", "-"]);
    state.write(|change, fallen| assert!(change.commit(2, fallen) && !change.commit(1, fallen)));
    assert_eq!(["ax", "b", "x"].map(|text| find(state, &lookup, text)), ["8", "-", "-"]);
    state.write(|change, fallen| change.clear(None, fallen));
    assert_eq!((find(state, &lookup, "ax"), state.read(|change| change.count())), ("-".to_owned(), 0));
}

#[test]
fn what_a_change_leaves_behind_is_taken_away() {
    let (lists, lookup) = list("", Method::Str);
    let states = ListStates::new(&lists, Key::default());
    let state = states.get(0).expect("a state");
    for round in 0..1_000 {
        state.write(|change, fallen| {
            change.add(None, format!("k{}", round % 10).as_bytes(), b"v").expect("added");
            change.remove(EntrySelector::Key(format!("k{}", (round + 5) % 10).as_bytes()), fallen);
            assert!(change.places() <= 128, "{}", change.places());
        });
    }
    assert_eq!(find(state, &lookup, "k9"), "v");
}

#[test]
fn readers_see_one_version_or_the_next() {
    let (lists, lookup) = list("a 0\n", Method::Str);
    let states = ListStates::new(&lists, Key::default());
    let state = states.get(0).expect("a state");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let found: u64 = find(state, &lookup, "a").parse().expect("never without a value");
                        assert!(found >= last, "{found} after {last}");
                        last = found;
                    }
                })
            })
            .collect();
        for round in 1..=500_u64 {
            let version = state.write(|change, _| change.prepare());
            let value = round.to_string();
            state.write(|change, _| change.add(Some(version), b"a", value.as_bytes())).expect("added");
            state.write(|change, fallen| assert!(change.commit(version, fallen)));
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().expect("a reader that saw no gap"));
    });
    assert_eq!(find(state, &lookup, "a"), "500");
}
