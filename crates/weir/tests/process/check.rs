//! `-c` and all messages about a configuration before sockets are bound.

use crate::support::{DEFAULTS, Folder, Running, WEIR, line, run, wait_until};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;

fn good() -> String {
    format!(
        "{DEFAULTS}frontend web\n    bind 127.0.0.1:1\n    default_backend app\nbackend app\n    server one 127.0.0.1:2\n"
    )
}

#[test]
fn a_good_configuration_passes_in_silence() {
    let folder = Folder::new();
    let file = folder.write("good.cfg", &good());
    for flags in ["-c", "-c -q", "-d -dM -dI -dW -c", "-D -c", "-c -dD -q"] {
        let found = line(&format!("{flags} -f {file}"));
        assert_eq!((found.code(), found.stdout.as_str(), found.stderr.as_str()), (Some(0), "", ""), "{flags}");
    }
    for flags in ["-c -V", "-q -V -c", "-V -q -c"] {
        let found = line(&format!("{flags} -f {file}"));
        assert_eq!((found.code(), found.stdout.as_str()), (Some(0), "Configuration file is valid\n"), "{flags}");
    }
}

/// `-dV` changes the default of `ssl-server-verify`, but not explicit settings.
#[test]
fn servers_are_not_verified_by_default_where_the_command_line_says_so() {
    let folder = Folder::new();
    let rows = [
        ("", "ssl", "-c", Some(1)),
        ("", "ssl", "-dV -c", Some(0)),
        ("", "ssl verify required", "-dV -c", Some(1)),
        ("global\n    ssl-server-verify required\n", "ssl", "-dV -c", Some(1)),
        ("global\n    ssl-server-verify none\n", "ssl", "-c", Some(0)),
    ];
    for (global, server, flags, code) in rows {
        let text = format!("{global}{DEFAULTS}backend app\n    server one 127.0.0.1:2 {server}\n");
        let file = folder.write("verify.cfg", &text);
        let found = line(&format!("{flags} -f {file}"));
        assert_eq!(found.code(), code, "{global}{server} {flags}: {}", found.stderr);
    }
}

#[test]
fn warnings_are_told_and_are_fatal_when_asked_for() {
    let folder = Folder::new();
    let file = folder.write("warned.cfg", "global\n    .warning \"beware\"\n");
    let found = line(&format!("-c -f {file}"));
    assert_eq!((found.code(), found.stdout.as_str()), (Some(0), "Warnings were found.\n"));
    assert!(found.stderr.contains("[WARNING]  (") && found.stderr.contains("beware"), "{}", found.stderr);
    assert_eq!(line(&format!("-c -V -f {file}")).stdout, "Warnings were found.\nConfiguration file is valid\n");
    let silent = line(&format!("-c -q -f {file}"));
    assert_eq!((silent.code(), silent.stdout + &silent.stderr), (Some(0), String::new()));
    for flags in ["-dW -c", "-dW"] {
        let refused = line(&format!("{flags} -f {file}"));
        assert_eq!((refused.code(), refused.stdout.as_str()), (Some(1), ""), "{flags}");
        assert!(refused.stderr.contains("'zero-warning' is set. Aborting."), "{}", refused.stderr);
    }
    let strict = folder.write("strict.cfg", "global\n    zero-warning\n    .warning \"beware\"\n");
    assert_eq!(line(&format!("-c -f {strict}")).code(), Some(1));
}

#[test]
fn every_error_is_told_at_once_and_the_last_line_sums_up() {
    let folder = Folder::new();
    let file = folder.write(
        "bad.cfg",
        "defaults\n    mode http\n    foo bar\nfrontend web\n    bind 127.0.0.1:1\n    tiimeout client 5s\n",
    );
    for flags in ["-c", "", "-D", "-d"] {
        let found = line(&format!("{flags} -f {file}"));
        assert_eq!((found.code(), found.stdout.as_str()), (Some(1), ""), "{flags}");
        for expected in [
            format!("config : parsing [{file}:3] : unknown keyword 'foo' in 'defaults' section"),
            format!("config : parsing [{file}:6] : unknown keyword 'tiimeout' in 'frontend' section"),
            format!("config : Error(s) found in configuration file : {file}"),
        ] {
            assert!(found.stderr.contains(&expected), "{expected}\n{}", found.stderr);
        }
        let last = found.stderr.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("[ALERT]    (") && last.ends_with("config : Fatal errors found in configuration."),
            "{last}"
        );
    }
    let silent = line(&format!("-q -c -f {file}"));
    assert_eq!((silent.code(), silent.stdout + &silent.stderr), (Some(1), String::new()));
}

#[test]
fn rules_and_formats_are_looked_at_whatever_else_is_wrong() {
    let folder = Folder::new();
    let text = "backend app\n    server one 300.0.0.1:2\n    server two 127.0.0.1:2 chek\nfrontend web\n    bind 127.0.0.1:1\n    \
                acl a srrc 1\n    http-request deny if a\n    use_backend lost if { pathh /x }\n    http-request set-var(txn.a) \
                srv_is_up(app/one)\n    log-format %[nope]\n    default_backend lost\n";
    let file = folder.write("bad.cfg", &format!("defaults\n    foo\n{}{text}", &DEFAULTS["defaults\n".len()..]));
    let found = line(&format!("-c -f {file}"));
    let wanted = [
        "unknown keyword 'foo'",
        "'chek'",
        "unknown fetch method 'srrc'",
        "unknown fetch method 'pathh'",
        "unable to find required use_backend: 'lost'",
        "unknown fetch method 'nope'",
    ];
    let at: Vec<Option<usize>> = wanted.iter().map(|part| found.stderr.find(part)).collect();
    assert!(at.iter().all(Option::is_some) && at[..4].is_sorted(), "{at:?}\n{}", found.stderr);
    // Errors that only follow from another error are not reported.
    assert!(!found.stderr.contains("no such ACL") && !found.stderr.contains("find server"), "{}", found.stderr);
}

/// Lines of a frontend, and the message about them: its end with its severity.
const REMARKS: &[(&str, &str)] = &[
    (
        "http-request deny\nhttp-request allow",
        "W previous 'http-request' action is final and has no condition attached",
    ),
    ("http-request deny if TRUE\nhttp-request allow", ""),
    ("http-request redirect location %[path] ignore-empty\nhttp-request allow", ""),
    ("http-request redirect location /x ignore-empty\nhttp-request allow", ""),
    (
        "http-request redirect location /x\nhttp-request allow",
        "W previous 'http-request' action is final and has no condition attached",
    ),
    ("http-request set-header X-A: b", "W header name 'X-A:' contains forbidden character ':'."),
    ("http-request add-header 'a b' c", "W header name 'a b' contains forbidden character ' '."),
    ("http-request early-hint a@ c", "W header name 'a@' contains forbidden character '@'."),
    ("http-request set-header %[src] c", "W header name '%[src]' contains forbidden character '['."),
    ("http-response set-header a: c", "W header name 'a:' contains forbidden character ':'."),
    ("http-after-response add-header a: c", "W header name 'a:' contains forbidden character ':'."),
    ("http-request del-header a:", ""),
    ("http-request replace-header a: b c", ""),
    ("http-request set-header X-A b", ""),
    (
        "http-request track-sc0 src foo",
        "A 'http-request track-sc0' expects either 'if' or 'unless' followed by a condition",
    ),
    ("http-request track-sc0 src", "A Proxy 'web': unable to find table 'web' referenced by track-sc0."),
    ("backend z\nstick on src table", "A Proxy 'z': unable to find stick-table ''."),
    (
        "tcp-request content track-sc0 src foo",
        "A 'tcp-request content track-sc0' only accepts 'if' or 'unless', in frontend 'web' (got 'foo')",
    ),
    ("use_backend app if TRUE\nhttp-request deny", "W a 'http-request' rule placed after a 'use_backend' rule will"),
    ("http-request deny\ntcp-request content accept", "W a 'tcp-request content' rule placed after an 'http-request'"),
    ("tcp-request content accept\nhttp-request deny", ""),
    ("acl a path -7", "A '-7' is not a valid ACL option. Please use '--' before any pattern"),
    ("acl a path -- -7", ""),
    ("acl a path_beg -m end x", "W original matching method 'path_beg' was overwritten and will not be applied"),
    ("acl a path_beg,lower x", "W original matching method 'path_beg' was overwritten"),
    ("acl a path_beg -m beg x", ""),
    ("acl a path", "W no pattern to match against were provided"),
    ("acl a path -i", ""),
    (
        "acl a status 200\nhttp-request deny if a",
        "W 'acl 'a' will never match because it only involves keywords that are",
    ),
    (
        "acl a status 200\nacl a path /\nhttp-request deny if a",
        "W 'acl 'a' involves keywords 'status' which is incompatible",
    ),
    ("http-request deny if { status 200 }", "W 'anonymous acl will never match because it uses keyword 'status' which"),
    ("redirect location / if { status 200 }", "W 'anonymous acl will never match because it uses keyword 'status'"),
    ("use_backend app if { req.len gt 0 }", "W Proxy 'web': L6 sample fetches ignored on HTTP proxies (declared at"),
    ("http-request set-header a %[req.len]", "W L6 sample fetch <req.len> ignored in HTTP log-format string."),
    ("http-request return content-type a/b lf-string %[req.len]", ""),
    ("acl a acl(METH_GET,!HTTP_1.0)\nhttp-request deny if a", ""),
    ("http-request set-header a %[src,when(acl,METH_GET)]", ""),
    ("acl or path /", "A acl name 'or' will never match."),
    ("acl Or path /", "A acl name 'Or' will never match. 'or' is used"),
    ("acl", "A 'acl' expects a name and an expression."),
    ("acl a req.hdr_cnt(x) 5:3", "A '5:3' is not a valid number range."),
    ("acl a path,nope x", "A ACL keyword 'path' : unknown converter 'nope'."),
    ("acl a bin(00) -m bool", "A matching method 'bool' cannot be used with fetch keyword 'bin'."),
    ("acl a src localhost", ""),
    ("acl a src -n localhost", "A 'localhost' is not a valid IPv4 or IPv6 address."),
    ("acl a req.body,json_query('$.a') x", "A matching method must be specified first (using '-m')"),
    ("mode tcp\nhttp-request deny", "W 'http-request' rules ignored for frontend 'web' as they require HTTP mode."),
    ("mode tcp\nhttp-response deny", "W 'http-response' rules ignored for frontend 'web' as they require HTTP mode."),
    (
        "acl a http_auth_group(u) g h\nuserlist u\ngroup g\nuser x insecure-password y groups g",
        "A proxy web: acl a http_auth_group(): invalid group 'h'.",
    ),
    (
        "http-request deny if { http_auth_group(u) h }\nuserlist u\ngroup g",
        "A proxy web: acl  http_auth_group(): invalid group 'h'.",
    ),
    ("acl a http_auth_group(u) g\nuserlist u\ngroup g", ""),
    (
        "ring r\nmaxlen 40000",
        "W config : ring 'r' event max length '40000' exceeds max payload size, forced to '16187'.",
    ),
    ("ring r\nsize 1000\nmaxlen 805", "W ring 'r' event max length '805' exceeds max payload size, forced to '804'."),
    ("ring r\nsize 1000\nmaxlen 804", ""),
    ("ring r\nsize 300\nmaxlen 106", "W ring 'r' event max length '106' exceeds max payload size, forced to '105'."),
    (
        "backend b\nserver s 127.0.0.1 check",
        "A config: backend 'b': server 's' has neither service port nor check port.",
    ),
    (
        "backend b\nserver s 0.0.0.0 check addr 127.0.0.1",
        "A config: backend 'b': server 's' has neither service port nor check port.",
    ),
    (
        "backend b\nserver s 127.0.0.1 check addr 0.0.0.0",
        "A config: backend 'b': server 's' has neither service port nor check port.",
    ),
    ("backend b\nserver s 0.0.0.0 check", ""),
    ("backend b\nserver s : check", ""),
    ("backend b\nserver s 127.0.0.1 check addr 127.0.0.1:80", ""),
    ("mode tcp\nredirect location /", "W 'redirect' rules ignored for frontend 'web' as they require HTTP mode."),
];

#[test]
fn what_haproxy_remarks_is_remarked() {
    let folder = Folder::new();
    for (lines, wanted) in REMARKS {
        let tcp = if lines.contains("mode tcp") { "    mode tcp\n" } else { "" };
        let text = format!(
            "{DEFAULTS}backend app\n{tcp}    server one 127.0.0.1:2\nfrontend web\n    bind 127.0.0.1:1\n{lines}\n"
        );
        let found = line(&format!("-c -f {}", folder.write("remarks.cfg", &text)));
        let (severity, message) = wanted.split_at(wanted.len().min(1));
        let expected = match severity {
            "A" => (Some(1), "[ALERT]"),
            "W" => (Some(0), "[WARNING]"),
            _ => (Some(0), ""),
        };
        assert_eq!(found.code(), expected.0, "{lines}\n{}", found.stderr);
        assert!(
            found.stderr.contains(message.trim()) && found.stderr.contains(expected.1),
            "{lines}\n{}",
            found.stderr
        );
        assert_eq!(found.stderr.is_empty(), wanted.is_empty(), "{lines}\n{}", found.stderr);
    }
}

/// `quiet` suppresses warnings, but not the reason why the start fails.
#[test]
fn a_quiet_configuration_says_why_it_is_refused() {
    let folder = Folder::new();
    let text = format!(
        "global\n quiet\n{DEFAULTS}frontend f\n bind 127.0.0.1:1\n http-request deny\n http-request deny\n log-format %[nope]\n"
    );
    let file = folder.write("quiet.cfg", &text);
    for flags in ["-c", "-db"] {
        let found = line(&format!("{flags} -f {file}"));
        assert_eq!(found.code(), Some(1));
        assert!(found.stderr.contains("unknown fetch method 'nope'"), "{}", found.stderr);
        assert!(!found.stderr.contains("action is final"), "{}", found.stderr);
    }
}

#[test]
fn missing_files_are_named() {
    for flags in ["-c", "", "-c --"] {
        let named = if flags.ends_with("--") { "/nowhere/a /nowhere/b" } else { "-f /nowhere/a -f /nowhere/b" };
        let found = line(&format!("{flags} {named}"));
        assert_eq!(found.code(), Some(1));
        for name in ["a", "b"] {
            let expected =
                format!("Cannot open configuration file/directory /nowhere/{name} : No such file or directory");
            assert!(found.stderr.contains(&expected), "{}", found.stderr);
        }
    }
}

#[test]
fn a_folder_stands_for_its_files_in_order() {
    let folder = Folder::new();
    for (name, keyword) in [("d/b.cfg", "second"), ("d/a.cfg", "first"), ("d/.c.cfg", "hidden"), ("d/d.txt", "other")] {
        folder.write(name, &format!("{keyword}\n"));
    }
    std::fs::create_dir(folder.path("d/e.cfg")).expect("a folder");
    let found = line(&format!("-c -f {}/d", folder.text()));
    assert_eq!(found.code(), Some(1));
    let place = |word: &str| found.stderr.find(word);
    assert!(place("'first'") < place("'second'") && place("'first'").is_some(), "{}", found.stderr);
    assert!(place("'hidden'").is_none() && place("'other'").is_none(), "{}", found.stderr);
    let empty = Folder::new();
    let found = line(&format!("-c -f {}", empty.text()));
    assert_eq!(found.code(), Some(1));
    assert!(found.stderr.contains("no configuration"), "{}", found.stderr);
}

#[test]
fn relative_paths_start_where_c_says() {
    let folder = Folder::new();
    folder.write("good.cfg", &good());
    assert_eq!(line(&format!("-C {} -c -f good.cfg", folder.text())).code(), Some(0));
    let found = line("-C /nowhere -c -f good.cfg");
    assert_eq!(found.code(), Some(1));
    let expected = "Could not change to directory /nowhere : No such file or directory";
    assert!(found.stderr.contains(expected), "{}", found.stderr);
}

#[test]
fn no_listener_is_an_error_only_when_something_is_to_be_served() {
    let folder = Folder::new();
    for content in ["", "global\n    maxconn 10\n"] {
        let file = folder.write("none.cfg", content);
        assert_eq!(line(&format!("-c -f {file}")).code(), Some(0));
        let found = line(&format!("-f {file}"));
        assert_eq!(found.code(), Some(1));
        assert!(
            found.stderr.contains("No enabled listener found (check for 'bind' directives) ! Exiting."),
            "{}",
            found.stderr
        );
    }
}

#[test]
fn a_runtime_socket_is_reason_enough_to_run() {
    let folder = Folder::new();
    let socket = folder.path("api");
    let file = folder.write("runtime.cfg", &format!("global\n    stats socket {}\n", socket.display()));
    let running = Running::weir(&["-db", "-f", &file]);
    wait_until("the socket", || UnixStream::connect(&socket).is_ok());
    // It listens before it handles signals: once it answers, it serves.
    let mut api = UnixStream::connect(&socket).unwrap();
    api.write_all(b"show version\n").unwrap();
    let mut answer = String::new();
    api.read_to_string(&mut answer).unwrap();
    assert!(!answer.is_empty());
    running.send(Signal::USR1);
    assert_eq!(running.finish().code(), Some(0));
}

#[test]
fn the_configuration_sees_what_haproxy_defines() {
    let folder = Folder::new();
    let text = "global\n    .notice \"<$HAPROXY_BRANCH $HAPROXY_LOCALPEER $HAPROXY_CFGFILES $WEIR_TEST>\"\n";
    let file = folder.write("seen.cfg", text);
    let found = run(Command::new(WEIR).args(["-c", "-L", "peer1", "-f", &file]).env("WEIR_TEST", "yes"));
    assert_eq!(found.code(), Some(0));
    assert!(found.stderr.contains(&format!("<3.5 peer1 {file} yes>")), "{}", found.stderr);
    assert!(found.stderr.starts_with("[NOTICE]   ("), "{}", found.stderr);
}

#[test]
fn rules_of_named_defaults_are_looked_at_even_where_nobody_uses_them() {
    let folder = Folder::new();
    let write = |from: &str| {
        let section = "defaults rules\n    mode http\n    http-request set-header x %[nothing]\n    http-request deny if \
                       missing\n    http-request capture src len 10\n";
        folder.write("named.cfg", &format!("{section}{DEFAULTS}frontend web{from}\n    bind 127.0.0.1:1\n"))
    };
    for from in ["", " from rules"] {
        let file = write(from);
        let found = line(&format!("-c -f {file}"));
        assert_eq!(found.code(), Some(1));
        for (line, expected) in [
            (3, "error detected in defaults 'rules' while parsing 'http-request set-header' rule : failed to parse"),
            (4, "error detected while parsing an 'http-request deny' condition : no such ACL : 'missing'."),
        ] {
            let expected = format!("config : parsing [{file}:{line}] : {expected}");
            assert_eq!(found.stderr.matches(&expected).count(), 1, "{expected}\n{}", found.stderr);
        }
        assert!(!found.stderr.contains(&format!("{file}:5")), "{}", found.stderr);
    }
}

/// Sections with errors found after their lines, and HAProxy 3.5's messages; `{}` is the file.
const FOUND_LATE: &[(&str, &[&str])] = &[
    (
        "backend b\n server s 127.0.0.1:80 healthcheck none",
        &["[{}:7] : 'server b/s' : parsing [{}:7]: healthcheck section '*healthcheck-none' not found for server 's'."],
    ),
    (
        "backend b\n default-server healthcheck none\n server-template s 1-2 127.0.0.1:80 check",
        &[
            "[{}:8] : 'server-template b/s' : parsing [{}:8]: healthcheck section '*healthcheck-none' not found for server \
           's1'.",
        ],
    ),
    (
        "crt-store web\n load crt none.pem alias /x",
        &[
            "config : parsing [{}:7] : parsing [{}:7] : cannot parse 'alias' value '/x', '/' is forbidden as the first character.",
        ],
    ),
    (
        "backend b\n server s1 127.0.0.1:80 track none/s\n server s2 127.0.0.1:80 track s",
        &[
            "[{}:7] : 'server b/s1' : unable to find required proxy 'none' for tracking.",
            "[{}:8] : 'server b/s2' : unable to find required server 's' for tracking.",
        ],
    ),
    (
        "listen l\n bind 127.0.0.1:1\n server s 127.0.0.1:80 resolvers r\nbackend b\n server s 127.0.0.1:80 resolvers r",
        &[
            "proxy 'l', server 's': unable to find required resolvers 'r'",
            "backend 'b', server 's': unable to find required resolvers 'r'",
        ],
    ),
    (
        "backend b\n server s 127.0.0.1:80 send-proxy-v2 set-proxy-v2-tlv-fmt(5) %[none]",
        &["config : [{}:7] : 'server b/s' : failed to parse sample expression <none]> : unknown fetch method 'none'"],
    ),
    (
        "backend b\n server s 127.0.0.1:80 send-proxy proxy-v2-options crc32c,pass-tlv\n server t 127.0.0.1:80 \
         proxy-v2-options pass-tlv",
        &[
            "config : [{}:7] : 'server b/s' : 'proxy-v2-options pass-tlv' requires 'send-proxy-v2', 'send-proxy' sends no TLVs.",
        ],
    ),
    (
        "resolvers r\n nameserver n 127.0.0.1:53\nbackend b\n default-server srv-port 81 init-addr none\n server s a.test:80 resolvers r\n \
         server t a.test:80 resolvers r srv-port 82\n server-template u 2 _a._tcp.test srv-port 82\n server v _a._tcp.test \
         resolvers r srv-port 82",
        &[
            "config : [{}:11] : 'server b/t' : 'srv-port' requires 'resolvers' and a name of a service, which begins with '_'.",
            "config : [{}:12] : 'server b/u1' : 'srv-port' requires 'resolvers' and a name of a service, which begins with '_'.",
        ],
    ),
    (
        "backend b\n server s1 127.0.0.1:80 pool-conn-name none\n server s2 127.0.0.1:80 pool-conn-name res.hdr(x)",
        &[
            "config : [{}:7] : 'server b/s1' : error detected while parsing sni or pool-conn-name expressions : unknown \
             fetch method 'none'.",
            "config : [{}:8] : 'server b/s2' : error detected while parsing sni or pool-conn-name expressions : fetch method \
             'res.hdr(x)' extracts information from 'HTTP response headers', none of which is available here..",
        ],
    ),
    (
        "mailers m\nmailers n\n mailer a 127.0.0.1:25\nbackend b\n email-alert mailers m\n email-alert from x\n email-alert to \
         x\nbackend c\n disabled\n email-alert mailers n\n email-alert from x\n email-alert to x",
        &["Removing incomplete section 'mailers n'."],
    ),
    (
        "backend b\n server s\n server s%t 127.0.0.1:1\n server s 127.0.0.1:x\n server t 127.0.0.1:1\n server t 127.0.0.1:1\n \
         server-template u 0 127.0.0.1:1\nring r\n server v\n server s%t 127.0.0.1:1\npeers p\n peer w 127.0.0.1:x\nmailers \
         m\nmailers m\nbackend b",
        &[
            "config : [{}:7] : 'server' expects <name> and <addr>[:<port>] as arguments.",
            "config : [{}:8] : character '%' is not permitted in server name 's%t'.",
            "config : [{}:9] : 'server b/s' : invalid character 'x' in port number 'x' in '127.0.0.1:x'",
            "config : [{}:11] : 'server b/t' : another server named 't' was already defined at line 10, please use a distinct \
             name.",
            "config : [{}:12] : Wrong server-template number or range arg '0'.",
            "config : [{}:14] : 'server' expects <name> and <addr>[:<port>] as arguments.",
            "config : [{}:15] : character '%' is not permitted in server name 's%t'.",
            "config : [{}:17] : 'server (null)/w' : invalid character 'x' in port number 'x' in '127.0.0.1:x'",
            "config : Parsing [{}:19]: mailers section 'm' has the same name as another mailers section declared at {}:18.",
            "config : Parsing [{}:20]: backend 'b' has the same name as backend 'b' declared at {}:6. This is no longer \
             supported as of 3.3. Please rename one or the other.",
        ],
    ),
    (
        "backend b\n balance hash res.hdr(x)\n server s _http._tcp.none:80\n server t 127.0.0.1:1 check inter 5",
        &[
            "backend 'b' [{}:6]: error detected while parsing 'balance hash' expression 'res.hdr(x)' which requires \
             information from HTTP response headers, which is not available here.",
            "[{}:8] : 'server b/s' : no method found to resolve address '_http._tcp.none'.",
            "Failed to initialize server(s) addr.",
            "config : [{}:9] : 'server b/t' : 'inter 5' in server 't' is suspiciously small for a value in milliseconds. Please \
             use an explicit unit ('5ms') if that was the intent.",
        ],
    ),
    (
        "backend t\n stick-table type string size 1k\nfrontend f\n bind 127.0.0.1:1\n tcp-request content track-sc0 src table \
         t\n tcp-request content track-sc1 path table t\n tcp-request content track-sc2 src table t if { path /x }\nlisten \
         l\n mode tcp\n bind 127.0.0.1:2\n tcp-request content track-sc0 src table t\n tcp-request content track-sc1 \
         req.payload(0,4) table t",
        &[
            "frontend 'f' : a 'tcp-request content track-sc*' rule not depending on request contents for an HTTP frontend \
             should be executed at the session level, using a 'tcp-request session' rule (mandatory to track invalid HTTP \
             requests).",
            "frontend 'f' : a 'tcp-request content track-sc*' rule explicitly depending on request contents without any \
             'tcp-request inspect-delay' setting. This means that this rule will randomly find its contents. This can be \
             fixed by setting the tcp-request inspect-delay.",
            "proxy 'l' : a 'tcp-request content track-sc*' rule explicitly depending on request contents without any \
             'tcp-request inspect-delay' setting. This means that this rule will randomly find its contents. This can be \
             fixed by setting the tcp-request inspect-delay.",
        ],
    ),
    (
        "mailers o\n mailer a nowhere.invalid:25\nmailers n\n mailer b nowhere.invalid:26\nbackend b\n email-alert mailers n\n \
         email-alert from x\n email-alert to x",
        &[
            "config : parsing [{}:7] : 'mailer a' : invalid address: 'nowhere.invalid' in 'nowhere.invalid:25'",
            "config : parsing [{}:9] : 'mailer b' : invalid address: 'nowhere.invalid' in 'nowhere.invalid:26'",
        ],
    ),
    (
        "backend b\n server s 127.0.0.1:1 tfo\n server t udp@127.0.0.1:1",
        &[
            "[{}:7] : 'server b/s' : server has tfo activated, the backend should be configured with at least \
             'conn-failure', 'empty-response' and 'response-timeout' or we wouldn't be able to retry the connection on \
             failure.",
            "[{}:8] : unsupported transport for server address in 'http' backend.",
        ],
    ),
];

#[test]
fn what_is_found_behind_the_lines_is_told_as_haproxy_tells_it() {
    let folder = Folder::new();
    assert_eq!(DEFAULTS.lines().count(), 5, "numbers of lines stand above");
    for (sections, expected) in FOUND_LATE {
        let file = folder.write("late.cfg", &format!("{DEFAULTS}{sections}\n"));
        let found = line(&format!("-c -f {file}"));
        let first = found.stderr.lines().filter(|line| line.starts_with('[') && !line.contains("config : Error(s)"));
        let told: Vec<&str> = first.filter_map(|line| Some(line.split_once(") : ")?.1)).collect();
        for expected in *expected {
            let expected = expected.replace("{}", &file);
            assert!(told.contains(&expected.as_str()), "{expected}\n{}", found.stderr);
        }
        assert!(!found.stderr.contains("section 'mailers m'"), "{}", found.stderr);
    }
}

/// With HAProxy 3.5's messages.
#[test]
fn rules_of_both_sides_may_ask_for_their_backend_but_for_no_server() {
    let folder = Folder::new();
    let named = "defaults rules from base\n    http-request set-header x-backend %[be_name]\n    http-request deny if { be_name \
                 other }\n";
    let both = "    http-request set-header x-backend %[be_name]\n    http-request deny if { be_name other }\n    \
                unique-id-format %[be_name]\n";
    let text = format!(
        "{}{named}listen both from base\n    bind 127.0.0.1:1\n{both}    http-request deny if {{ srv_name s }}\n    force-persist \
         if {{ res.hdr(x) y }}\nfrontend front from base\n    bind 127.0.0.1:2\n    http-request deny if {{ be_name other }}\n",
        DEFAULTS.replacen("defaults", "defaults base", 1)
    );
    let file = folder.write("sides.cfg", &text);
    let found = line(&format!("-c -f {file}"));
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    let never: Vec<&str> =
        found.stderr.lines().filter_map(|line| line.split_once("never match because ")).map(|(_, why)| why).collect();
    assert_eq!(
        never,
        [
            "it uses keyword 'srv_name' which is incompatible with 'frontend http-request header rule'.",
            "it uses keyword 'res.hdr' which is incompatible with 'backend tcp-request content rule'.",
            "it uses keyword 'be_name' which is incompatible with 'frontend http-request header rule'.",
        ]
    );
    let file = folder.write("server.cfg", &text.replacen("x-backend %[be_name]", "x-server %[srv_name]", 1));
    let found = line(&format!("-c -f {file}"));
    let expected = "error detected in defaults 'rules' while parsing 'http-request set-header' rule : sample fetch <srv_name> may not be \
                    reliably used here because it needs 'server' which is not available here.";
    assert!(found.code() == Some(1) && found.stderr.contains(expected), "{}", found.stderr);
}
