//! Matches of rules: conditions on requests of HTTP and gRPC.

use crate::desired::{PathMatch, Pattern, ValueMatch};

use super::filters::{Unsupported, is_field_value, is_token};
use super::model::{GrpcMethod, Match, MethodCondition, NameValue, PathCondition};

/// The longest regular expression, as the API has it.
const LONGEST_REGEX: usize = 1024;
/// The largest product of the counts of a regular expression.
const LARGEST_COUNT: u32 = 1_000;
/// Memory of a compiled regular expression.
const REGEX_SIZE: usize = 1 << 20;

/// The conditions of an entry of a table of routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    pub path: PathMatch,
    pub method: Option<String>,
    pub headers: Vec<ValueMatch>,
    pub query: Vec<ValueMatch>,
}

/// The conditions that all requests fulfil.
pub fn any() -> Conditions {
    Conditions { path: PathMatch::Prefix(String::new()), method: None, headers: Vec::new(), query: Vec::new() }
}

/// Translates a match.
pub fn conditions(matched: &Match) -> Result<Conditions, Unsupported> {
    let (path, method) = match &matched.method {
        Some(MethodCondition::Grpc(grpc)) => (grpc_path(grpc)?, None),
        Some(MethodCondition::Http(method)) if !is_token(method) => {
            return Err(Unsupported::value(format!("{method} is not a method")));
        }
        Some(MethodCondition::Http(method)) => (path_of(matched.path.as_ref())?, Some(method.clone())),
        None => (path_of(matched.path.as_ref())?, None),
    };
    Ok(Conditions { path, method, headers: headers(&matched.headers)?, query: query(&matched.query_params)? })
}

fn path_of(path: Option<&PathCondition>) -> Result<PathMatch, Unsupported> {
    let kind = path.and_then(|p| p.r#type.as_deref()).unwrap_or("PathPrefix");
    let value = path.and_then(|p| p.value.as_deref()).unwrap_or("/");
    match kind {
        "Exact" => check_path(value).map(PathMatch::Exact),
        "PathPrefix" => check_path(value).map(|path| PathMatch::Prefix(path.trim_end_matches('/').to_owned())),
        "RegularExpression" => check_regex(value).map(PathMatch::Regex),
        other => Err(Unsupported::value(format!("paths of the type {other} are not supported"))),
    }
}

fn check_path(path: &str) -> Result<String, Unsupported> {
    if path.starts_with('/') && path.len() <= 1024 && !path.chars().any(char::is_control) {
        Ok(path.to_owned())
    } else {
        Err(Unsupported::value(format!("{path} is not a path")))
    }
}

/// Returns a regular expression that Weir can compile.
fn check_regex(regex: &str) -> Result<String, Unsupported> {
    if regex.len() > LONGEST_REGEX {
        return Err(Unsupported::value("a regular expression is longer than 1024 bytes"));
    }
    match regex_lite::RegexBuilder::new(regex).size_limit(REGEX_SIZE).build() {
        Ok(_) if !is_common(regex) => {
            Err(Unsupported::value(format!("{regex} has a form that regular expressions of Weir do not have")))
        }
        Ok(_) => Ok(regex.to_owned()),
        Err(error) => Err(Unsupported::value(format!("{regex} is not a regular expression: {error}"))),
    }
}

/// Whether a regular expression has only forms that Weir's library (PCRE2) has as well: no escapes of code points, no repetition of a
/// repetition, and counts whose product is small.
fn is_common(regex: &str) -> bool {
    let (mut is_escaped, mut follows_repetition, mut product) = (false, false, 1_u32);
    let mut rest = regex.chars().peekable();
    while let Some(letter) = rest.next() {
        if std::mem::take(&mut is_escaped) {
            if matches!(letter, 'u' | 'U') || letter == 'x' && rest.peek() == Some(&'{') {
                return false;
            }
            follows_repetition = false;
            continue;
        }
        match letter {
            '\\' => is_escaped = true,
            '*' | '{' if follows_repetition => return false,
            '{' => {
                let text: String = rest.by_ref().take_while(|letter| *letter != '}').collect();
                let largest = text.split(',').filter_map(|count| count.trim().parse().ok()).max().unwrap_or(1);
                product = product.saturating_mul(u32::max(largest, 1));
                follows_repetition = true;
            }
            // After a repetition, `+` and `?` make it possessive or lazy.
            '*' | '+' | '?' => follows_repetition = true,
            _ => follows_repetition = false,
        }
    }
    product <= LARGEST_COUNT
}

fn pattern(condition: &NameValue) -> Result<Pattern, Unsupported> {
    match condition.r#type.as_deref().unwrap_or("Exact") {
        "Exact" => Ok(Pattern::Exact(condition.value.clone())),
        "RegularExpression" => check_regex(&condition.value).map(Pattern::Regex),
        other => Err(Unsupported::value(format!("matches of the type {other} are not supported"))),
    }
}

/// Conditions on header fields. Of those with the same name the first one counts.
fn headers(conditions: &[NameValue]) -> Result<Vec<ValueMatch>, Unsupported> {
    let mut result: Vec<ValueMatch> = Vec::new();
    for condition in conditions {
        let name = condition.name.to_ascii_lowercase();
        if !is_token(&name) || !is_field_value(&condition.value) {
            return Err(Unsupported::value(format!("{} with its value is not a header field", condition.name)));
        }
        if !result.iter().any(|r| r.name == name) {
            result.push(ValueMatch { name, value: pattern(condition)? });
        }
    }
    Ok(result)
}

fn query(conditions: &[NameValue]) -> Result<Vec<ValueMatch>, Unsupported> {
    let mut result: Vec<ValueMatch> = Vec::new();
    for condition in conditions {
        if condition.name.is_empty() || condition.name.len() > 256 || condition.value.len() > 1024 {
            return Err(Unsupported::value("the name or value of a parameter is empty or too long"));
        }
        if !result.iter().any(|r| r.name == condition.name) {
            result.push(ValueMatch { name: condition.name.clone(), value: pattern(condition)? });
        }
    }
    Ok(result)
}

/// The path of a call of gRPC is `/<service>/<method>`.
fn grpc_path(method: &GrpcMethod) -> Result<PathMatch, Unsupported> {
    let part = |text: &Option<String>| text.clone().filter(|t| !t.is_empty());
    let (service, name) = (part(&method.service), part(&method.method));
    if method.r#type.as_deref() == Some("RegularExpression") {
        let any = || "[^/]+".to_owned();
        return check_regex(&format!("/({})/({})", service.unwrap_or_else(any), name.unwrap_or_else(any)))
            .map(PathMatch::Regex);
    }
    match (service, name) {
        (Some(service), Some(name)) => check_path(&format!("/{service}/{name}")).map(PathMatch::Exact),
        (Some(service), None) => check_path(&format!("/{service}")).map(PathMatch::Prefix),
        (None, Some(name)) => check_regex(&format!("/[^/]+/{}", regex_lite::escape(&name))).map(PathMatch::Regex),
        (None, None) => Ok(PathMatch::Prefix(String::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn matches_become_conditions() {
        let prefix = |text: &str| PathMatch::Prefix(text.into());
        for (value, expected) in [
            (json!({}), Some(prefix(""))),
            (json!({"path": {"value": "/"}}), Some(prefix(""))),
            (json!({"path": {"type": "PathPrefix", "value": "/a/b/"}}), Some(prefix("/a/b"))),
            (json!({"path": {"type": "Exact", "value": "/a/"}}), Some(PathMatch::Exact("/a/".into()))),
            (json!({"path": {"type": "Exact", "value": "/a\nb"}}), None),
            (json!({"path": {"type": "Exact", "value": "a"}}), None),
            (json!({"path": {"type": "Exact", "value": format!("/{}", "a".repeat(100_000))}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "/a.*"}}), Some(PathMatch::Regex("/a.*".into()))),
            (json!({"path": {"type": "RegularExpression", "value": "/("}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "(a{1000}){1000}"}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "/a**"}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "/a+*"}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "/a{2}{3}"}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "/(a{100}){50}"}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "/\\u0041"}}), None),
            (json!({"path": {"type": "RegularExpression", "value": "/\\x{41}"}}), None),
            (
                json!({"path": {"type": "RegularExpression", "value": "/a*?b{2,3}"}}),
                Some(PathMatch::Regex("/a*?b{2,3}".into())),
            ),
            (json!({"path": {"type": "Other", "value": "/"}}), None),
            (json!({"method": "G T"}), None),
            (json!({"headers": [{"name": "a b", "value": "c"}]}), None),
            (json!({"headers": [{"name": "a", "value": "c\r\nd"}]}), None),
            (json!({"method": {"service": "a.B", "method": "C"}}), Some(PathMatch::Exact("/a.B/C".into()))),
            (json!({"method": {"service": "a.B"}}), Some(prefix("/a.B"))),
            (json!({"method": {"method": "C.d"}}), Some(PathMatch::Regex("/[^/]+/C\\.d".into()))),
            (
                json!({"method": {"type": "RegularExpression", "service": "a|b"}}),
                Some(PathMatch::Regex("/(a|b)/([^/]+)".into())),
            ),
        ] {
            let matched: Match = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(conditions(&matched).ok().map(|c| c.path), expected, "{value}");
        }
    }

    #[test]
    fn header_and_query_conditions_are_unique() {
        let matched: Match = serde_json::from_value(json!({
            "method": "GET",
            "headers": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}, {"name": "b", "type": "RegularExpression", "value": "c+"}],
            "queryParams": [{"name": "q", "value": "1 %;\n"}, {"name": "q", "value": "2"}, {"name": "Q", "value": "3"}],
        }))
        .unwrap();
        let found = conditions(&matched).unwrap();
        let exact = |name: &str, value: &str| ValueMatch { name: name.into(), value: Pattern::Exact(value.into()) };
        assert_eq!(found.method.as_deref(), Some("GET"));
        assert_eq!(
            found.headers,
            [exact("x-a", "1"), ValueMatch { name: "b".into(), value: Pattern::Regex("c+".into()) }]
        );
        assert_eq!(found.query, [exact("q", "1 %;\n"), exact("Q", "3")]);
    }
}
