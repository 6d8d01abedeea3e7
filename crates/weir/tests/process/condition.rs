//! `-cc`: a table of conditions and their exit statuses.

use crate::support::{WEIR, run};
use std::process::Command;

/// Condition and status. The grammar has its own tests; these check the flag.
const ROWS: &[(&str, i32)] = &[
    ("1", 0),
    ("0", 1),
    ("", 1),
    ("200", 0),
    ("200rrr", 2),
    ("!0", 0),
    ("!1", 1),
    ("1 && 0", 1),
    ("1||0", 0),
    ("(0 || 1) && !0", 0),
    ("(1", 2),
    ("nonsense(1)", 2),
    ("streq(a,a)", 0),
    ("strneq(a,a)", 1),
    ("strstr(abc,bc)", 0),
    ("streq(\"$WEIR_TEST\",yes)", 0),
    ("defined(WEIR_TEST)", 0),
    ("defined(WEIR_TEST_OTHER)", 1),
    ("version_atleast(3.5-dev4)", 0),
    ("version_atleast(v3.5-dev3)", 0),
    ("version_atleast(99.0)", 1),
    ("version_before(99.0)", 0),
    ("version_before(1.5)", 1),
    ("feature(EPOLL)", 0),
    ("feature(NO_SUCH_THING)", 1),
    ("feature(WEIR)", 0),
    ("enabled(EPOLL)", 0),
];

#[test]
fn conditions_end_with_their_status() {
    for (condition, expected) in ROWS {
        let found = run(Command::new(WEIR).args(["-cc", condition]).env("WEIR_TEST", "yes"));
        assert_eq!(found.code(), Some(*expected), "{condition}: {}", found.stderr);
        assert_eq!(found.stdout, "", "{condition}");
        assert_eq!(found.stderr.contains("[ALERT]"), *expected == 2, "{condition}: {}", found.stderr);
    }
}

#[test]
fn quiet_says_nothing_even_about_an_error() {
    let found = run(Command::new(WEIR).args(["-q", "-cc", "200rrr"]));
    assert_eq!((found.code(), found.stderr.as_str()), (Some(2), ""));
}
