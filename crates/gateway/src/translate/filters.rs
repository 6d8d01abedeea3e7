//! Filters of rules and of references to backends.

use crate::desired::{Cors, Filter, PathChange, Redirect};

use super::hostnames;
use super::model::{HeaderModifier, Mirror, NameValue, PathModifier, RequestRedirect, Rewrite, RouteFilter};

/// Why a rule cannot be served: the reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    pub reason: &'static str,
    pub message: String,
}

impl Unsupported {
    pub fn value(message: impl Into<String>) -> Self {
        Self { reason: "UnsupportedValue", message: message.into() }
    }
}

/// The filters of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleFilters {
    pub filters: Vec<Filter>,
    pub redirect: Option<Redirect>,
    /// Mirrors, whose backends are still to be found, with the index of the filter that they follow.
    pub mirrors: Vec<Mirror>,
    /// Whether a filter needs the prefix that has matched.
    pub needs_prefix: bool,
}

/// Translates the filters of a rule. `prefix` is the prefix of its match, if all its paths have one.
pub fn of_rule(filters: &[RouteFilter], prefix: Option<&str>) -> Result<RuleFilters, Unsupported> {
    let mut result = RuleFilters::default();
    let mut rewrites = false;
    for filter in filters {
        match filter.r#type.as_str() {
            "RequestHeaderModifier" | "ResponseHeaderModifier" => result.filters.extend(header_filters(filter)?),
            "RequestMirror" => result.mirrors.push(required(filter.request_mirror.clone(), filter)?),
            "RequestRedirect" => {
                let redirect = required(filter.request_redirect.as_ref(), filter)?;
                result.needs_prefix |= is_prefix(redirect.path.as_ref());
                result.redirect = Some(redirect_of(redirect, prefix)?);
            }
            "URLRewrite" => {
                let rewrite = required(filter.url_rewrite.as_ref(), filter)?;
                result.needs_prefix |= is_prefix(rewrite.path.as_ref());
                result.filters.extend(rewrite_of(rewrite, prefix)?);
                rewrites = true;
            }
            "CORS" => result.filters.push(Filter::Cors(cors_of(filter)?)),
            other => return Err(Unsupported::value(format!("filters of the type {other} are not supported"))),
        }
    }
    if rewrites && result.redirect.is_some() {
        return Err(Unsupported {
            reason: "IncompatibleFilters",
            message: "RequestRedirect and URLRewrite exclude each other".into(),
        });
    }
    Ok(result)
}

/// Translates the filters of a reference to a backend: those of header fields alone.
pub fn of_backend(filters: &[RouteFilter]) -> Result<Vec<Filter>, Unsupported> {
    let mut result = Vec::new();
    for filter in filters {
        match filter.r#type.as_str() {
            "RequestHeaderModifier" | "ResponseHeaderModifier" => result.extend(header_filters(filter)?),
            other => {
                return Err(Unsupported::value(format!("filters of the type {other} are not supported for a backend")));
            }
        }
    }
    Ok(result)
}

fn required<T>(value: Option<T>, filter: &RouteFilter) -> Result<T, Unsupported> {
    value.ok_or_else(|| Unsupported::value(format!("a filter of the type {} has no content", filter.r#type)))
}

fn header_filters(filter: &RouteFilter) -> Result<Vec<Filter>, Unsupported> {
    if filter.r#type == "RequestHeaderModifier" {
        let modifier = required(filter.request_header_modifier.as_ref(), filter)?;
        check_headers(modifier)?;
        let set = modifier.set.iter().cloned().map(|h| Filter::SetRequestHeader { name: h.name, value: h.value });
        let add = modifier.add.iter().cloned().map(|h| Filter::AddRequestHeader { name: h.name, value: h.value });
        let remove = modifier.remove.iter().cloned().map(|name| Filter::RemoveRequestHeader { name });
        return Ok(set.chain(add).chain(remove).collect());
    }
    let modifier = required(filter.response_header_modifier.as_ref(), filter)?;
    check_headers(modifier)?;
    let set = modifier.set.iter().cloned().map(|h| Filter::SetResponseHeader { name: h.name, value: h.value });
    let add = modifier.add.iter().cloned().map(|h| Filter::AddResponseHeader { name: h.name, value: h.value });
    let remove = modifier.remove.iter().cloned().map(|name| Filter::RemoveResponseHeader { name });
    Ok(set.chain(add).chain(remove).collect())
}

fn check_headers(modifier: &HeaderModifier) -> Result<(), Unsupported> {
    let named: Vec<&NameValue> = modifier.set.iter().chain(&modifier.add).collect();
    if let Some(name) = named.iter().map(|h| &h.name).chain(&modifier.remove).find(|name| !is_token(name)) {
        return Err(Unsupported::value(format!("{name} is not the name of a header field")));
    }
    match named.iter().find(|h| !is_field_value(&h.value)) {
        Some(header) => {
            Err(Unsupported::value(format!("the value of the header field {} has control characters", header.name)))
        }
        None => Ok(()),
    }
}

/// Whether a text is a token (RFC 9110 section 5.6.2).
pub fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 256
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether a text can be the value of a header field (RFC 9110 section 5.5).
pub fn is_field_value(text: &str) -> bool {
    text.len() <= 4096 && !text.chars().any(|c| c.is_control() && c != '\t')
}

fn is_prefix(path: Option<&PathModifier>) -> bool {
    path.is_some_and(|path| path.r#type == "ReplacePrefixMatch")
}

fn redirect_of(redirect: &RequestRedirect, prefix: Option<&str>) -> Result<Redirect, Unsupported> {
    let scheme = redirect.scheme.as_ref().map(|s| s.to_ascii_lowercase());
    let standard = match scheme.as_deref() {
        None => None,
        Some("http") => Some(80),
        Some("https") => Some(443),
        Some(other) => return Err(Unsupported::value(format!("redirections to the scheme {other} are not supported"))),
    };
    let port = match redirect.port {
        None => standard,
        Some(port) => Some(
            u16::try_from(port)
                .ok()
                .filter(|p| *p != 0)
                .ok_or_else(|| Unsupported::value(format!("{port} is not a port")))?,
        ),
    };
    let status = redirect.status_code.unwrap_or(302);
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return Err(Unsupported::value(format!("redirections with the status {status} are not supported")));
    }
    Ok(Redirect {
        scheme,
        host: redirect.hostname.as_deref().map(host_of).transpose()?,
        port,
        path: redirect.path.as_ref().map(|path| path_change(path, prefix)).transpose()?,
        status: u16::try_from(status).unwrap_or(302),
    })
}

fn rewrite_of(rewrite: &Rewrite, prefix: Option<&str>) -> Result<Vec<Filter>, Unsupported> {
    let mut result = Vec::new();
    if let Some(hostname) = &rewrite.hostname {
        result.push(Filter::SetHost { value: host_of(hostname)? });
    }
    if let Some(path) = &rewrite.path {
        result.push(Filter::SetPath(path_change(path, prefix)?));
    }
    Ok(result)
}

fn host_of(hostname: &str) -> Result<String, Unsupported> {
    let host = hostname.to_ascii_lowercase();
    if hostnames::is_valid(&host) && !host.starts_with('*') {
        Ok(host)
    } else {
        Err(Unsupported::value(format!("{hostname} is not a hostname")))
    }
}

fn path_change(path: &PathModifier, prefix: Option<&str>) -> Result<PathChange, Unsupported> {
    let value = match path.r#type.as_str() {
        "ReplaceFullPath" => path.replace_full_path.as_deref(),
        "ReplacePrefixMatch" => path.replace_prefix_match.as_deref(),
        other => return Err(Unsupported::value(format!("changes of paths of the type {other} are not supported"))),
    };
    let value = value.unwrap_or_default();
    if value.len() > 1024 || value.chars().any(|c| c.is_control() || c == ' ' || c == '#') {
        return Err(Unsupported::value("the replacement is not a path"));
    }
    if path.r#type == "ReplaceFullPath" {
        return Ok(PathChange::Full(if value.starts_with('/') { value.to_owned() } else { format!("/{value}") }));
    }
    let matched =
        prefix.ok_or_else(|| Unsupported::value("ReplacePrefixMatch needs a match of the type PathPrefix"))?;
    Ok(PathChange::Prefix { matched: matched.to_owned(), replacement: value.to_owned() })
}

fn cors_of(filter: &RouteFilter) -> Result<Cors, Unsupported> {
    let cors = required(filter.cors.as_ref(), filter)?;
    let tokens = cors.allow_methods.iter().chain(&cors.allow_headers).chain(&cors.expose_headers);
    if let Some(other) = tokens.clone().find(|t| !is_token(t)) {
        return Err(Unsupported::value(format!("{other} is not the name of a method or header field")));
    }
    let is_origin =
        |o: &&String| o.len() <= 253 + 16 && o.bytes().all(|b| b.is_ascii_graphic() && !b"\"'\\<>,".contains(&b));
    if let Some(other) = cors.allow_origins.iter().find(|o| !is_origin(o)) {
        return Err(Unsupported::value(format!("{other} is not an origin")));
    }
    Ok(Cors {
        origins: cors.allow_origins.clone(),
        methods: cors.allow_methods.clone(),
        headers: cors.allow_headers.clone(),
        expose_headers: cors.expose_headers.clone(),
        credentials: cors.allow_credentials.unwrap_or(false),
        max_age: cors.max_age.and_then(|age| u32::try_from(age).ok()).unwrap_or(5),
    })
}

/// Returns the share of requests that a mirror gets: numerator and denominator. None for none of them.
pub fn share(mirror: &Mirror) -> Option<Share> {
    let whole = Share { numerator: 1, denominator: 1 };
    let share = match (&mirror.fraction, mirror.percent) {
        (Some(fraction), _) => Share::new(fraction.numerator, fraction.denominator.unwrap_or(100)),
        (None, Some(percent)) => Share::new(percent, 100),
        (None, None) => whole,
    };
    (share.numerator > 0).then_some(share)
}

/// A share of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub numerator: u32,
    pub denominator: u32,
}

impl Share {
    fn new(numerator: i32, denominator: i32) -> Self {
        let denominator = u32::try_from(denominator).unwrap_or(0).max(1);
        Self { numerator: u32::try_from(numerator).unwrap_or(0).min(denominator), denominator }
    }
}
