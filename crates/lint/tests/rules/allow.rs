//! Comments that allow findings.

use crate::{HEAD, examine};

/// Lines after `HEAD`, and the findings that remain: rule and line.
const ROWS: &[(&str, &[(&str, u32)])] = &[
    ("listen f\n bind :80\n acl a path /a # lint: allow unused-acl\n server s 127.0.0.1:1\n", &[]),
    ("listen f\n bind :80\n acl a path /a #lint:allow missing-group , unused-acl\n server s 127.0.0.1:1\n", &[]),
    // A comment is about its line alone.
    ("listen f\n bind :80 # lint: allow unused-acl\n acl a path /a\n server s 127.0.0.1:1\n", &[("unused-acl", 8)]),
    ("listen f\n bind :80\n acl a path /a # lint: allow missing-group\n server s 127.0.0.1:1\n", &[("unused-acl", 8)]),
    // Unknown names.
    (
        "listen f\n bind :80\n acl a path /a # lint: allow unused-acls\n server s 127.0.0.1:1\n",
        &[("unused-acl", 8), ("unknown-rule", 8)],
    ),
    (
        "listen f\n bind :80 # lint: allow\n server s 127.0.0.1:1 # lint: allow unused-acl,,\n",
        &[("unknown-rule", 7), ("unknown-rule", 8), ("unknown-rule", 8)],
    ),
    // Above a line it allows nothing.
    (
        "listen f\n bind :80\n # lint: allow unused-acl\n acl a path /a\n server s 127.0.0.1:1\n",
        &[("unknown-rule", 8), ("unused-acl", 9)],
    ),
    // Neither a quoted hash sign nor another comment is one.
    (
        "listen f\n bind :80\n acl a path '/# lint: allow unused-acl'\n acl b path /\\#lint:allow,x # see lint: allow\n \
         http-request deny if b\n server s 127.0.0.1:1\n",
        &[("unused-acl", 8)],
    ),
];

#[test]
fn comments_allow_findings_of_their_line() {
    for (text, expected) in ROWS {
        let found = examine(&format!("{HEAD}{text}")).expect("an accepted configuration");
        let shown: Vec<(&str, u32)> = found.iter().map(|one| (one.rule, one.span.line)).collect();
        assert_eq!(shown, *expected, "{text}");
    }
}
