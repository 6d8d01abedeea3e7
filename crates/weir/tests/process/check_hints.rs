//! Hints of `-c`, and remarks of `-dD`: where the message alone does not say what to do.

use crate::support::{DEFAULTS, Folder, line};

/// The last line of a frontend, and the expected text below its error.
const ADVICE: &[(&str, &str)] = &[
    ("http-request deny if {path /x}", "hint: braces are words of their own: write '{ path /x }'"),
    (
        "http-request deny if { path /x } && { path /y }",
        "hint: tests that follow each other all have to match: write nothing between them",
    ),
    (
        "use_backend b if { path /x } and { path /y }",
        "hint: tests that follow each other all have to match: write nothing between them",
    ),
    ("http-request deny if path /x", "hint: 'path' is no ACL but a sample: write it in braces, '{ path ... }'"),
    (
        "http-request deny if late\n acl late path /",
        "hint: an ACL has to be defined above the lines that name it; move line 9 up",
    ),
    ("acl a pathbeg /x", "hint: did you mean 'path_beg'?"),
    ("acl a path_bg /x", "hint: did you mean 'path_beg'?"),
    ("acl a path -m bg /x", "hint: did you mean '-m beg'?"),
    ("http-request deny unles { path /x }", "hint: did you mean 'unless'?"),
    ("use_backend b unles { path /x }", "hint: did you mean 'unless'?"),
    ("monitor fail unles { path /x }", "hint: did you mean 'unless'?"),
    ("log 127.0.0.1 local0 notce", "hint: did you mean 'notice'?"),
    (
        "bind http://127.0.0.1:80",
        "hint: an address is a host and a port: no scheme belongs before it, and no path behind it",
    ),
    ("http-request dney", "'http-request' does not know 'dney'. Did you mean 'deny' maybe ?\n"),
    ("bind 127.0.0.1:2 nbcon 3", "unknown keyword 'nbcon'; did you mean 'nbconn' maybe ?\n"),
];

#[test]
fn what_is_wrong_comes_with_advice() {
    let folder = Folder::new();
    for (last, expected) in ADVICE {
        let text = format!("{DEFAULTS}frontend f\n bind 127.0.0.1:1\n {last}\nbackend b\n");
        let found = line(&format!("-c -f {}", folder.write("advice.cfg", &text)));
        assert_eq!(found.code(), Some(1), "{last}");
        assert!(found.stderr.contains(expected), "{last}\n{}", found.stderr);
    }
}

#[test]
fn advice_is_given_once() {
    let folder = Folder::new();
    let text =
        format!("{DEFAULTS}frontend f\n bind 127.0.0.1:1 nam x\n optin httplog\n option htplog\n http-request dney\n");
    let found = line(&format!("-c -f {}", folder.write("once.cfg", &text)));
    assert_eq!(found.stderr.to_lowercase().matches("did you mean").count(), 4, "{}", found.stderr);
    assert!(!found.stderr.contains("hint:"), "{}", found.stderr);
}

#[test]
fn a_server_has_no_scheme() {
    let folder = Folder::new();
    let text = format!("{DEFAULTS}backend b\n server s1 http://127.0.0.1:80\n server s2 https://127.0.0.1:443/path\n");
    let found = line(&format!("-c -f {}", folder.write("scheme.cfg", &text)));
    assert_eq!(found.stderr.matches("no scheme belongs before it").count(), 2, "{}", found.stderr);
    assert!(!found.stderr.contains("brackets"), "{}", found.stderr);
}

#[test]
fn every_error_of_a_format_is_told_where_it_is() {
    let folder = Folder::new();
    let text = format!("{DEFAULTS}frontend f\n bind 127.0.0.1:1\n log-format \"%ci %XX %[srcc]\"\n");
    let found = line(&format!("-c -f {}", folder.write("format.cfg", &text)));
    let shown = " log-format \"%ci %XX %[srcc]\"\n";
    let carets = [format!("{shown}{:18}^^^\n", ""), format!("{shown}{:22}^^^^^^^\n", "")];
    for carets in carets {
        assert!(found.stderr.contains(&carets), "{carets}{}", found.stderr);
    }
    assert!(found.stderr.contains("no such format alias 'XX'") && found.stderr.contains("fetch method 'srcc'"));
}

#[test]
fn options_that_are_not_there_yet_are_quoted_once() {
    let folder = Folder::new();
    let file = folder.write("quotes.cfg", "global\n stats socket /tmp/x ech y\n");
    let found = line(&format!("-c -f {file}"));
    let expected = ") : config : parsing [{}:2] : 'stats socket' : 'ech' is not supported yet by Weir.\n";
    assert!(found.stderr.contains(&expected.replace("{}", &file)), "{}", found.stderr);
}

/// Accepted by HAProxy without a message.
#[test]
fn what_was_hardly_meant_is_remarked_with_diagnostics() {
    let folder = Folder::new();
    for (last, expected) in [
        ("http-request deny if", "nothing follows 'if': the condition is always met."),
        ("http-request deny unless", "nothing follows 'unless': the condition is never met."),
        (
            "http-request deny if { hdr(host) gt 5 }",
            "'gt' is a text to match here, since 'hdr(host)' is matched as a text: add '-m int' to compare numbers.",
        ),
        ("acl a src_port eq -- 80", "a dash separates the ends of a range: '--' is all up to its number."),
        ("maxconn abc", "'maxconn' takes a number; 'abc' is read as 0."),
        ("bind 127.0.0.1:1", "'127.0.0.1:1' is listened on by {}:7 as well: both get connections."),
    ] {
        let file = folder.write("meant.cfg", &format!("{DEFAULTS}frontend f\n bind 127.0.0.1:1\n {last}\n"));
        let expected = format!("[DIAG]     (PID) : config : parsing [{file}:8] : {}\n", expected.replace("{}", &file));
        let (loud, quiet) = (line(&format!("-c -dD -f {file}")), line(&format!("-c -f {file}")));
        let (_, rest) = expected.split_once("(PID)").expect("it is there");
        assert!(loud.code() == Some(0) && loud.stderr.contains(rest), "{expected}{}", loud.stderr);
        assert_eq!((quiet.code(), quiet.stderr.as_str()), (Some(0), ""), "{last}");
    }
}

#[test]
fn what_is_found_late_is_in_the_order_of_the_file() {
    let folder = Folder::new();
    let text = format!(
        "{DEFAULTS}backend b\n external-check command /bin/true\n http-check send meth GET\nfrontend f\n option httplog\n \
         bind 127.0.0.1:1\nfrontend g\n"
    );
    let file = folder.write("order.cfg", &text);
    let found = line(&format!("-c -f {file}"));
    let lines = found.stderr.lines().filter(|line| line.starts_with("[WARNING]"));
    let told: Vec<&str> = lines.filter_map(|line| Some(line.split_once(") : ")?.1)).collect();
    assert_eq!(
        told,
        [
            "backend 'b' uses http-check rules without 'option httpchk', so the rules are ignored.",
            "'external-check command' will be ignored for backend 'b' (requires 'option external-check').",
            "log format ignored for frontend 'f' since it has no log address.",
            "frontend 'g' has no 'bind' directive. Please declare it as a backend if this was intended.",
        ]
    );
}
