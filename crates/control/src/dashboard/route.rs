//! The table of addresses below the statistics page. To add one, write its function and add a row here and a path in
//! `openapi.json`. Must never answer.

use super::answer::{Answer, Pending};
use super::request::{DashboardRequest, Target, pairs, text};
use super::{
    action, certificates, configuration, document, errors, events, objects, overview, rules, sessions, tables,
    timeline, top_keys, topology,
};

/// An address and its handler.
pub(super) struct Route {
    /// Path segments below the statistics page; a name in braces matches any single segment.
    pub(super) path: &'static str,
    pub(super) is_post: bool,
    pub(super) run: fn(DashboardRequest, Answer) -> Pending,
}

const fn get(path: &'static str, run: fn(DashboardRequest, Answer) -> Pending) -> Route {
    Route { path, is_post: false, run }
}

/// Every address.
pub(super) const ROUTES: &[Route] = &[
    get("dashboard", |asked, answer| Box::pin(document::page(asked, answer))),
    get("api/v1/openapi.json", |asked, answer| Box::pin(document::openapi(asked, answer))),
    get("api/v1/overview", |asked, answer| Box::pin(overview::show(asked, answer))),
    get("api/v1/proxies", |asked, answer| Box::pin(objects::proxies(asked, answer))),
    get("api/v1/servers", |asked, answer| Box::pin(objects::servers(asked, answer))),
    get("api/v1/topology", |asked, answer| Box::pin(topology::show(asked, answer))),
    get("api/v1/sessions", |asked, answer| Box::pin(sessions::show(asked, answer))),
    get("api/v1/tables", |asked, answer| Box::pin(tables::list(asked, answer))),
    get("api/v1/tables/{name}", |asked, answer| Box::pin(tables::show(asked, answer))),
    get("api/v1/tables/{name}/top", |asked, answer| Box::pin(top_keys::show(asked, answer))),
    get("api/v1/rules", |asked, answer| Box::pin(rules::show(asked, answer))),
    get("api/v1/config", |asked, answer| Box::pin(configuration::show(asked, answer))),
    get("api/v1/history", |asked, answer| Box::pin(super::history::show(asked, answer))),
    get("api/v1/timeline", |asked, answer| Box::pin(timeline::show(asked, answer))),
    get("api/v1/certificates", |asked, answer| Box::pin(certificates::show(asked, answer))),
    get("api/v1/errors", |asked, answer| Box::pin(errors::show(asked, answer))),
    get("api/v1/events", |asked, answer| Box::pin(events::show(asked, answer))),
    Route {
        path: "api/v1/servers/{backend}/{server}",
        is_post: true,
        run: |asked, answer| Box::pin(action::change(asked, answer)),
    },
];

/// Returns the route for `target`, which begins with the address of the page. `None`: a request for the page itself;
/// `Some(None)`: unknown address.
pub(super) fn find(target: &[u8], uri: &[u8]) -> Option<(Option<&'static Route>, Target)> {
    let rest = target.strip_prefix(uri)?;
    let rest = if uri.ends_with(b"/") { rest } else { rest.strip_prefix(b"/")? };
    let at = rest.iter().position(|byte| matches!(byte, b'?' | b'&' | b'#')).unwrap_or(rest.len());
    let (path, query) = (&rest[..at], rest.get(at + 1..).unwrap_or_default());
    if path != b"dashboard" && !path.starts_with(b"api/") {
        return None;
    }
    let query = pairs(query);
    for route in ROUTES {
        if let Some(names) = matches(route.path, path) {
            return Some((Some(route), Target { names, query }));
        }
    }
    Some((None, Target::default()))
}

/// Returns the segments that match names in braces; `None`: the path does not match.
fn matches(form: &str, path: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut segments = path.split(|byte| *byte == b'/');
    for wanted in form.split('/') {
        let segment = segments.next()?;
        if wanted.starts_with('{') {
            names.push(text(segment));
        } else if wanted.as_bytes() != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_below_the_page() {
        let rows: &[(&str, &str, Option<Option<&str>>)] = &[
            ("/", "/dashboard", Some(Some("dashboard"))),
            ("/", "/dashboard?x=1", Some(Some("dashboard"))),
            ("/", "/", None),
            ("/", "/;csv", None),
            ("/stats", "/stats/dashboard", Some(Some("dashboard"))),
            ("/stats", "/statsdashboard", None),
            ("/stats", "/stats/dashboards", None),
            ("/haproxy?stats", "/haproxy?stats/api/v1/overview", Some(Some("api/v1/overview"))),
            ("/haproxy?stats", "/haproxy?stats/api/v1/servers&backend=b", Some(Some("api/v1/servers"))),
            ("/", "/api/v1/tables/a%20b", Some(Some("api/v1/tables/{name}"))),
            ("/", "/api/v1/servers/b/s", Some(Some("api/v1/servers/{backend}/{server}"))),
            ("/", "/api/v1/servers/b/s/x", Some(None)),
            ("/", "/api/v2/overview", Some(None)),
        ];
        for (uri, target, wanted) in rows {
            let found = find(target.as_bytes(), uri.as_bytes()).map(|(route, _)| route.map(|route| route.path));
            assert_eq!(found, *wanted, "{uri} {target}");
        }
    }

    #[test]
    fn names_and_queries_are_decoded() {
        let (_, target) = find(b"/api/v1/servers/b%2Fc/s+1?a=1&b=x%3Cy&a=2", b"/").expect("an address");
        assert_eq!(target.names, ["b/c", "s 1"]);
        assert_eq!(
            (target.parameter("a"), target.parameter("b"), target.parameter("c")),
            (Some("1"), Some("x<y"), None)
        );
        assert_eq!((target.number("a", 5, 9), target.number("b", 5, 9), target.number("a", 5, 0)), (1, 5, 0));
    }
}
