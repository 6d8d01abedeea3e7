//! Any regular expression and any text: where Weir matches in linear time, it answers as PCRE2 would.
//!
//! The first byte chooses the case; the pattern ends at a byte 0xFF, and the text follows.

#![no_main]

use libfuzzer_sys::fuzz_target;
use policy::pattern::Regex;

fuzz_target!(|data: &[u8]| {
    let [case, rest @ ..] = data else { return };
    let mut halves = rest.splitn(2, |byte| *byte == 0xFF);
    // HAProxy's configuration is bytes, and so are its patterns: here those of ASCII.
    let Ok(pattern) = std::str::from_utf8(halves.next().unwrap_or_default()) else { return };
    let text = halves.next().unwrap_or_default();
    if !pattern.is_ascii() || pattern.contains('\0') || pattern.len() > 256 || text.len() > 4_096 {
        return;
    }
    let ignore_case = case & 1 == 1;
    let ours = Regex::new(pattern, ignore_case);
    let theirs = pcre2::bytes::RegexBuilder::new().caseless(ignore_case).build(pattern);
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return };
    if ours.linear().is_none() {
        let _ = ours.is_match(text);
        return;
    }
    // PCRE2 gives up where it would take too long.
    let Ok(found) = theirs.find(text) else { return };
    assert_eq!(ours.is_match(text), found.is_some(), "{pattern:?} in {text:?}");
    let mut places = ours.places();
    let place = ours.find_groups(&mut places, text, 0);
    assert_eq!(place, found.map(|found| (found.start(), found.end())), "{pattern:?} in {text:?}");
});
