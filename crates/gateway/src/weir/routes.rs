//! Routes as rules of a frontend, in the order of the Gateway API: the most specific one first.

use std::cmp::Reverse;
use std::fmt::Write as _;

use super::word::{Unwritable, name, quoted};
use crate::desired::{PathMatch, Pattern, Route, ValueMatch};

/// The specificity of a route: the largest one precedes.
type Rank<'a> = (Host, Path, bool, usize, usize, Reverse<&'a str>);

/// A host that is no wildcard precedes, then the longest one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Host {
    is_whole: bool,
    length: usize,
}

/// An exact path precedes a regular expression, and this the longest prefix.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    kind: u8,
    length: usize,
}

fn rank(route: &Route) -> Rank<'_> {
    let host = Host { is_whole: !route.host.starts_with('*'), length: route.host.len() };
    let (kind, length) = match &route.path {
        PathMatch::Exact(path) => (2, path.len()),
        PathMatch::Regex(regex) => (1, regex.len()),
        PathMatch::Prefix(prefix) => (0, prefix.len()),
    };
    let path = Path { kind, length };
    (host, path, route.method.is_some(), route.headers.len(), route.query.len(), Reverse(&route.order))
}

/// Appends a rule for each route.
pub fn push(routes: &[Route], text: &mut String) -> Result<(), Unwritable> {
    let mut ordered: Vec<&Route> = routes.iter().collect();
    ordered.sort_by(|one, other| rank(other).cmp(&rank(one)));
    for route in ordered {
        let _ = writeln!(text, "    use_backend {}{}", name("a backend", &route.backend)?, conditions(route)?);
    }
    Ok(())
}

fn conditions(route: &Route) -> Result<String, Unwritable> {
    let mut text = String::new();
    let mut add = |condition: String| {
        let _ = write!(text, "{}{{ {condition} }}", if text.is_empty() { " if " } else { " " });
    };
    match route.host.strip_prefix('*') {
        Some("") => {}
        Some(suffix) => add(format!("var(txn.weir_host) -m end -- {}", quoted("a hostname", suffix)?)),
        None => add(format!("var(txn.weir_host) -m str -- {}", quoted("a hostname", &route.host)?)),
    }
    match &route.path {
        PathMatch::Exact(path) => add(format!("path -m str -- {}", quoted("a path", path)?)),
        PathMatch::Prefix(prefix) if prefix.is_empty() => {}
        PathMatch::Prefix(prefix) => {
            add(format!("path,concat(/) -m beg -- {}", quoted("a path", &format!("{prefix}/"))?))
        }
        PathMatch::Regex(regex) => add(format!("path -m reg -- {}", quoted("a path", &format!("^(?:{regex})$"))?)),
    }
    if let Some(method) = &route.method {
        add(format!("method -m str -- {}", quoted("a method", method)?));
    }
    for header in &route.headers {
        add(format!("req.fhdr({}) {}", name("a header field", &header.name)?, value(header)?));
    }
    for parameter in &route.query {
        add(format!("url_param({}),url_dec {}", name("a parameter", &parameter.name)?, value(parameter)?));
    }
    Ok(text)
}

fn value(condition: &ValueMatch) -> Result<String, Unwritable> {
    match &condition.value {
        Pattern::Exact(text) => Ok(format!("-m str -- {}", quoted("a condition", text)?)),
        Pattern::Regex(regex) => Ok(format!("-m reg -- {}", quoted("a condition", &format!("^(?:{regex})$"))?)),
    }
}
