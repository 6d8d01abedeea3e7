//! The constant documents: the dashboard's page and the description of the API. Must never contain anything of the
//! configuration.

use std::sync::LazyLock;

use base::base64;
use sha2::{Digest, Sha256};

use super::answer::Answer;
use super::request::DashboardRequest;

/// The description of the API.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

const STYLE: &str = concat!(include_str!("page/page.css"), include_str!("page/health.css"));
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/dom.js"),
    include_str!("page/health.js"),
    include_str!("page/chart.js"),
    include_str!("page/store.js"),
    include_str!("page/topology.js"),
    include_str!("page/table.js"),
    include_str!("page/actions.js"),
    include_str!("page/protocols.js"),
    include_str!("page/charts.js"),
    include_str!("page/timeline.js"),
    include_str!("page/certificates.js"),
    include_str!("page/detail.js"),
    include_str!("page/overview.js"),
    include_str!("page/lists.js"),
    include_str!("page/tables.js"),
    include_str!("page/log.js"),
    include_str!("page/configuration.js"),
    include_str!("page/main.js"),
);

/// The page: its frame, its style and its script in one document.
static PAGE: LazyLock<String> =
    LazyLock::new(|| include_str!("page/page.html").replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT));

/// Content-Security-Policy: only the page's own style and script, nothing from other origins.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| base64::encoded(&Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
        hash(SCRIPT),
        hash(STYLE)
    )
});

/// `dashboard`.
pub(super) async fn page(_: DashboardRequest, mut answer: Answer) {
    let fields = vec![
        ("content-security-policy", POLICY.clone()),
        ("referrer-policy", "same-origin".to_owned()),
        ("x-frame-options", "DENY".to_owned()),
    ];
    answer.begin("text/html; charset=utf-8", fields);
    answer.push(&PAGE);
}

/// `openapi.json`.
pub(super) async fn openapi(_: DashboardRequest, mut answer: Answer) {
    answer.begin_json();
    answer.push(OPENAPI);
}

#[cfg(test)]
mod tests {
    use super::super::route::ROUTES;
    use super::*;

    #[test]
    fn every_address_is_described_and_nothing_else() {
        for route in ROUTES {
            let path =
                format!("\n  \"/{}\": {{\n   \"{}\": {{", route.path, if route.is_post { "post" } else { "get" });
            assert!(OPENAPI.contains(&path), "{path}");
        }
        assert_eq!(OPENAPI.matches("\"operationId\"").count(), ROUTES.len());
    }

    #[test]
    fn the_page_makes_no_markup_and_names_no_host() {
        for word in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("] {
            assert!(!SCRIPT.contains(word), "{word}");
        }
        let addresses = SCRIPT.matches("://").count() + STYLE.matches("://").count();
        assert_eq!(addresses, SCRIPT.matches("http://www.w3.org/2000/svg").count());
        assert!(!PAGE.contains("/*STYLE*/") && !PAGE.contains("/*SCRIPT*/"));
        assert_eq!(PAGE.matches("<script").count(), 1);
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }
}
