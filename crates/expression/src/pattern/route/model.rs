//! Any table and any requests, compared with a naive model: all entries sorted by precedence, and the first one that
//! fits. The model parses keys by itself.

use super::tests::{Table, request};
use std::cmp::Reverse;

/// A sequence of numbers from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }
}

const HOSTS: &[&str] = &["a.example.com", "example.com", "*.example.com", "*.a.example.com", "*.com", "*"];
const PATHS: &[&str] = &["/", "/a", "/a/", "/a/b", "/*", "/a/*", "/a/b/*", "/a//*", "~/a.*", "~/[ab]", "~.*b"];
const CONDITIONS: &[&str] = &[
    ";method=GET",
    ";method=POST",
    ";header:x=1",
    ";header:x~[12]",
    ";header:y=1, 2",
    ";query:q=1",
    ";query:q~[12]",
    ";query:r=",
];
const ORDERS: &[&str] = &["", ";order=a", ";order=b"];

const REQUEST_HOSTS: &[&str] =
    &["a.example.com", "b.a.example.com", "example.com:80", "c.b.a.example.com", "x.com", "net", "", "A.Example.com."];
const REQUEST_PATHS: &[&str] = &["/", "/a", "/a/", "/a/b", "/a/b/", "/a//", "/a//c", "/ab", "/b", "/a/b/c", "/c/b"];
const QUERIES: &[&str] = &["", "?q=1", "?q=2", "?q=3&q=1", "?r", "?r=&q=1", "?x"];
const FIELDS: &[&[(&str, &str)]] =
    &[&[], &[("x", "1")], &[("x", "2")], &[("y", "1"), ("y", "2")], &[("x", "1"), ("y", "1, 2")]];

/// A request of the model.
#[derive(Debug)]
struct Asked {
    method: &'static str,
    host: &'static str,
    target: String,
    fields: &'static [(&'static str, &'static str)],
}

/// Returns the precedence of an entry if a request fits it. The smaller one precedes.
fn fit(key: &str, asked: &Asked) -> Option<impl Ord + use<>> {
    let mut parts = key.split(';');
    let first = parts.next()?;
    let (host, path) = first.split_at(first.find(['/', '~'])?);
    let name = asked.host.split(':').next()?.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    let host_rank = match host.strip_prefix('*') {
        None => (host == name).then_some(1_000)?,
        Some("") => 0,
        Some(suffix) => name.strip_suffix(suffix).filter(|rest| !rest.is_empty()).map(|_| suffix.len())?,
    };
    let (asked_path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    let path_rank = if let Some(regex) = path.strip_prefix('~') {
        let fits = match regex {
            "/a.*" => asked_path.starts_with("/a"),
            "/[ab]" => ["/a", "/b"].contains(&asked_path),
            ".*b" => asked_path.ends_with('b'),
            other => panic!("{other}"),
        };
        fits.then_some(999)?
    } else if let Some(prefix) = path.strip_suffix("/*") {
        (asked_path == prefix || asked_path.starts_with(&format!("{prefix}/"))).then_some(prefix.len())?
    } else {
        (path == asked_path).then_some(1_000)?
    };
    let (mut has_method, mut headers, mut parameters, mut order) = (false, 0, 0, "");
    for part in parts {
        if let Some(method) = part.strip_prefix("method=") {
            has_method = true;
            (method == asked.method).then_some(())?;
        } else if let Some(header) = part.strip_prefix("header:") {
            headers += 1;
            let joined = |name: &str| {
                let values: Vec<_> = asked.fields.iter().filter(|field| field.0 == name).map(|field| field.1).collect();
                (!values.is_empty()).then(|| values.join(", "))
            };
            let fits = match header {
                "x=1" => joined("x")? == "1",
                "x~[12]" => ["1", "2"].contains(&&*joined("x")?),
                "y=1, 2" => joined("y")? == "1, 2",
                other => panic!("{other}"),
            };
            fits.then_some(())?;
        } else if let Some(parameter) = part.strip_prefix("query:") {
            parameters += 1;
            let value = |name: &str| {
                let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                pairs.into_iter().find(|pair| pair.0 == name).map(|pair| pair.1)
            };
            let fits = match parameter {
                "q=1" => value("q")? == "1",
                "q~[12]" => ["1", "2"].contains(&value("q")?),
                "r=" => value("r")?.is_empty(),
                other => panic!("{other}"),
            };
            fits.then_some(())?;
        } else {
            order = part.strip_prefix("order=")?;
        }
    }
    let more = (Reverse(has_method), Reverse(headers), Reverse(parameters), order.to_owned());
    Some((Reverse(host_rank), Reverse(path_rank), more))
}

fn key(draw: &mut Draw) -> String {
    let mut key = format!("{}{}", draw.one(HOSTS), draw.one(PATHS));
    let mut has_method = false;
    for _ in 0..draw.below(4) {
        let condition = draw.one(CONDITIONS);
        if !condition.starts_with(";method") || !std::mem::replace(&mut has_method, true) {
            key += condition;
        }
    }
    key + draw.one(ORDERS)
}

/// A blank in a key is encoded; the model reads it as it is.
fn encoded(key: &str) -> String {
    key.replace(' ', "%20")
}

fn asked(draw: &mut Draw) -> Asked {
    Asked {
        method: draw.one(&["GET", "POST", "PUT"]),
        host: draw.one(REQUEST_HOSTS),
        target: format!("{}{}", draw.one(REQUEST_PATHS), draw.one(QUERIES)),
        fields: FIELDS[draw.below(FIELDS.len())],
    }
}

#[test]
fn the_first_entry_by_precedence_that_fits_is_found() {
    let mut found_any = 0;
    for seed in 1..=150_u64 {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let count = 1 + draw.below(60);
        let loaded = draw.below(count + 1);
        let keys: Vec<String> = (0..count).map(|_| key(&mut draw)).collect();
        let encoded: Vec<String> = keys.iter().map(|key| encoded(key)).collect();
        // Some are loaded, the others are added, and some of both are removed.
        let mut table = Table::new(&encoded[..loaded]);
        encoded[loaded..].iter().for_each(|key| table.add(key));
        let mut alive: Vec<bool> = vec![true; count];
        for _ in 0..draw.below(count + 1) {
            let at = draw.below(count);
            if alive[at] {
                alive[at] = false;
                table.remove(at);
            }
        }
        for _ in 0..60 {
            let asked = asked(&mut draw);
            let live = (0..count).filter(|at| alive[*at]);
            let expected = live.filter_map(|at| Some((fit(&keys[at], &asked)?, at))).min().map(|(_, at)| at);
            let head = request(asked.method, asked.host, &asked.target, asked.fields);
            assert_eq!(table.find(&head), expected, "seed {seed} {asked:?} {keys:#?}");
            found_any += usize::from(expected.is_some());
        }
    }
    assert!(found_any > 1_000, "{found_any}");
}
