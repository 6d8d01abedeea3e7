//! ACLs and conditions on made-up samples.

use super::*;
use crate::expression::tests::{FewNames, Scene};

fn acls() -> Acls {
    let mut acls = Acls::default();
    for (name, words) in [("a", "str(abc) -m beg ab"), ("a", "str(x) y"), ("b", "int(5) gt 7"), ("c", "always_true")] {
        let words: Vec<&str> = words.split(' ').collect();
        acls.add((0, 1), name, parse_acl(&words, &FewNames).expect("an ACL").test);
    }
    acls
}

fn evaluate(text: &str) -> Result<Verdict, String> {
    let words: Vec<&str> = text.split(' ').collect();
    let condition = parse_condition(&words, acls().all(), &FewNames, &mut Vec::new()).map_err(|error| error.message)?;
    Ok(Scene::default().with(|context| condition.evaluate(context)))
}

#[test]
fn conditions_are_disjunctions_of_conjunctions() {
    let rows = [
        ("if a", true),
        ("unless a", false),
        ("if b", false),
        ("if !b", true),
        ("if ! b", true),
        ("if !!b", false),
        ("if !! b", false),
        ("if ! !! { str(a) A }", true),
        ("if a b", false),
        ("if a b or c", true),
        ("if a b OR c", true),
        ("if b || b a || a !b c", true),
        ("if { int(3) 1:4 }", true),
        ("if { str(a) -i A } !{ str(a) A }", true),
        ("if TRUE", true),
        ("unless FALSE b", true),
        ("if { str(abc),length 3 }", true),
        ("if { str(a) -m found }", true),
        ("if { var(txn.a) -m found }", false),
        ("if { str(192.0.2.7) -m ip 192.0.2.0/24 }", true),
        ("if { str(abc) -m reg ^a.c$ }", true),
        ("if { bin(0a0b) -m bin 0a0b }", true),
        ("if { str(abc) -m len lt 3 }", false),
        ("if { str(a) -M -f m.map }", true),
        ("if { str(first) -M -f m.map -f virt@none second }", false),
        ("if { str(A) -u 7 -i a }", true),
        ("if { str(b) -f opt@nope.lst -- b }", true),
        ("if { int(5) gt 7 le 5 }", true),
    ];
    for (text, expected) in rows {
        assert_eq!(evaluate(text), Ok(Verdict::of(expected)), "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_as_haproxy_tells_it() {
    let rows = [
        ("if nope", "no such ACL : 'nope'"),
        ("if { str(a) b", "missing closing '}' in condition"),
        ("if { }", "missing fetch method in ACL expression ''"),
        ("if { foo }", "unknown fetch method 'foo' in ACL expression 'foo'"),
        ("if { str(a) -m foo b }", "unknown matching method 'foo' when parsing ACL expression"),
        ("if { str(a) -u x b }", "the argument of -u must be an integer"),
        ("if { str(a) -f nope }", "failed to open pattern file <nope>"),
        ("if { src -f m.map }", "'a first' is not a valid IPv4 or IPv6 address at line 1 of file 'm.map'"),
        ("if { int(5) foo }", "'foo' is not a number"),
        (
            "if { str(a) -z b }",
            "'-z' is not a valid ACL option. Please use '--' before any pattern beginning with a '-'",
        ),
        (
            "if { bin(00) 00 }",
            "matching method must be specified first (using '-m') when using a sample fetch of this type ('bin')",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(evaluate(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn keywords_for_a_fetch_with_a_method_match_as_both_do() {
    let fields = [("host", "h.x"), ("cookie", "k=v.w"), ("set-cookie", "k=v.w"), ("y", "p.q")];
    let request = Scene::request("GET", "/a/b.c?m=n.o", &fields);
    let response = Scene::response(200, &fields);
    // The keyword's fetch, then its whole value, its beginning, its end, a substring, and one pattern per matching
    // method.
    let rows = [
        ("base", "", ["h.x/a/b.c", "h.x", "b.c", "x/a", "a", "h.x", "9"]),
        ("cook", "(k)", ["v.w", "v", "w", ".", "v.w", "w", "3"]),
        ("hdr", "(y)", ["p.q", "p", "q", ".", "p.q", "q", "3"]),
        ("path", "", ["/a/b.c", "/a", "c", "b.", "a", "b", "6"]),
        ("scook", "(k)", ["v.w", "v", "w", ".", "v.w", "w", "3"]),
        ("shdr", "(y)", ["p.q", "p", "q", ".", "p.q", "q", "3"]),
        ("url", "", ["/a/b.c?m=n.o", "/a", "o", "m=", "a", "b", "12"]),
        ("urlp", "(m)", ["n.o", "n", "o", ".", "n.o", "o", "3"]),
    ];
    for (name, arguments, [whole, begin, end, part, directory, domain, length]) in rows {
        let scene = if name.starts_with('s') { &response } else { &request };
        let forms = [
            ("", whole),
            ("_beg", begin),
            ("_end", end),
            ("_sub", part),
            ("_dir", directory),
            ("_dom", domain),
            ("_len", length),
            ("_reg", begin),
        ];
        for (suffix, pattern) in forms {
            let words = [&*format!("{name}{suffix}{arguments}"), pattern];
            let test = parse_acl(&words, &FewNames).unwrap_or_else(|error| panic!("{words:?}: {}", error.message)).test;
            let acl = Acl::new(None, test);
            assert_eq!(scene.with(|context| acl.evaluate(context)), Verdict::Yes, "{words:?}");
            let test = parse_acl(&[words[0], "17"], &FewNames).expect("an ACL").test;
            let acl = Acl::new(None, test);
            assert_eq!(scene.with(|context| acl.evaluate(context)), Verdict::No, "{words:?}");
        }
    }
}

#[test]
fn several_samples_are_tried_one_after_the_other() {
    let fields = [("cookie", "a=1;a=2"), ("x-ip", "10.0.0.1, nothing, ::2"), ("x-n", "1,7")];
    let scene = Scene::request("GET", "/?a=1&a=2&b=3", &fields);
    let rows = [
        ("if { req.cook(a) 1 }", true),
        ("if { req.cook 2 }", true),
        ("if { req.cook_val(a) 1 }", true),
        ("if { hdr_ip(x-ip) 10.0.0.0/8 }", true),
        ("if { hdr_ip(x-ip) ::2 }", true),
        ("if { hdr_ip() 10.0.0.1 }", true),
        ("if { hdr_ip 10.0.0.1 }", false),
        ("if { hdr_val(x-n) 1 }", true),
        ("if { hdr_val(x-n,2) 1 }", false),
        ("if { urlp(a) 2 }", true),
        ("if { urlp 3 }", true),
        ("if { urlp(a) 3 }", false),
        ("if { urlp_val(a) 2 }", true),
        ("if { req.hdr_cnt(x-n) 2 }", true),
        ("if { req.hdr_cnt(nope) 0 }", true),
    ];
    for (text, expected) in rows {
        let words: Vec<&str> = text.split(' ').collect();
        let condition = parse_condition(&words, acls().all(), &FewNames, &mut Vec::new()).expect("a condition");
        assert_eq!(scene.with(|context| condition.evaluate(context)), Verdict::of(expected), "{text}");
    }
}

#[test]
fn predefined_acls_say_what_their_names_say() {
    let post = ("POST", "/", "5");
    let rows = [
        ("HTTP", ("GET", "/", ""), true),
        ("HTTP_1.1", ("GET", "/", ""), true),
        ("HTTP_1.0", ("GET", "/", ""), false),
        ("HTTP_2.0", ("GET", "/", ""), false),
        ("HTTP_3.0", ("GET", "/", ""), false),
        ("HTTP_CONTENT", post, true),
        ("HTTP_CONTENT", ("POST", "/", "0"), false),
        ("HTTP_URL_ABS", ("GET", "http://h/", ""), true),
        ("HTTP_URL_ABS", ("GET", "/http://h/", ""), false),
        ("HTTP_URL_SLASH", ("GET", "/", ""), true),
        ("HTTP_URL_STAR", ("OPTIONS", "*", ""), true),
        ("HTTP_URL_STAR", ("GET", "/*", ""), false),
        ("LOCALHOST", ("GET", "/", ""), false),
        ("METH_CONNECT", ("CONNECT", "a:1", ""), true),
        ("METH_DELETE", ("DELETE", "/", ""), true),
        ("METH_GET", ("GET", "/", ""), true),
        ("METH_GET", ("HEAD", "/", ""), true),
        ("METH_GET", ("get", "/", ""), false),
        ("METH_HEAD", ("GET", "/", ""), false),
        ("METH_OPTIONS", ("OPTIONS", "*", ""), true),
        ("METH_POST", post, true),
        ("METH_PUT", ("PUT", "/", ""), true),
        ("METH_TRACE", ("TRACE", "/", ""), true),
    ];
    for (name, (method, target, length), expected) in rows {
        let fields = [("content-length", length)];
        let scene = Scene::request(method, target, &fields[..usize::from(!length.is_empty())]);
        let condition = parse_condition(&["if", name], acls().all(), &FewNames, &mut Vec::new()).expect("a condition");
        assert_eq!(
            scene.with(|context| condition.evaluate(context)),
            Verdict::of(expected),
            "{name}: {method} {target}"
        );
    }
}

/// The values of a field share the step budget of one text of their total length.
#[test]
fn many_values_that_take_many_steps_are_exhausted() {
    let rows = [("aaaaaaaaaab!", 1, false), ("aaaaaaaaaab!", 800, true), ("ab", 2_000, false), ("b", 4_000, false)];
    for (value, count, exhausted) in rows {
        let field = vec![value; count].join(",");
        let words = ["if", "{", "hdr(x)", "-m", "reg", "^(?=(a+)+$)(a|a)*b", "}"];
        let condition = parse_condition(&words, acls().all(), &FewNames, &mut Vec::new()).expect("a condition");
        Scene::request("GET", "/", &[("x", &field)]).with(|context| {
            assert_eq!(condition.evaluate(context), Verdict::No, "{value} {count}");
            assert_eq!(context.exhausted.get(), exhausted, "{value} {count}");
        });
    }
}
