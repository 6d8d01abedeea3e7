//! Errors in rules and programs of health checks, with HAProxy 3.5's messages.

use crate::support::{DEFAULTS, Folder, line};

/// Lines of a backend, and the reason why the last of them is rejected.
const REFUSED: &[(&str, &str)] = &[
    (
        "http-check connect port",
        "'http-check connect' : 'port' expects a port number or a sample expression as argument..",
    ),
    (
        "http-check connect port 0",
        "'http-check connect' : expects a valid TCP port (from range 1 to 65535) or a sample expression, got 0..",
    ),
    ("http-check connect addr", "'http-check connect' : 'addr' expects <ipv4|ipv6> as argument.."),
    ("http-check connect addr foo", "'http-check connect' : 'addr' : invalid address: 'foo' in 'foo'.."),
    ("http-check connect proto", "'http-check connect' : 'proto' expects a MUX protocol as argument.."),
    ("http-check connect proto foo", "'http-check connect' : 'proto' : unknown MUX protocol 'foo'.."),
    ("http-check connect comment", "'http-check connect' : 'comment' expects a string as argument.."),
    ("http-check send uri", "'http-check send' : 'uri' expects a string as argument.."),
    (
        "http-check send body-lf %[foo]",
        "'http-check send' : '%[foo]' invalid log-format string (failed to parse sample expression <foo]> : unknown fetch \
         method 'foo').",
    ),
    ("http-check send hdr a", "'http-check send' : 'hdr' expects <name> and <value> as arguments."),
    ("http-check expect", "'http-check expect' : expects at least a matching pattern as arguments."),
    ("http-check expect comment foo", "'http-check expect' : pattern not found."),
    ("http-check expect min-recv", "'http-check expect' : 'min-recv' expects a integer as argument."),
    (
        "http-check expect !",
        "'http-check expect' : 'only supports min-recv, [!]string', '[!]rstring', '[!]string-lf', '[!]status', '[!]rstatus', \
         [!]hdr, [!]fhdr or comment but got '' as argument..",
    ),
    (
        "http-check expect ok-status foo status 200",
        "'http-check expect' : 'ok-status' only supports 'L4OK', 'L6OK', 'L7OK' or 'L7OKC' status (got 'foo')..",
    ),
    (
        "http-check expect on-error %[foo] status 200",
        "'http-check expect' : '%[foo]' invalid log-format string (failed to parse sample expression <foo]> : unknown fetch \
         method 'foo').",
    ),
    ("http-check expect status-code", "'http-check expect' : 'status-code' expects an expression as argument."),
    (
        "http-check connect\n http-check connect",
        "'http-check connect' : unable to add http-check connect rule at step 2 (missing expect rule)..",
    ),
    (
        "http-check connect\n http-check comment a\n http-check connect",
        "'http-check connect' : unable to add http-check connect rule at step 3 (missing expect rule)..",
    ),
    (
        "http-check connect\n http-check send meth GET\n http-check connect",
        "'http-check connect' : unable to add http-check connect rule at step 2 (missing expect rule)..",
    ),
    (
        "http-check connect\n http-check expect status 200",
        "'http-check expect' : unable to add http-check expect rule at step 2 (missing send rule)..",
    ),
    (
        "http-check expect status 200\n http-check send meth GET",
        "'http-check send' : unable to add http-check send rule at step 2 (missing connect rule)..",
    ),
    (
        "http-check connect\n http-check send meth GET\n http-check send meth GET",
        "'http-check send' : unable to add http-check send rule at step 2 (missing connect rule)..",
    ),
    (
        "tcp-check expect string a b",
        "'tcp-check expect' : 'only supports min-recv, '[!]binary', '[!]string', '[!]rstring', '[!]string-lf''[!]rbinary', \
         '[!]binary-lf' or comment but got 'b' as argument..",
    ),
    (
        "tcp-check send-lf %[foo]",
        "'tcp-check send-lf' : '%[foo]' invalid log-format string (failed to parse sample expression <foo]> : unknown fetch \
         method 'foo').",
    ),
];

#[test]
fn rules_that_cannot_be_are_refused() {
    let folder = Folder::new();
    for (rules, expected) in REFUSED {
        let (method, last) = (if rules.starts_with("http") { "httpchk" } else { "tcp-check" }, rules.lines().count());
        let text = format!("{DEFAULTS}backend b\n server s 127.0.0.1:1 check\n option {method}\n {rules}\n");
        let file = folder.write("rules.cfg", &text);
        let found = line(&format!("-c -f {file}"));
        assert_eq!(found.code(), Some(1), "{rules}");
        let expected = format!(") : config : parsing [{file}:{}] : {expected}\n", 8 + last);
        assert!(found.stderr.contains(&expected), "{expected}{}", found.stderr);
    }
}

#[test]
fn connections_follow_each_other_where_something_is_expected_in_between() {
    let folder = Folder::new();
    let rules = " http-check set-var(check.x) int(1)\n http-check connect\n http-check send meth GET\n http-check expect \
                 status 200\n http-check expect string a\n http-check comment b\n http-check connect\n http-check send meth \
                 GET\n";
    let text = format!("{DEFAULTS}backend b\n server s 127.0.0.1:1 check\n option httpchk\n{rules}");
    let file = folder.write("rules.cfg", &text);
    let found = line(&format!("-c -V -f {file}"));
    assert_eq!((found.code(), found.stderr.as_str()), (Some(0), ""));
}

#[test]
fn programs_that_cannot_be_found_or_are_not_asked_for_are_told() {
    let folder = Folder::new();
    let ignored = |what: &str| {
        format!(") : 'external-check {what}' will be ignored for backend 'b' (requires 'option external-check').\n")
    };
    let lost =
        ") : Proxy 'b': 'external-check command' does not have a leading '/' and 'external-check path' is not set.\n";
    for (lines, code, expected) in [
        ("external-check command /bin/true\n external-check path /bin", 0, vec![ignored("command"), ignored("path")]),
        ("external-check command true", 1, vec![ignored("command"), lost.to_owned()]),
        ("option external-check\n external-check command true", 1, vec![lost.to_owned()]),
        ("option external-check\n external-check command true\n external-check path /bin", 0, vec![]),
    ] {
        let global = "global\n external-check\n insecure-fork-wanted\n";
        let file = folder
            .write("program.cfg", &format!("{global}{DEFAULTS}backend b\n server s 127.0.0.1:1 check\n {lines}\n"));
        let found = line(&format!("-c -f {file}"));
        assert_eq!(found.code(), Some(code), "{lines}\n{}", found.stderr);
        for sentence in [ignored("command"), ignored("path"), lost.to_owned()] {
            assert_eq!(found.stderr.contains(&sentence), expected.contains(&sentence), "{lines}\n{}", found.stderr);
        }
    }
}
