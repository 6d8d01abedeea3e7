//! The keys that HAProxy 2.6 and 3.5 hash, determined with 251 servers.

use super::*;
use base::hash::{avalanche, sdbm};

/// Returns the hash of a request for `target` with one field `x` and a body.
fn hash(by: &BalanceSpec, method: &str, target: &str, x: &[&str], body: &[u8]) -> Option<u32> {
    let mut head = Head::new();
    head.set_method(method.as_bytes());
    head.set_target(target.as_bytes());
    for value in x {
        head.append(b"x", value.as_bytes());
    }
    let subject = Subject { source: None, request: Some(&head), bytes: body };
    Recogniser::new(by, &HashSpec::default())?.hash(&subject)
}

#[test]
fn uri() {
    let plain = UriSpec::default();
    let (whole, path_only) = (UriSpec { whole: true, ..plain }, UriSpec { path_only: true, ..plain });
    let depth = |depth| UriSpec { depth: Some(depth), ..plain };
    let long = "/abc/def/ghi?p=val&q=2;p=3";
    let rows = [
        (plain, long, "/abc/def/ghi"),
        (plain, "/", "/"),
        (plain, "/?a=b", "/"),
        (plain, "*", "*"),
        (plain, "http://h/abc/def?x=/y/z", "http://h/abc/def"),
        (plain, "http://h", "http://h"),
        (whole, long, long),
        (whole, "/?a=b", "/?a=b"),
        (UriSpec { len: Some(5), ..plain }, long, "/abc/"),
        (UriSpec { len: Some(5), ..plain }, "/?a=b", "/"),
        (UriSpec { len: Some(15), ..whole }, long, "/abc/def/ghi?p="),
        (UriSpec { len: Some(7), depth: Some(2), ..plain }, long, "/abc/de"),
        (UriSpec { len: Some(7), depth: Some(2), ..plain }, "/a//b/c", "/a/"),
        (depth(1), long, "/abc"),
        (depth(2), long, "/abc/def"),
        (depth(3), long, "/abc/def/ghi"),
        (depth(1), "/a//b/c", "/a"),
        (depth(2), "/a//b/c", "/a/"),
        (depth(3), "/a//b/c", "/a//b"),
        (depth(1), "*", "*"),
        (depth(1), "http://h?x=1", "http:/"),
        (depth(3), "http://h/abc/def", "http://h/abc"),
        (UriSpec { depth: Some(4), ..whole }, long, long),
        (path_only, long, "/abc/def/ghi"),
        (path_only, "http://h/abc/def?x=/y/z", "/abc/def"),
        (path_only, "https://h:443/a/b", "/a/b"),
        (path_only, "http://h", ""),
        (path_only, "*", ""),
        (UriSpec { path_only: true, ..whole }, "http://h?x=1", "?x=1"),
        (UriSpec { path_only: true, ..depth(2) }, long, "/abc/def"),
    ];
    for (uri, target, key) in rows {
        let found = hash(&BalanceSpec::Uri(uri), "GET", target, &[], b"");
        assert_eq!(found, Some(sdbm(key.as_bytes())), "{uri:?} of {target}");
    }
}

#[test]
fn url_param() {
    let by = BalanceSpec::UrlParam { name: "p".to_owned(), check_post: false };
    let rows = [
        ("/x?p=val", Some("val")),
        ("/x?q=1&p=val&p=w", Some("val")),
        ("/x?xp=1&p=2", Some("2")),
        ("/x?p", None),
        ("/x?p=", Some("")),
        ("/x?p=&p=2", Some("")),
        ("/x?q;p=3", None),
        ("/x?q=1;p=3&p=4", Some("4")),
        ("/x?p=a%20b", Some("a%20b")),
        ("/x?P=up", None),
        ("/p=1", None),
        ("/x?p=a?p=b", Some("a?p=b")),
        ("/x??p=1", None),
        ("/x?a=1&&p=2", Some("2")),
        ("/x?ap=1", None),
        ("/x?p%3d=1", None),
        ("/x?p=a=b", Some("a=b")),
        ("http://h/x?p=1", Some("1")),
    ];
    for (target, key) in rows {
        assert_eq!(hash(&by, "GET", target, &[], b""), key.map(|key| sdbm(key.as_bytes())), "{target}");
    }
    let rows: &[(&str, &str, &[u8], Option<&str>)] = &[
        ("POST", "/x?p=1", b"p=body", Some("1")),
        ("POST", "/x", b"p=body&q=1", Some("body")),
        ("POST", "/x?q=1", b"a=1&p=body", Some("body")),
        ("POST", "/x", b"a=1\r\np=body", None),
        ("POST", "/x", b"p=bo dy", Some("bo")),
        ("POST", "/x", b"p=body\r\n", Some("body")),
        ("POST", "/x", b"p=bo\tdy&x=1", Some("bo")),
        ("POST", "/x", b"q=1 &p=body", Some("body")),
        ("POST", "/x", b"?p=body", None),
        ("POST", "/x", b"p=", Some("")),
        ("POST", "/x", b"p", None),
        ("POST", "/x", b"p=b\xffd", None),
        ("POST", "/x", b"p=b\x01d", None),
        ("PUT", "/x", b"p=body", None),
        ("GET", "/x", b"p=body", None),
    ];
    for (method, target, body, key) in rows {
        let found = hash(&by, method, target, &[], body);
        assert_eq!(found, key.map(|key| sdbm(key.as_bytes())), "{method} {target} {}", body.escape_ascii());
    }
}

#[test]
fn header() {
    let rows: &[(&[&str], Option<&str>)] = &[
        (&["val"], Some("val")),
        (&["a, b"], Some("a")),
        (&["\"q,r\""], Some("\"q,r\"")),
        (&["a b"], Some("a b")),
        (&["one", "two"], Some("one")),
        (&[""], None),
        (&[], None),
    ];
    for (values, key) in rows {
        let by = BalanceSpec::Header { name: "x".to_owned(), domain_only: false };
        assert_eq!(hash(&by, "GET", "/", values, b""), key.map(|key| sdbm(key.as_bytes())), "{values:?}");
    }
    let rows = [
        ("haproxy.1wt.eu", "1wt"),
        ("HAproxy.1Wt.eu", "1Wt"),
        ("www.example.co.uk", "co"),
        ("example.com:8080", "example"),
        ("a.b", "a"),
        ("localhost", "localhost"),
        ("localhost:8080", "localhost:8080"),
        ("[::1]:80", "[::1]:80"),
        ("1.2.3.4", "3"),
        ("com.", "com"),
        (".com", ".com"),
        (".a.b", "a"),
        ("...", "."),
        ("..x", "."),
        ("x..y", "x."),
        ("www.example.com.", "com"),
        ("foo.example.com/x.y", "com/x"),
    ];
    for (value, key) in rows {
        let by = BalanceSpec::Header { name: "x".to_owned(), domain_only: true };
        assert_eq!(hash(&by, "GET", "/", &[value], b""), Some(sdbm(key.as_bytes())), "{value}");
    }
}

#[test]
fn addresses_are_mixed_but_not_hashed() {
    let source = Some("10.0.0.1".parse().unwrap());
    let rows = [
        (HashMethod::MapBased, None, false, 0x0a00_0001),
        (HashMethod::MapBased, Some(HashFunction::Crc32), false, 0x0a00_0001),
        (HashMethod::MapBased, Some(HashFunction::Sdbm), true, avalanche(0x0a00_0001)),
        (HashMethod::Consistent, None, false, avalanche(0x0a00_0001)),
        (HashMethod::Consistent, Some(HashFunction::Djb2), false, 0x0a00_0001),
        (HashMethod::Consistent, Some(HashFunction::Djb2), true, avalanche(0x0a00_0001)),
    ];
    for (method, function, mixed, expected) in rows {
        let spec = HashSpec { method, function, avalanche: mixed, ..HashSpec::default() };
        let recogniser = Recogniser::new(&BalanceSpec::Source, &spec).unwrap();
        assert_eq!(recogniser.hash(&Subject { source, ..Subject::default() }), Some(expected), "{spec:?}");
        assert_eq!(recogniser.hash(&Subject::default()), None);
    }
}

#[test]
fn without_a_function_the_key_is_the_number() {
    let rows = [("123", 123), (" 7x", 7), ("-1", u32::MAX), ("+3", 3), ("x", 0), ("4294967297", 1)];
    for (text, number) in rows {
        assert_eq!(leading_number(text.as_bytes()), number, "{text}");
    }
}

#[test]
fn who_does_not_hash_recognises_nobody() {
    for by in [BalanceSpec::RoundRobin, BalanceSpec::LeastConn, BalanceSpec::First, BalanceSpec::Random { draws: 2 }] {
        assert_eq!(Recogniser::new(&by, &HashSpec::default()), None);
    }
}
