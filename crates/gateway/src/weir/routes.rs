//! Tables of routes, which Weir looks up with `req.route`.

use std::fmt::Write as _;

use super::word::name;
use crate::desired::{PathMatch, Pattern, Route, ValueMatch};

/// The longest key that Weir accepts, in bytes.
const LONGEST_KEY: usize = 16_384;

/// A table in text, and the backends of entries that it cannot have.
#[derive(Debug, Default)]
pub struct Table<'a> {
    pub text: String,
    pub refused: Vec<&'a str>,
}

/// Returns the table of routes.
pub fn table(routes: &[Route]) -> Table<'_> {
    let mut result = Table::default();
    for route in routes {
        let key = key(route);
        match name("a backend", &route.backend) {
            Ok(backend) if key.len() <= LONGEST_KEY => {
                let _ = writeln!(result.text, "{key} {backend}");
            }
            _ => result.refused.push(&route.backend),
        }
    }
    result
}

/// Returns the key of an entry.
fn key(route: &Route) -> String {
    let mut key = match route.host.strip_prefix('*') {
        Some(rest) => format!("*{}", encoded(rest, "")),
        None => encoded(&route.host, "*~/"),
    };
    match &route.path {
        PathMatch::Exact(path) => key.push_str(&encoded(path, "*?#")),
        PathMatch::Prefix(prefix) => {
            key.push_str(&encoded(prefix, "*?#"));
            key.push_str("/*");
        }
        PathMatch::Regex(regex) => {
            key.push('~');
            key.push_str(&encoded(regex, ""));
        }
    }
    if let Some(method) = &route.method {
        let _ = write!(key, ";method={}", encoded(method, ""));
    }
    for (kind, conditions) in [("header", &route.headers), ("query", &route.query)] {
        for condition in conditions {
            push_condition(kind, condition, &mut key);
        }
    }
    let _ = write!(key, ";order={}", encoded(&route.order, ""));
    key
}

fn push_condition(kind: &str, condition: &ValueMatch, key: &mut String) {
    let (sign, value) = match &condition.value {
        Pattern::Exact(value) => ('=', value),
        Pattern::Regex(regex) => ('~', regex),
    };
    let _ = write!(key, ";{kind}:{}{sign}{}", encoded(&condition.name, "=~"), encoded(value, ""));
}

/// Returns a part of a key, in which all bytes with a meaning are percent-encoded. `further` has those of this part alone.
fn encoded(text: &str, further: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for byte in text.bytes() {
        let has_meaning = matches!(byte, b'%' | b';' | 0..=b' ' | 0x7f..) || further.as_bytes().contains(&byte);
        if has_meaning {
            let _ = write!(result, "%{byte:02X}");
        } else {
            result.push(char::from(byte));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(host: &str, path: PathMatch) -> Route {
        let order = "2026/a b".into();
        Route { host: host.into(), path, method: None, headers: vec![], query: vec![], order, backend: "b".into() }
    }

    #[test]
    fn entries_are_single_words() {
        let exact = |path: &str| PathMatch::Exact(path.into());
        for (host, path, expected) in [
            ("a.test", exact("/"), "a.test/"),
            ("*.a.test", PathMatch::Prefix("/x".into()), "*.a.test/x/*"),
            ("*", PathMatch::Prefix(String::new()), "*/*"),
            ("*", PathMatch::Regex("/a;b( c)?".into()), "*~/a%3Bb(%20c)?"),
            ("*", exact("/a b\n*%é"), "*/a%20b%0A%2A%25%C3%A9"),
            ("a b/c", exact("/"), "a%20b%2Fc/"),
        ] {
            assert_eq!(key(&route(host, path)), format!("{expected};order=2026/a%20b"));
        }
    }

    #[test]
    fn conditions_follow_the_path() {
        let mut whole = route("a.test", PathMatch::Exact("/".into()));
        whole.method = Some("GET".into());
        whole.headers = vec![ValueMatch { name: "x=y".into(), value: Pattern::Exact("1;2\nserver".into()) }];
        whole.query = vec![ValueMatch { name: "q".into(), value: Pattern::Regex("a+".into()) }];
        let expected = "a.test/;method=GET;header:x%3Dy=1%3B2%0Aserver;query:q~a+;order=2026/a%20b b\n";
        assert_eq!(table(std::slice::from_ref(&whole)).text, expected);
        let long = route("a.test", PathMatch::Exact(format!("/{}", "a".repeat(20_000))));
        let both = [long, whole];
        let found = table(&both);
        assert_eq!((found.text.as_str(), found.refused), (expected, vec!["b"]));
    }
}
