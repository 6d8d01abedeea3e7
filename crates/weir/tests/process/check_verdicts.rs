//! Rejected configurations: results and messages are those of HAProxy 3.5.

use crate::support::{DEFAULTS, Folder, line};

/// Sections after five lines of `defaults`, the exit status of `-c`, and the expected messages; `{}` is the name of the
/// file.
#[rustfmt::skip]
const ROWS: &[(&str, i32, &[&str])] = &[
    (
        "backend a b\n server s 127.0.0.1:1",
        1,
        &[
            "config : parsing [{}:7] : 'listen' or 'defaults' expected.",
        ],
    ),
    (
        "backend a from\n server s 127.0.0.1:1",
        1,
        &[
            "config : parsing [{}:7] : 'listen' or 'defaults' expected.",
        ],
    ),
    (
        "fcgi-app a\n docroot /x\nfrontend f\n bind 127.0.0.1:1\n filter fcgi-app a\nfrontend g\n bind 127.0.0.1:2\n filter fcgi-app b",
        1,
        &[
            "proxy 'f': FCGI app configured but no FCGI server found.",
            "proxy 'g' : fcgi-app 'b' not found.",
        ],
    ),
    ("backend a b\nbackend a", 0, &[]),
    (
        "log-profile p x",
        1,
        &[
            "config : parsing [{}:6] : 'log-profile' cannot handle unexpected argument 'x'.",
        ],
    ),
    (
        "userlist u\n group G+3",
        1,
        &[
            "config : parsing [{}:7]: character '+' is not permitted in 'group' name 'G+3'.",
        ],
    ),
    (
        "global\n nbthread 1\nbackend b\nglobal\n thread-groups 1",
        1,
        &[
            "config : parsing [{}:7] : 'nbthread' not allowed if a non-global section was previously defined. This parameter must be declared in the first global section",
            "config : parsing [{}:10] : 'thread-groups' not allowed if a non-global section was previously defined. This parameter must be declared in the first global section",
        ],
    ),
    (
        "global\n tune.fd.tables shared",
        1,
        &[
            "config : parsing [{}:7] : 'tune.fd.tables' directive is experimental, must be allowed via a global 'expose-experimental-directives'",
        ],
    ),
    (
        "global\n expose-experimental-directives",
        0,
        &[
            "Option 'expose-experimental-directives' is set in the global section but is no longer used. It is strongly recommended to remove it in order to avoid using an experimental directive by accident in the future.",
        ],
    ),
    (
        "backend b\n timeout client xyz",
        1,
        &[
            "config : parsing [{}:7] : unexpected character 'x' in 'timeout client'",
        ],
    ),
    (
        "backend b\n bind nope",
        1,
        &[
            "config : parsing [{}:7] : 'bind' ignored because backend 'b' has no frontend capability.",
            "config : parsing [{}:7] : 'bind' : missing port specification in 'nope'",
        ],
    ),
    (
        "backend b\n option dontlognull",
        1,
        &[
            "config : parsing [{}:7] : 'dontlognull' ignored because backend 'b' has no frontend capability.",
            "config : parsing [{}:7] : unknown option 'dontlognull'; did you mean 'dontlognull' maybe ?",
        ],
    ),
    (
        "backend b\n no option dontlognull",
        1,
        &[
            "config : parsing [{}:7] : 'dontlognull' ignored because backend 'b' has no frontend capability.",
            "config : parsing [{}:7]: negation/default is not supported for option 'dontlognull'.",
        ],
    ),
    (
        "backend b\n monitor fail if nope",
        1,
        &[
            "config : parsing [{}:7] : 'monitor' ignored because backend 'b' has no frontend capability.",
            "config : parsing [{}:7] : error detected while parsing a 'monitor fail' condition : no such ACL : 'nope'.",
        ],
    ),
    (
        "backend b\n rate-limit sessions x",
        1,
        &[
            "config : parsing [{}:7] : 'rate-limit sessions' : unexpected character 'x' in integer value 'x'",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n balance nope",
        1,
        &[
            "config : parsing [{}:8] : 'balance' ignored because frontend 'f' has no backend capability.",
            "config : parsing [{}:8] : balance only supports 'roundrobin', 'static-rr', 'leastconn', 'source', 'uri', 'url_param', 'hash', 'hdr(name)', 'rdp-cookie(name)', 'log-hash' and 'sticky' options.",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n use-server s if TRUE",
        1,
        &[
            "config : parsing [{}:8] : 'use-server' ignored because frontend 'f' has no backend capability.",
            "frontend 'f' : unable to find server 's' referenced in a 'use-server' rule.",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n http-check expect foo",
        1,
        &[
            "config : parsing [{}:8] : 'http-check' ignored because frontend 'f' has no backend capability.",
            "config : parsing [{}:8] : 'http-check expect' : 'only supports min-recv, [!]string', '[!]rstring', '[!]string-lf', '[!]status', '[!]rstatus', [!]hdr, [!]fhdr or comment but got 'foo' as argument..",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n external-check command true",
        1,
        &[
            "'external-check command' will be ignored for frontend 'f' (requires 'option external-check').",
            "Proxy 'f': 'external-check command' does not have a leading '/' and 'external-check path' is not set.",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n stick foo",
        0,
        &[
            "config : parsing [{}:8] : 'stick' ignored because frontend 'f' has no backend capability.",
        ],
    ),
    (
        "backend b\n use-server t if TRUE\n server s 127.0.0.1:1",
        1,
        &[
            "backend 'b' : unable to find server 't' referenced in a 'use-server' rule.",
        ],
    ),
    (
        "backend b\n server s 127.0.0.1:1 check rise 4294967296",
        1,
        &[
            "config : [{}:7] : 'server b/s' : 'rise' has to be > 0..",
        ],
    ),
    (
        "backend b\n server s a.b:1 init-addr 10.0.0.1,10.0.0.2",
        1,
        &[
            "config : [{}:7] : 'server b/s' : 'init-addr' : initial address already specified, cannot add '10.0.0.2'..",
        ],
    ),
    ("backend b\n server-template web- +3 127.0.0.1:1", 0, &[]),
    (
        "backend b\n http-check send meth GET\n http-check send meth GET\n server s 127.0.0.1:1 check",
        0,
        &[
            "backend 'b' uses http-check rules without 'option httpchk', so the rules are ignored.",
        ],
    ),
    (
        "backend b\n http-check send meth GET\n http-check send meth GET\n option httpchk\n http-check send meth GET\n server s 127.0.0.1:1 check",
        1,
        &[
            "config : parsing [{}:10] : 'http-check send' : unable to add http-check send rule at step 3 (missing connect rule)..",
        ],
    ),
    ("ring r\n timeout foo 3", 0, &[]),
    (
        "backend b\nhealthcheck h\n type httpchk\n http-check send meth GET\n http-check send meth GET",
        1,
        &[
            "config : parsing [{}:10] : 'http-check send' : unable to add http-check send rule at step 2 (missing connect rule)..",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n acl a src +3.0.0.0/8",
        1,
        &[
            "config : parsing [{}:8] : error detected while parsing ACL 'a' : '+3.0.0.0/8' is not a valid IPv4 or IPv6 address.",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n acl a src 0x1.2.3.4",
        1,
        &[
            "config : parsing [{}:8] : error detected while parsing ACL 'a' : '0x1.2.3.4' is not a valid IPv4 or IPv6 address.",
        ],
    ),
    ("frontend f\n bind 127.0.0.1:1\n acl a src_port eq -- 80 lt -- 5 ge 3 80-90 5-", 0, &[]),
    (
        "frontend f\n bind 127.0.0.1:1\n acl a src_port 3.1\n acl b src_port 3.0-3.1\n acl c src_port 9-3",
        1,
        &[
            "config : parsing [{}:8] : error detected while parsing ACL 'a' : '3.1' is not a number.",
            "config : parsing [{}:9] : error detected while parsing ACL 'b' : '3.0-3.1' is not a valid number range.",
            "config : parsing [{}:10] : error detected while parsing ACL 'c' : '9-3' is not a valid number range.",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n acl a req.ssl_ver 3.0-3.1 3\n acl b req.ssl_ver 3.",
        1,
        &[
            "config : parsing [{}:9] : error detected while parsing ACL 'b' : '3.' is not a dotted number.",
        ],
    ),
    ("frontend f\n bind 127.0.0.1:1\n log ring@nowhere local0\n log backend@nowhere local0", 0, &[]),
    (
        "frontend f\n bind 127.0.0.1:1\n bind fd@963",
        1,
        &[
            "config : parsing [{}:8] : 'bind' : cannot use file descriptor '963' : Bad file descriptor.",
        ],
    ),
    (
        "listen l\n bind 127.0.0.1:1\n server s 127.0.0.1:1\n use-server s if TRUE\n http-request deny if FALSE\n default_backend l2\nlisten l2\n bind 127.0.0.1:2\n server s 127.0.0.1:1",
        0,
        &[
            "config : parsing [{}:10] : a 'http-request' rule placed after a 'use-server' rule will still be processed before.",
            "In proxy 'l', the 'default_backend' rule always has precedence over the servers, which will never be used.",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n http-request deny if a\n acl a path /x",
        1,
        &[
            "config : parsing [{}:8] : error detected while parsing an 'http-request deny' condition : no such ACL : 'a'.",
        ],
    ),
    (
        "listen f\n bind 127.0.0.1:1\n server s 127.0.0.1:1\n stick-table type ip size 10\n http-response deny if a\n tcp-request content accept if a\n redirect location /x if a\n monitor fail if a\n use-server s if a\n force-persist if a\n stick on src if a\n force-be-switch if a\n http-request set-header x %[acl(a)]\n http-request set-header x y if { acl(a) }\n acl b acl(a)\n acl a path /x",
        1,
        &[
            "config : parsing [{}:10] : error detected while parsing an 'http-response deny' condition : no such ACL : 'a'.",
        ],
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n acl a path /x\n http-request deny if a\n acl a path /y\n log-format %[acl(b)]\n use_backend %[acl(b)]\n acl b path /z",
        0,
        &[
            "log format ignored for frontend 'f' since it has no log address.",
        ],
    ),
];

#[test]
fn configurations_are_accepted_and_refused_as_by_haproxy() {
    let folder = Folder::new();
    assert_eq!(DEFAULTS.lines().count(), 5, "numbers of lines stand above");
    for (sections, code, expected) in ROWS {
        let file = folder.write("verdict.cfg", &format!("{DEFAULTS}{sections}\n"));
        let found = line(&format!("-c -f {file}"));
        assert_eq!(found.code(), Some(*code), "{sections}\n{}", found.stderr);
        let first = found.stderr.lines().filter(|line| line.starts_with('['));
        let told: Vec<&str> = first.filter_map(|line| Some(line.split_once(") : ")?.1)).collect();
        for expected in *expected {
            let expected = expected.replace("{}", &file);
            assert!(told.contains(&expected.as_str()), "{sections}\n{expected}\n{}", found.stderr);
        }
        if *code == 0 {
            assert!(!found.stderr.contains("[ALERT]"), "{sections}\n{}", found.stderr);
        }
    }
}

#[test]
fn a_target_of_logs_that_is_not_there_is_refused_at_a_start_alone() {
    let folder = Folder::new();
    let file =
        folder.write("ring.cfg", &format!("{DEFAULTS}frontend f\n bind 127.0.0.1:1\n log ring@nowhere local0\n"));
    let sentence = format!(
        ") : log directive declared in proxy section 'f' in file '{file}' at line 8 uses unknown ring named 'nowhere'."
    );
    for (flags, code, severity) in [("-c", 0, "[NOTICE]"), ("", 1, "[ALERT]")] {
        let found = line(&format!("{flags} -f {file}"));
        assert_eq!(found.code(), Some(code), "{}", found.stderr);
        let told = found.stderr.lines().find(|line| line.ends_with(&sentence));
        assert!(told.is_some_and(|line| line.starts_with(severity)), "{flags}\n{}", found.stderr);
    }
}

/// Lookups in the system are performed even if the text is invalid.
#[test]
fn names_of_the_system_are_told_with_everything_else() {
    let folder = Folder::new();
    let global = "global\n user no-such-user\n group no-such-group\n nonsense\n";
    let sections =
        "frontend f\n bind nowhere.invalid:80\n http-request deny if nope\nbackend b\n server s nowhere.invalid:80\n";
    let file = folder.write("all.cfg", &format!("{global}{DEFAULTS}{sections}"));
    let found = line(&format!("-c -f {file}"));
    assert_eq!(found.code(), Some(1), "{}", found.stderr);
    for expected in [
        format!("config : parsing [{file}:2] : cannot find user id for 'no-such-user' (0:Success)"),
        format!("config : parsing [{file}:3] : cannot find group id for 'no-such-group' (0:Success)"),
        format!("config : parsing [{file}:4] : unknown keyword 'nonsense' in 'global' section"),
        format!("config : parsing [{file}:11] : 'bind' : invalid address: 'nowhere.invalid' in 'nowhere.invalid:80'"),
        format!(
            "config : parsing [{file}:12] : error detected while parsing an 'http-request deny' condition : no such ACL : 'nope'."
        ),
        format!("[{file}:14] : 'server b/s' : could not resolve address 'nowhere.invalid'."),
    ] {
        assert!(found.stderr.contains(&format!(") : {expected}\n")), "{expected}\n{}", found.stderr);
    }
}
