//! What is known to differ, each with its reason.

/// A part of an expression, the versions that it differs from (all of those that begin so), and why.
const KNOWN: &[(&str, &str, &str)] = &[
    ("time(", "", "HAProxy takes the second 0 for a day in 1900"),
    ("capture.res.ver", "", "HAProxy reads a version before there is an answer"),
    ("2dec(", "", "HAProxy loses what is beyond four bytes of a chunk"),
    ("src,", "2.", "HAProxy 2 takes an address for a number"),
    ("dst,", "2.", "HAProxy 2 takes an address for a number"),
    ("word(", "2.", "HAProxy 2 gives an empty text for a word that is not there"),
    ("http_date", "", "HAProxy takes the second 0 for a day in 1900"),
    ("fix_is_valid", "", "HAProxy has no sample at times, the same request later gives one"),
    ("rdp_cookie", "", "HAProxy looks for RDP in HTTP at times, and finds a count of 0"),
    ("capture.req.uri", "2.", "HAProxy 2 leaves the host in"),
    ("sess_term_state", "", "HAProxy knows how a stream ends before it has answered"),
    ("dump_all_vars", "", "variables of the session are those of the cases before"),
];

/// Whether a difference is expected.
pub fn is_known(expression: &str, version: &str) -> bool {
    KNOWN.iter().any(|(part, from, _)| expression.contains(part) && version.starts_with(from))
}

#[test]
fn every_known_difference_has_its_reason() {
    for (part, _, reason) in KNOWN {
        assert!(!part.is_empty() && reason.len() > 10, "{part}");
    }
}
