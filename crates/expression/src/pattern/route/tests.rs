//! Tables of routes: keys that are refused, precedence, and changes.

use super::key::{HostKey, PathKey};
use super::{RouteKey, RouteRequest, Routes};
use crate::pattern::{
    ChangeError, Content, EntrySelector, Key, ListLine, ListStates, Lists, Lookup, Method, Registry, Use,
};
use crate::pattern::{PatternIndex, Steps, Texts};
use crate::sample::Exhausted;
use wire::http::Head;

/// A request with that line and those fields after Host. Without a host it has no such field.
pub(super) fn request(method: &str, host: &str, target: &str, fields: &[(&str, &str)]) -> Head {
    let mut head = Head::new();
    head.set_method(method.as_bytes());
    head.set_target(target.as_bytes());
    if !host.is_empty() {
        head.append(b"host", host.as_bytes());
    }
    fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
    head
}

fn of_head(head: &Head) -> RouteRequest<'_> {
    RouteRequest {
        host: head.host().unwrap_or_default(),
        method: head.method(),
        head: Some(head),
        ..RouteRequest::of_target(head.target())
    }
}

/// A list that is a table of routes. The value of an entry is its number.
pub(super) struct Table {
    lists: Lists,
    lookup: Lookup,
    states: ListStates,
    keys: Vec<String>,
    is_changed: bool,
}

impl Table {
    pub(super) fn new(keys: &[String]) -> Self {
        let lines: String = keys.iter().enumerate().map(|(at, key)| format!("{key} {at}\n")).collect();
        let (lists, lookup) = loaded(&lines);
        let states = ListStates::new(&lists, Key::new(7));
        Self { lists, lookup, states, keys: keys.to_vec(), is_changed: false }
    }

    pub(super) fn add(&mut self, key: &str) {
        let value = self.keys.len().to_string();
        self.keys.push(key.to_owned());
        self.is_changed = true;
        let state = self.states.get(0).unwrap();
        state.write(|change, _| change.add(None, key.as_bytes(), value.as_bytes())).unwrap();
    }

    /// Removes an entry by its reference.
    pub(super) fn remove(&mut self, at: usize) {
        let state = self.states.get(0).unwrap();
        let value = at.to_string().into_bytes();
        let page = state.read(|change| change.page(None, 0, self.keys.len()));
        let (reference, ..) = page.iter().find(|(_, _, known)| *known == value).unwrap();
        let which = EntrySelector::Reference(*reference);
        assert!(state.write(|change, fallen| change.remove(which, fallen)));
        self.is_changed = true;
    }

    /// Returns the number of the entry that a request fits.
    pub(super) fn find(&self, head: &Head) -> Option<usize> {
        let (request, steps) = (of_head(head), Steps::for_text(head.target().len()));
        let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
        if !self.is_changed {
            let found = self.lookup.base.set.find_route(&request, &|_| true, &steps).unwrap();
            return found.map(|hit| number(self.lists.all.get(0).unwrap().entries.value(hit.at)));
        }
        let state = self.states.get(0).unwrap();
        state.read(|change| change.find_route(&self.lookup, &request, &steps).unwrap().map(|found| number(found.value)))
    }
}

fn loaded(lines: &str) -> (Lists, Lookup) {
    let mut registry = Registry::default();
    let list = registry.file("r", Use::Map, ListLine::default(), || Ok(lines.as_bytes().to_vec())).unwrap();
    let lookup = registry.lookup(list, Method::Route, false, Content::Text).unwrap();
    (registry.finish(), lookup)
}

/// Asserts the number of the entry that each request fits: method, host, target and fields, separated by blanks.
#[track_caller]
fn check(keys: &[&str], rows: &[(&str, Option<usize>)]) {
    let table = Table::new(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    for (text, expected) in rows {
        let mut words = text.split(' ');
        let [method, host, target] = [(); 3].map(|()| words.next().unwrap());
        let fields: Vec<_> = words.map(|field| field.split_once(':').unwrap()).collect();
        let host = if host == "-" { "" } else { host };
        assert_eq!(table.find(&request(method, host, target, &fields)), *expected, "{text}");
    }
}

#[test]
fn the_most_specific_host_precedes() {
    let keys =
        ["*/*", "*.com/*", "*.example.com/*", "*.a.example.com/*", "example.com/*", "a.example.com/*", "[::1]/*"];
    let rows = [
        ("GET example.com /", Some(4)),
        ("GET a.example.com /", Some(5)),
        ("GET b.a.example.com /", Some(3)),
        ("GET d.c.b.a.example.com /", Some(3)),
        ("GET b.example.com /", Some(2)),
        ("GET c.b.example.com /", Some(2)),
        ("GET xexample.com /", Some(1)),
        ("GET .example.com /", Some(1)),
        ("GET EXAMPLE.com:8080 /", Some(4)),
        ("GET example.com. /", Some(4)),
        ("GET Example.Com.:443 /", Some(4)),
        ("GET com /", Some(0)),
        ("GET net /", Some(0)),
        ("GET - /", Some(0)),
        ("GET [::1]:80 /", Some(6)),
        ("GET [::2] /", Some(0)),
    ];
    check(&keys, &rows);
    let long = format!("GET {}.example.com /", "a.".repeat(200));
    check(&keys, &[(&long, Some(0))]);
}

#[test]
fn the_most_specific_path_precedes() {
    let keys = ["h/*", "h/a/*", "h/a/b/*", "h/a", "h/a/b", "h~/a/b.*", "h/a/", "h/%2A%3Bx", "h/a/c%2A", "i/a/*"];
    let rows = [
        ("GET h /", Some(0)),
        ("GET h /b", Some(0)),
        ("GET h *", Some(0)),
        ("GET h /a", Some(3)),
        ("GET h /a?x", Some(3)),
        ("GET h /ab", Some(0)),
        ("GET h /a/", Some(6)),
        ("GET h /a/x", Some(1)),
        ("GET h /a//", Some(1)),
        ("GET h /a/b", Some(4)),
        ("GET h /a/b/c", Some(5)),
        ("GET h /a/bc", Some(5)),
        ("GET h /x/a/b/c", Some(0)),
        ("GET h /*;x", Some(7)),
        ("GET h /a/c*", Some(8)),
        ("GET h /a/cc", Some(1)),
        ("GET h /%61", Some(0)),
        ("GET i /a", Some(9)),
        ("GET i /", None),
        ("GET j /a", None),
    ];
    check(&keys, &rows);
    check(&["h/a%2520b"], &[("GET h /a%20b", Some(0)), ("GET h /a%2520b", None)]);
}

#[test]
fn conditions_hold_together_and_more_of_them_precede() {
    let keys = [
        "*/*",
        "*/*;query:q=1",
        "*/*;header:x=1",
        "*/*;header:x=1;query:q=1",
        "*/*;header:x=1;header:Y=2",
        "*/*;method=PUT",
        "*/*;method=PUT;query:q=1;query:r~[0-9]%2B",
    ];
    let rows = [
        ("GET h /", Some(0)),
        ("GET h /?q=1", Some(1)),
        ("GET h /?q=1&q=2", Some(1)),
        ("GET h /?q=2&q=1", Some(0)),
        ("GET h /?q=%31", Some(1)),
        ("GET h /?%71=1", Some(1)),
        ("GET h /?qq=1", Some(0)),
        ("GET h /?q", Some(0)),
        ("GET h /?q=1 x:1", Some(3)),
        ("GET h /?q=1 x:1 y:2", Some(4)),
        ("GET h / x:1 y:2", Some(4)),
        ("GET h / x:1", Some(2)),
        ("GET h / x:1 x:1", Some(0)),
        ("GET h / x:11", Some(0)),
        ("PUT h / x:1 y:2", Some(5)),
        ("put h /", Some(0)),
        ("PUT h /?q=1&r=12", Some(6)),
        ("PUT h /?q=1&r=1x", Some(5)),
        ("PUT h /?q=1", Some(5)),
    ];
    check(&keys, &rows);
}

#[test]
fn values_are_compared_as_a_whole() {
    let keys =
        ["*/*;header:x=a%2C%20b", "*/*;header:y~a|b%7Cc", "*/*;query:q=a%20b", "*/*;query:r~.%20.", "*/*;header:e="];
    let rows = [
        ("GET h / x:a x:b", Some(0)),
        ("GET h / x:b x:a", None),
        ("GET h / x:a x:b x:c", None),
        ("GET h / x:a", None),
        ("GET h / y:c", Some(1)),
        ("GET h / y:ab", None),
        ("GET h / y:a y:b", None),
        ("GET h /?q=a+b", Some(2)),
        ("GET h /?q=a%20b", Some(2)),
        ("GET h /?q=a%2", None),
        ("GET h /?r=a+b", Some(3)),
        ("GET h /?r=a+bc", None),
        ("GET h / e:", Some(4)),
        ("GET h / e: e:", None),
        ("GET h /", None),
    ];
    check(&keys, &rows);
}

#[test]
fn ties_are_broken_by_order_and_then_by_position() {
    check(&["*/a;order=b", "*/a;order=a", "*/a;order=a"], &[("GET h /a", Some(1))]);
    check(&["*/a;order=10", "*/a;order=9"], &[("GET h /a", Some(0))]);
    check(&["*/a;order=a", "*/a"], &[("GET h /a", Some(1))]);
    check(&["*~/a;order=b", "*~/.;order=a"], &[("GET h /a", Some(1))]);
    check(&["*/a;order=b;method=GET", "*/a;header:x=1;order=a"], &[("GET h /a x:1", Some(0))]);
}

/// An entry whose conditions fail leaves the request to the next one, of less specific paths and hosts too.
#[test]
fn what_does_not_fit_falls_through() {
    let keys = ["a.com/x;method=PUT", "a.com~/x;header:h=1", "a.com/*;query:q=1", "*.com/x;method=POST", "*/*"];
    let rows = [
        ("PUT a.com /x?q=1 h:1", Some(0)),
        ("GET a.com /x?q=1 h:1", Some(1)),
        ("GET a.com /x?q=1", Some(2)),
        ("POST a.com /x", Some(3)),
        ("GET a.com /x", Some(4)),
    ];
    check(&keys, &rows);
}

#[test]
fn keys_are_decoded() {
    let key = RouteKey::parse(b"*.Example.COM./a%2f%25/*;header:X%2DA=1=2~;query:a%3D~b;order=%20").unwrap();
    assert_eq!(key.host, HostKey::Below((*b".example.com").into()));
    assert!(matches!(&key.path, PathKey::Prefix(path) if **path == *b"/a/%"));
    assert_eq!((&*key.headers[0].name, &*key.query[0].name, &*key.order), (&b"x-a"[..], &b"a="[..], &b" "[..]));
    let key = RouteKey::parse(b"*/*").unwrap();
    assert!(key.host == HostKey::Any && matches!(&key.path, PathKey::Prefix(path) if path.is_empty()));
}

#[test]
fn invalid_keys_are_refused_with_their_place() {
    let host = "a host is expected: a name, '*.<name>', or '*' for all";
    let digits = "two hex digits are expected after '%'; '%' itself is written '%25'";
    let condition = "'method=', 'header:<name>', 'query:<name>' or 'order=' is expected after ';'";
    let rows = [
        ("", 0, host),
        ("/a", 0, host),
        ("*./a", 0, "a wildcard is the whole first label: '*.<name>'"),
        ("a.b", 3, "a path ('/…') or a regular expression ('~…') is expected after the host"),
        ("a.b:80/", 3, "the host of a route has no port"),
        ("a.*/", 2, "a wildcard is the whole first label: '*.<name>'"),
        ("a,b/", 1, "',' is not allowed in a host"),
        ("a..b/", 0, "a label of the host is empty"),
        ("[::x]/", 0, "an IPv6 address is expected between '[' and ']'"),
        ("a/b%4", 3, digits),
        ("a/b%4x", 3, digits),
        ("a/b*", 3, "'*' at the end of a path follows '/'; a literal one is written '%2A'"),
        ("a~", 2, "a regular expression is expected after '~'"),
        ("a/;metod=GET", 3, condition),
        ("a/;", 3, condition),
        ("a/;method=", 10, "a method is expected after 'method='"),
        ("a/;method=A;method=B", 12, "a route has at most one method"),
        ("a/;order=;order=", 10, "a route has at most one 'order='"),
        ("a/;header:a%20b=1", 10, "the name of a header field is expected after 'header:'"),
        ("a/;header:x", 11, "'=<value>' or '~<regex>' is expected after the name"),
        ("a/;query:=1", 9, "a name is expected before '=' or '~'"),
        ("a/;query:q~", 11, "a regular expression is expected after '~'"),
        ("a/b c", 3, "this byte is written '%20' in the key of a route"),
        ("a/\u{e4}", 2, "this byte is written '%C3' in the key of a route"),
    ];
    for (key, caret, why) in rows {
        let error = RouteKey::parse(key.as_bytes()).unwrap_err().to_string();
        let shown: String =
            key.bytes().map(|byte| if byte.is_ascii_graphic() { char::from(byte) } else { '?' }).collect();
        assert_eq!(error, format!("{why}\n    {shown}\n    {}^", " ".repeat(caret)), "{key}");
    }
    for regex in ["(", "a)(b", "%5C"] {
        let error = RouteKey::parse(format!("a~{regex}").as_bytes()).unwrap_err().to_string();
        assert!(error.ends_with(&format!("\n    a~{regex}\n      ^")), "{error}");
    }
    let query = RouteKey::parse(b"a/b?c").unwrap_err().to_string();
    assert!(query.starts_with("a path has no query string") && query.ends_with("\n       ^"), "{query}");
}

#[test]
fn sizes_are_limited() {
    let conditions = |count: usize| format!("a/{}", ";header:x=1".repeat(count));
    assert!(RouteKey::parse(conditions(64).as_bytes()).is_ok() && RouteKey::parse(conditions(65).as_bytes()).is_err());
    let regex = |length: usize| format!("a~{}", "x".repeat(length));
    assert!(RouteKey::parse(regex(4_096).as_bytes()).is_ok() && RouteKey::parse(regex(4_097).as_bytes()).is_err());
    let path = |length: usize| format!("a/{}", "x".repeat(length - 2));
    assert!(RouteKey::parse(path(16_384).as_bytes()).is_ok() && RouteKey::parse(path(16_385).as_bytes()).is_err());
    let host = |length: usize| format!("{}/", "x".repeat(length));
    assert!(RouteKey::parse(host(253).as_bytes()).is_ok() && RouteKey::parse(host(254).as_bytes()).is_err());
}

/// An error shows the part of a long key around it.
#[test]
fn a_long_key_is_shown_in_part() {
    let key = format!("a/{};b{}", "x".repeat(500), "y".repeat(500));
    let error = RouteKey::parse(key.as_bytes()).unwrap_err().to_string();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines[1], format!("    {};b{}", "x".repeat(59), "y".repeat(59)));
    assert_eq!(lines[2].len(), 4 + 60 + 1);
}

#[test]
fn a_bad_key_changes_nothing() {
    let table = Table::new(&["a/*".to_owned()]);
    let state = table.states.get(0).unwrap();
    for _ in 0..100 {
        let refused = state.write(|change, _| change.add(None, b"a/;x", b"1"));
        assert!(matches!(refused, Err(ChangeError::Pattern(why)) if why.contains("is expected after ';'")));
    }
    assert_eq!(state.read(|change| (change.count(), change.places())), (1, 0));
}

struct Keys<'a>(&'a [&'a str]);

impl Texts for Keys<'_> {
    fn key(&self, at: PatternIndex) -> &[u8] {
        self.0[at as usize].as_bytes()
    }
}

/// A removed entry leaves nothing in the index.
#[test]
fn removed_entries_are_forgotten() {
    let keys = Keys(&["a/b/c", "a/b/*", "*.a/b/c;method=PUT", "a~x", "a/b/c"]);
    let mut routes = Routes::new(Key::new(3));
    (0..5).for_each(|at| routes.insert(at, &keys).unwrap());
    assert_eq!((routes.nodes.count(), routes.like(b"a/b/c", &keys)), (6, vec![0, 4]));
    routes.remove(0, &keys);
    routes.remove(0, &keys);
    assert_eq!((routes.nodes.count(), routes.like(b"a/b/c", &keys)), (6, vec![4]));
    routes.remove(4, &keys);
    assert_eq!((routes.nodes.count(), routes.like(b"a/b/c", &keys)), (5, vec![]));
    (1..4).for_each(|at| routes.remove(at, &keys));
    assert_eq!((routes.nodes.count(), routes.texts.len()), (0, 0));
    (0..5).for_each(|at| routes.insert(at, &keys).unwrap());
    assert_eq!(routes.nodes.count(), 6);
}

/// A budget that is exhausted ends the lookup.
#[test]
fn lookups_are_charged() {
    let keys = Keys(&["*~a", "*~b", "*/*"]);
    let mut routes = Routes::new(Key::new(3));
    (0..3).for_each(|at| routes.insert(at, &keys).unwrap());
    let left = std::cell::Cell::new(3_u32);
    let charge = |units: u32| {
        let rest = left.get().checked_sub(units);
        left.set(rest.unwrap_or_default());
        rest.is_some()
    };
    let request = RouteRequest { charge: &charge, ..RouteRequest::of_text(b"h/x") };
    let find = || routes.find(&request, &|_| true, &Steps::for_text(2));
    assert_eq!(find(), Err(Exhausted));
    left.set(100);
    assert_eq!(find(), Ok(Some(2)));
}
