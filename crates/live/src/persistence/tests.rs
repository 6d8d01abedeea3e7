//! Cookies in every mode, with the observed results of HAProxy 3.5.

use super::{Answering, Cookie, CookieServer, CookieValues, Lookup, Persistence, date};
use config::spec::{CookieMode, CookieSpec};
use wire::http::{Head, Method};

/// A time at a multiple of a date's resolution.
const NOW: u64 = 1_795_348_984;

fn cookie(options: &str) -> Cookie {
    let mut spec = CookieSpec { name: "SRV".to_owned(), ..CookieSpec::default() };
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "rewrite" => spec.mode = Some(CookieMode::Rewrite),
            "insert" => spec.mode = Some(CookieMode::Insert),
            "prefix" => spec.mode = Some(CookieMode::Prefix),
            "indirect" => spec.indirect = true,
            "nocache" => spec.nocache = true,
            "postonly" => spec.postonly = true,
            "preserve" => spec.preserve = true,
            "httponly" => spec.httponly = true,
            "secure" => spec.secure = true,
            "domain" => spec.domains.extend(words.next().map(str::to_owned)),
            "attr" => spec.attributes.extend(words.next().map(str::to_owned)),
            "maxidle" => spec.max_idle = words.next().and_then(|word| word.parse().ok()).expect("seconds"),
            "maxlife" => spec.max_life = words.next().and_then(|word| word.parse().ok()).expect("seconds"),
            other => panic!("{other}"),
        }
    }
    Cookie::new(&spec)
}

/// Server 0 is `a`, server 1 is `b`, `d` is one that is down, `late` one that later turns out to be down.
struct Servers;

impl Lookup for Servers {
    fn find(&self, value: &[u8]) -> CookieServer {
        match value {
            b"a" => CookieServer::Server(0),
            b"b" => CookieServer::Server(1),
            b"d" => CookieServer::Down,
            b"late" => CookieServer::Server(3),
            _ => CookieServer::Unknown,
        }
    }

    fn is_usable(&self, server: usize) -> bool {
        server < 2
    }
}

fn head(fields: &[(&str, &str)]) -> Head {
    let mut head = Head::new();
    fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
    head
}

fn shown(head: &Head, name: &str) -> String {
    let values: Vec<_> = head.all(name.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned()).collect();
    values.join(" & ")
}

/// The fields sent to the server, the letter, the server.
fn request(options: &str, list: &str) -> (String, char, Option<usize>) {
    let fields: Vec<_> = list.split(" & ").map(|value| ("cookie", value)).collect();
    let mut head = head(&fields);
    let state = cookie(options).read(&mut head, NOW, false, &Servers);
    (shown(&head, "cookie"), char::from(state.presented.letter()), state.server)
}

#[test]
fn requests_lose_what_servers_must_not_see() {
    for (list, left, letter, server) in [
        ("SRV=a", "", 'V', Some(0)),
        ("SRV=zz", "", 'I', None),
        ("SRV=d", "", 'D', None),
        ("SRV=d; SRV=zz", "", 'D', None),
        ("SRV=zz; SRV=d", "", 'D', None),
        ("SRV=d; SRV=a", "", 'V', Some(0)),
        ("SRV=a; SRV=d", "", 'V', Some(0)),
        ("SRV=late", "", 'V', Some(3)),
        ("SRV=late; SRV=b", "", 'V', Some(1)),
        ("SRV=late; SRV=zz", "", 'D', None),
        ("x=1; SRV=a; y=2", "x=1; y=2", 'V', Some(0)),
        ("x=1; SRV=\"a\"; y=2", "x=1; y=2", 'I', None),
        ("x=1; srv=b; y=2", "x=1; srv=b; y=2", 'N', None),
        ("SRV=a & SRV=b", "", 'V', Some(0)),
        ("SRV=a; SRV=b", "", 'V', Some(0)),
        ("SRV=", "", 'I', None),
        ("SRV", "SRV", 'N', None),
        ("$Version=1; SRV=b; $Path=\"/\"", "", 'V', Some(1)),
        ("$Version=1; SRV=a; y=2", "$Version=1; y=2", 'V', Some(0)),
        ("x=1; $Version=1; SRV=a; $Path=\"/\"; $Domain=x; y=2", "x=1; $Version=1; y=2", 'V', Some(0)),
        ("SRV=a; $Path=\"/\"; y=2", "y=2", 'V', Some(0)),
        ("SRV = b ; x=1", "x=1", 'V', Some(1)),
        ("q = 1; SRV = b ; z = 2", "q=1; z=2", 'V', Some(1)),
        ("x=1, SRV=b", "x=1", 'V', Some(1)),
        ("a=1, SRV=b, c=2", "a=1, c=2", 'V', Some(1)),
        ("SRV=a;y=2;z=3", "y=2;z=3", 'V', Some(0)),
        ("y=2;SRV=a;z=3", "y=2; z=3", 'V', Some(0)),
        ("y=2 ; SRV=a ; z=3", "y=2; z=3", 'V', Some(0)),
        ("y=2; SRV=a", "y=2", 'V', Some(0)),
        ("y=2; SRV=a;", "y=2; ", 'V', Some(0)),
        ("; SRV=a; y=2", "y=2", 'V', Some(0)),
        ("SRV=\"b;c\"; y=2", "y=2", 'I', None),
        ("y=\"a;SRV=b\"; z=1", "y=\"a;SRV=b\"; z=1", 'N', None),
        ("SRV=a|x|y", "", 'V', Some(0)),
        ("SRV=b|", "", 'V', Some(1)),
        ("SRV=a~x; y=2", "y=2", 'I', None),
        ("SRV=a; SRV=b; SRV=c; y=1", "y=1", 'V', Some(0)),
        ("y=1; SRV=a; SRV=b; SRV=c", "y=1", 'V', Some(0)),
        ("y=1; SRV=a; SRV=b; z", "y=1; z", 'V', Some(0)),
        ("z; SRV=a", "z", 'V', Some(0)),
        ("", "", 'N', None),
    ] {
        assert_eq!(request("insert indirect", list), (left.to_owned(), letter, server), "{list}");
        let (untouched, same, _) = request("insert", list);
        assert_eq!((untouched.replace(" = ", "="), same), (list.replace(" = ", "="), letter), "{list}");
    }
}

#[test]
fn nothing_is_left_of_a_field_that_held_nothing_else() {
    for list in ["SRV=b", "SRV=b;", "; SRV=b; ", "SRV=b; SRV=a;"] {
        let mut head = head(&[("cookie", list), ("x-a", "1")]);
        cookie("insert indirect").read(&mut head, NOW, false, &Servers);
        assert_eq!(head.fields().count(), 1, "{list}");
    }
}

#[test]
fn dates_of_others_do_not_hide_a_server() {
    for (options, letter) in [("rewrite", 'V'), ("", 'V'), ("prefix", 'I')] {
        assert_eq!(request(options, "SRV=b|awLZ5|awLZ5").1, letter, "{options}");
    }
}

#[test]
fn prefixes_are_cut_off() {
    for (list, left, letter, server) in [
        ("SRV=a~v", "SRV=v", 'V', Some(0)),
        ("SRV=a", "SRV=a", 'V', Some(0)),
        ("SRV=d~v; x=1", "SRV=v; x=1", 'D', None),
        ("y=1; SRV=zz~x", "y=1; SRV=x", 'I', None),
        ("SRV=~x", "SRV=x", 'I', None),
        ("SRV=v; SRV=a~x", "SRV=v; SRV=x", 'V', Some(0)),
        ("SRV=a~; SRV=a~x~y", "SRV=; SRV=x~y", 'V', Some(0)),
        ("SRV=a|awLZ5", "SRV=a|awLZ5", 'I', None),
    ] {
        assert_eq!(request("prefix", list), (left.to_owned(), letter, server), "{list}");
    }
}

/// The fields sent to the client, and the letters.
fn exchange(options: &str, list: &str, sets: &[(&str, &str)], method: Method) -> (String, String) {
    let cookie = cookie(options);
    let mut asked = head(&[("cookie", list)]);
    let mut state = cookie.read(&mut asked, NOW, false, &Servers);
    let server = state.server.unwrap_or(0);
    let values = CookieValues::new(vec![Some(b"a"[..].into()), Some(b"b"[..].into())]);
    (answer(&cookie, sets, &mut state, values.of(server), method), letters(&state))
}

fn answer(
    cookie: &Cookie,
    sets: &[(&str, &str)],
    state: &mut Persistence,
    value: Option<&[u8]>,
    method: Method,
) -> String {
    let mut head = head(sets);
    head.set_status(200, b"OK");
    cookie.answer(&mut head, state, &Answering { value, method, now: NOW });
    [shown(&head, "set-cookie"), shown(&head, "cache-control")].join(" | ").trim_end_matches(" | ").to_owned()
}

fn letters(state: &Persistence) -> String {
    [state.presented.letter(), state.returned.letter()].map(char::from).iter().collect()
}

#[test]
fn answers_get_what_their_clients_need() {
    type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);
    let rows: &[Row] = &[
        ("insert", "", "", "SRV=a; path=/", "NI"),
        ("insert", "SRV=a", "", "", "VN"),
        ("insert", "SRV=zz", "", "SRV=a; path=/", "II"),
        ("insert", "SRV=d", "", "SRV=a; path=/", "DI"),
        ("insert", "SRV=b", "SRV=server", "", "VD"),
        ("insert", "", "SRV=server; path=/x", "SRV=a; path=/", "NI"),
        ("insert", "", "x = 2 ; p", "x=2 ; p & SRV=a; path=/", "NI"),
        ("insert", "", "SRV; path=/", "SRV; path=/ & SRV=a; path=/", "NI"),
        ("insert", "", "x=1, SRV=2", "x=1, SRV=2 & SRV=a; path=/", "NI"),
        ("insert preserve", "SRV=a", "SRV=server", "SRV=server", "VP"),
        ("insert preserve", "", "SRV = v ; path=/", "SRV=v ; path=/", "NP"),
        ("insert indirect", "SRV=b|awLZs", "", "SRV=b; path=/", "VU"),
        ("rewrite", "", "", "", "NN"),
        ("rewrite", "SRV=b", "SRV=server; path=/x", "SRV=b; path=/x", "VR"),
        ("rewrite", "", "SRV=", "SRV=a", "NR"),
        ("rewrite", "", "SRV=1, y=2", "SRV=a, y=2", "NR"),
        ("rewrite", "", "SRV=\"q;r\"; path=/", "SRV=a; path=/", "NR"),
        ("prefix", "SRV=b~v", "SRV=1; path=/x", "SRV=b~1; path=/x", "VR"),
        ("prefix", "SRV=v", "SRV=\"q;r\"", "SRV=a~\"q;r\"", "IR"),
        ("prefix indirect", "SRV=a~v", "SRV=1", "", "VD"),
        ("prefix indirect", "", "SRV=1", "SRV=a~1", "NR"),
        ("indirect", "SRV=a", "SRV=1", "", "VD"),
        ("indirect", "SRV=zz", "SRV=1", "SRV=1", "IP"),
        (
            "insert httponly secure domain .a domain b attr SameSite=Lax attr X",
            "",
            "",
            "SRV=a; path=/; domain=.a; domain=b; HttpOnly; Secure; SameSite=Lax; X",
            "NI",
        ),
    ];
    for (options, list, set, expected, told) in rows {
        let sets: &[_] = if set.is_empty() { &[] } else { &[("set-cookie", *set)] };
        let found = exchange(options, list, sets, Method::Get);
        assert_eq!(found, ((*expected).to_owned(), (*told).to_owned()), "{options}: {list}: {set}");
    }
    assert_eq!(exchange("insert postonly", "", &[], Method::Get), (String::new(), "NN".to_owned()));
    assert_eq!(exchange("insert postonly", "", &[], Method::Post).1, "NI");
}

#[test]
fn a_server_without_a_value_makes_clients_forget_theirs() {
    let cookie = cookie("insert domain .a");
    let mut state = Persistence::default();
    let found = answer(&cookie, &[], &mut state, None, Method::Get);
    assert_eq!(found, "SRV=; Expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/; domain=.a");
    let rewriting = answer(&self::cookie("rewrite"), &[("set-cookie", "SRV=1")], &mut state, None, Method::Get);
    assert_eq!((rewriting, letters(&state)), ("SRV=1".to_owned(), "NP".to_owned()));
}

#[test]
fn what_is_ignored_is_left_alone() {
    let cookie = cookie("insert indirect");
    let mut asked = head(&[("cookie", "x=1; SRV=a")]);
    let mut state = cookie.read(&mut asked, NOW, true, &Servers);
    let found = answer(&cookie, &[("set-cookie", "SRV=1")], &mut state, Some(b"a"), Method::Get);
    assert_eq!((found, letters(&state), state.server), ("SRV=1".to_owned(), "UN".to_owned(), None));
    assert_eq!(shown(&asked, "cookie"), "x=1");
}

/// Options, the offsets of the last and the first visit in seconds, the fields sent to the client, the letters.
#[test]
fn dates_decide() {
    type Row = (&'static str, Option<i64>, Option<i64>, &'static str, &'static str);
    let rows: &[Row] = &[
        ("maxidle 100 maxlife 1000", None, None, "a|now|now", "VU"),
        ("maxidle 100 maxlife 1000", Some(-4), None, "a|now|now", "VU"),
        ("maxidle 100 maxlife 1000", Some(-200), None, "a|now|now", "EI"),
        ("maxidle 100 maxlife 1000", Some(-100), Some(-1000), "a|now|first", "VU"),
        ("maxidle 100 maxlife 1000", Some(-200), Some(-500), "a|now|now", "EI"),
        ("maxidle 100 maxlife 1000", Some(-8), Some(-2000), "a|now|now", "OI"),
        ("maxidle 100 maxlife 1000", Some(-200), Some(-2000), "a|now|now", "OI"),
        ("maxidle 100 maxlife 1000", Some(0), Some(-20), "", "VN"),
        ("maxidle 100 maxlife 1000", Some(3600), None, "a|now|now", "VU"),
        ("maxidle 100 maxlife 1000", Some(3600), Some(-20), "", "VN"),
        ("maxidle 100 maxlife 1000", Some(90_000), None, "a|now|now", "EI"),
        ("maxidle 100 maxlife 1000", Some(0), Some(90_000), "a|now|now", "OI"),
        ("maxidle 100", Some(-52), Some(-500), "a|now", "VU"),
        ("maxidle 100", Some(3600), None, "", "VN"),
        ("maxidle 100", Some(3600), Some(-20), "a|now", "VU"),
        ("maxlife 1000", Some(-200), Some(-500), "a|now|first", "VU"),
        ("maxlife 1000", None, Some(-500), "", "VN"),
        ("maxlife 1000", Some(90_000), None, "a|now|now", "VU"),
        ("", Some(-4), None, "a", "VU"),
        ("", Some(3600), None, "", "VN"),
        ("", None, Some(-4), "a", "VU"),
        ("", None, None, "", "VN"),
    ];
    for (options, last, first, expected, told) in rows {
        let at = |offset: Option<i64>| {
            let date = offset.map(|offset| date::encode(NOW.saturating_add_signed(offset)));
            date.map_or(String::new(), |date| String::from_utf8_lossy(&date).into_owned())
        };
        let (last, first, now) = (at(*last), at(*first), at(Some(0)));
        let value = match (last.is_empty(), first.is_empty()) {
            (true, true) => "a".to_owned(),
            (false, true) => format!("a|{last}"),
            _ => format!("a|{last}|{first}"),
        };
        let found = exchange(&format!("insert {options}"), &format!("SRV={value}"), &[], Method::Get);
        let expected = expected.replace("now", &now).replace("first", &first);
        let expected = if expected.is_empty() { expected } else { format!("SRV={expected}; path=/") };
        assert_eq!(found, (expected, (*told).to_owned()), "{options}: {value}");
    }
}

#[test]
fn a_first_visit_is_remembered_at_another_server() {
    let first = String::from_utf8_lossy(&date::encode(NOW - 500)).into_owned();
    let found = exchange("insert maxlife 1000", &format!("SRV=zz||{first}"), &[], Method::Get).0;
    assert!(found.ends_with(&format!("|{first}; path=/")), "{found}");
}

#[test]
fn what_caches_might_keep_is_made_private() {
    let rows: &[(&[(&str, &str)], bool)] = &[
        (&[], false),
        (&[("cache-control", "public")], false),
        (&[("cache-control", "must-revalidate")], false),
        (&[("cache-control", "max-age=10")], true),
        (&[("cache-control", "MAX-AGE=3")], true),
        (&[("cache-control", "max-age")], true),
        (&[("cache-control", "s-maxage=5")], true),
        (&[("cache-control", "max-age=0")], false),
        (&[("cache-control", "s-maxage=0, max-age=4")], false),
        (&[("expires", "0")], true),
        (&[("etag", "\"x\""), ("cache-control", "public")], true),
        (&[("last-modified", "x")], true),
        (&[("cache-control", "max-age=3, no-store")], false),
        (&[("cache-control", "max-age=3, private=\"x\"")], false),
        (&[("cache-control", "max-age=3, no-cache=\"x\"")], false),
        (&[("cache-control", "max-age=3"), ("cache-control", "no-cache=\"Set-Cookie\"")], true),
        (&[("cache-control", "max-age=3"), ("pragma", "no-cache")], false),
        (&[("cache-control", "max-age=3"), ("pragma", "x")], true),
    ];
    for (fields, private) in rows {
        for (options, method, may) in [
            ("insert nocache", Method::Get, true),
            ("insert nocache", Method::Head, true),
            ("insert nocache", Method::Post, false),
            ("insert", Method::Get, false),
        ] {
            let found = exchange(options, "", fields, method).0;
            assert_eq!(found.ends_with("& private") || found.ends_with("| private"), *private && may, "{fields:?}");
        }
    }
    assert_eq!(exchange("insert nocache", "SRV=a", &[("expires", "0")], Method::Get).0, "");
}
