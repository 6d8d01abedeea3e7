//! Any bytes as keys of a table of routes, and any request: no panic, an error shows one line of the key and a place in
//! it, and the table returns the entry that precedes all others that fit alone.
//!
//! Keys end at a line feed, the last one at 0xFF; `<host><path>?<query>` of the request follows.

use expression::pattern::{Hit, Key, Method, PatternIndex, PatternSet, RouteKey, RouteRequest, Steps, Texts};

/// Maximum number of keys of one input.
const MOST_KEYS: usize = 32;

struct Keys<'a>(Vec<&'a [u8]>);

impl Texts for Keys<'_> {
    fn key(&self, at: PatternIndex) -> &[u8] {
        self.0[at as usize]
    }
}

fn table() -> PatternSet {
    PatternSet::new(Method::Route, false, Key::default())
}

fn check_error(error: &str) {
    let lines: Vec<&str> = error.rsplitn(3, '\n').collect();
    let [caret, key, _] = lines[..] else { panic!("{error}") };
    let place = caret.strip_suffix('^').map(str::len);
    assert!(place.is_some_and(|place| (4..=key.len()).contains(&place)) && key.len() <= 4 + 120, "{error}");
}

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let mut halves = data.splitn(2, |byte| *byte == 0xFF);
    let keys: Vec<&[u8]> = halves.next().unwrap_or_default().split(|byte| *byte == b'\n').take(MOST_KEYS).collect();
    let request = RouteRequest::of_text(halves.next().unwrap_or_default());
    let keys = Keys(keys);
    let (mut all, mut alone) = (table(), Vec::new());
    for at in 0..keys.0.len() as PatternIndex {
        let mut one = table();
        let added = all.insert(at, &keys);
        assert_eq!(added, one.insert(at, &keys));
        assert_eq!(added.is_ok(), RouteKey::parse(keys.key(at)).is_ok());
        match added {
            Ok(()) => alone.push((at, one)),
            Err(error) => check_error(&error),
        }
    }
    // A second time without every third one.
    for without in [false, true] {
        let stays = |at: PatternIndex| !without || at % 3 != 2;
        if without {
            alone.iter().filter(|(at, _)| !stays(*at)).for_each(|(at, _)| all.remove(*at, &keys));
        }
        let find = |set: &PatternSet| set.find_route(&request, &|_| true, &Steps::for_text(data.len()));
        let Ok(found) = find(&all) else { return };
        let mut best: Option<(Hit, &PatternSet)> = None;
        for (_, one) in alone.iter().filter(|(at, _)| stays(*at)) {
            let Ok(hit) = find(one) else { return };
            if let Some(hit) = hit
                && best.as_ref().is_none_or(|(known, set)| !set.precedes(*known, one, hit))
            {
                best = Some((hit, one));
            }
        }
        assert_eq!(found.map(|hit| hit.at), best.map(|(hit, _)| hit.at));
        for (at, _) in &alone {
            assert_eq!(all.like(keys.key(*at), keys.0.len(), &keys).contains(at), stays(*at));
        }
    }
}
