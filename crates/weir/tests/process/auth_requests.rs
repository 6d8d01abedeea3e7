//! `http-request auth-request` over real sockets, and errors in its arguments.

use crate::support::{DEFAULTS, Folder, Running, connect, connect_unix, exchange_on, free_port, line, wait_until};

/// Arguments, the reason why they are refused, and the word that the caret is below.
const REFUSED: &[(&str, &str, &str)] = &[
    ("", "expects <backend> [path <format>]", "http-request auth-request"),
    ("nothing", "unable to find backend 'nothing'", "nothing"),
    ("tcp", "backend 'tcp' is not in HTTP mode", "tcp"),
    ("socks", "server 'socks/s' uses 'socks4', which subrequests do not support yet", "socks"),
    ("auth path", "missing argument for 'path'", "path"),
    ("auth path %[nothing]", "unknown fetch method 'nothing'", "%[nothing]"),
    ("auth method HEAD", "expects a method other than HEAD and CONNECT", "HEAD"),
    ("auth method G(T", "expects a method other than HEAD and CONNECT", "G(T"),
    ("auth copy a,b:c", "'b:c' is not a field name", "a,b:c"),
    ("auth copy a,", "'' is not a field name", "a,"),
    ("auth copy Content-Length", "field 'Content-Length' describes the answer's own message", "Content-Length"),
    ("auth set-var(a) b", "invalid variable name 'a'", "set-var(a)"),
    ("auth set-var(txn.a)", "missing argument for 'set-var(txn.a)'", "set-var(txn.a)"),
    ("auth set-var(txn.a) host", "field 'host' describes the answer's own message", "host"),
    ("auth on-error maybe", "'on-error' expects 'deny' or 'allow'", "maybe"),
    ("auth cache", "missing argument for 'cache'", "cache"),
    ("auth cache x key %[src]", "'cache' expects a time between 1ms and 1d", "x"),
    ("auth cache 0 key %[src]", "'cache' expects a time between 1ms and 1d", "0"),
    ("auth cache 2d key %[src]", "'cache' expects a time between 1ms and 1d", "2d"),
    ("auth cache 10s", "'cache' requires 'key <format>': without it", "cache"),
    ("auth cache 10s copy a", "'cache' requires 'key <format>': without it", "cache"),
    ("auth cache 10s key", "missing argument for 'key'", "key"),
    ("auth cache 10s key all", "'key' contains no sample as in '%[req.cook(session)]'", "all"),
    ("auth cache 10s key %ci", "'key' expects samples as in '%[req.cook(session)]'", "%ci"),
    ("auth cache 10s key %[src] size", "missing argument for 'size'", "size"),
    ("auth cache 10s key %[src] size 255k", "'size' expects a size between 256k and 1g", "255k"),
    ("auth cache 10s key %[src] size 2g", "'size' expects a size between 256k and 1g", "2g"),
    ("auth copies a", "expects <backend> [path <format>]", "copies"),
];

#[test]
fn errors_name_the_argument() {
    let folder = Folder::new();
    for (arguments, reason, word) in REFUSED {
        let text = format!(
            "{DEFAULTS}frontend f\n bind 127.0.0.1:1\n http-request auth-request {arguments}\nbackend auth\nbackend tcp\n mode tcp\n\
             backend socks\n server s 127.0.0.1:2 socks4 127.0.0.1:3\n"
        );
        let found = line(&format!("-c -f {}", folder.write("a.cfg", &text)));
        assert_eq!(found.code(), Some(1), "{arguments}");
        assert!(found.stderr.contains(reason), "{arguments}\n{}", found.stderr);
        let mut lines = found.stderr.lines();
        let shown = lines.find(|line| line.starts_with("  http-request auth-request"));
        let caret = lines.next().unwrap_or_default();
        let width = caret.matches('^').count();
        assert!(shown.is_some() && width == word.len(), "{arguments}\n{}", found.stderr);
    }
    let many = (0..65).map(|number| format!("x{number}")).collect::<Vec<_>>().join(",");
    let text =
        format!("{DEFAULTS}frontend f\n bind 127.0.0.1:1\n http-request auth-request auth copy {many}\nbackend auth\n");
    let found = line(&format!("-c -f {}", folder.write("a.cfg", &text)));
    assert!(found.stderr.contains("at most 64 fields can be copied"), "{}", found.stderr);
}

/// One process is the application, the server that decides, and the load balancer before both.
#[test]
fn a_server_decides_by_its_session_cookie() {
    let site = "ssl crt [site]";
    for (server, bind, version) in [
        ("", String::new(), "1.1"),
        ("proto h2", "proto h2".to_owned(), "2.0"),
        ("ssl verify none alpn h2,http/1.1", format!("{site} alpn h2,http/1.1"), "2.0"),
        ("ssl verify none alpn h2,http/1.1", format!("{site} alpn http/1.1"), "1.1"),
    ] {
        decides_by_its_session_cookie(server, &bind, version);
    }
}

/// The same, with options of the server's line and of the line that it listens with. `version`: that of the subrequests.
fn decides_by_its_session_cookie(server: &str, bind: &str, version: &str) {
    let folder = Folder::new();
    let bind = bind.replace("[site]", &folder.write("site.pem", include_str!("site.pem")));
    let port = free_port();
    let at = |name: &str| folder.path(name).display().to_string();
    let text = format!(
        "{DEFAULTS}frontend web
 bind 127.0.0.1:{port}
 http-request auth-request auth path /check copy remote-user set-var(txn.groups) x-groups
 http-request set-header x-said %[var(txn.groups)]
 default_backend app
backend auth
 server a unix@{auth} {server}
backend app
 server s unix@{app}
frontend decides
 bind unix@{auth} {bind}
 http-request return status 404 unless {{ path /check }} {{ method GET }}
 http-request return status 200 hdr remote-user ann hdr x-groups %[req.ver] if {{ req.cook(session) 1 }}
 http-request return status 302 hdr location /login content-type text/plain lf-string \"%[req.hdr(x-forwarded-method)] %[req.hdr(x-forwarded-uri)]\"
frontend serves
 bind unix@{app}
 http-request return status 200 content-type text/plain lf-string \"%[req.fhdr(remote-user)] %[req.hdr(x-said)]\"
",
        auth = at("auth"),
        app = at("app"),
    );
    let _weir = Running::weir(&["-db", "-f", &folder.write("weir.cfg", &text)]);
    for name in ["auth", "app"] {
        wait_until(name, || std::os::unix::net::UnixStream::connect(folder.path(name)).is_ok());
        drop(connect_unix(&folder.path(name)));
    }
    let mut client = connect(port);
    let mut ask = |fields: &str| {
        exchange_on(
            &mut client,
            &format!("GET /a?b HTTP/1.1\r\nHost: a\r\nRemote-User: root\r\nRemote_User: root\r\n{fields}\r\n"),
        )
    };
    for _ in 0..2 {
        let (status, answer) = ask("Cookie: session=1\r\n");
        assert_eq!((status, &*answer), (200, &*format!("ann {version}")));
        let (status, answer) = ask("");
        assert_eq!((status, &*answer), (302, "GET /a?b"));
    }
}
