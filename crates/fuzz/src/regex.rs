//! Any regular expression and any text: Weir's result equals PCRE2's, unless its step limit is reached.
//!
//! The first byte selects case sensitivity; the pattern ends at a byte 0xFF, and the text follows.


use expression::pattern::{Places, Regex, Steps};
use expression::sample::Exhausted;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [case, rest @ ..] = data else { return };
    let mut halves = rest.splitn(2, |byte| *byte == 0xFF);
    // HAProxy's configuration is bytes, and so are its patterns: ASCII ones are used here.
    let Ok(pattern) = std::str::from_utf8(halves.next().unwrap_or_default()) else { return };
    let text = halves.next().unwrap_or_default();
    if !pattern.is_ascii() || pattern.contains('\0') || pattern.len() > 256 || text.len() > 4_096 {
        return;
    }
    let ignore_case = case & 1 == 1;
    let ours = Regex::new(pattern, ignore_case);
    let theirs = pcre2::bytes::RegexBuilder::new().caseless(ignore_case).build(&format!("(*LIMIT_MATCH=20000){pattern}"));
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return };
    // PCRE2 stops at its match limit, and Weir at its step limit.
    let Ok(found) = theirs.find(text) else { return };
    let steps = Steps::for_text(text.len());
    match ours.is_match_within(text, &steps) {
        Ok(matches) => assert_eq!(matches, found.is_some(), "{pattern:?} in {text:?}"),
        Err(Exhausted) => return,
    }
    let found = found.map(|found| (found.start(), found.end()));
    for with_groups in [false, true] {
        let (mut places, steps) = (Places::default(), Steps::for_text(text.len()));
        let Ok(mut search) = ours.search(&mut places, text, &steps, with_groups) else { return };
        let Ok(place) = search.next(0) else { return };
        assert_eq!(place, found, "{pattern:?} in {text:?}");
    }
}
