//! The statistics page.

use super::{ProxyContext, ProxyKeyword, condition_line, supported};
use crate::document::Line;
use crate::keyword::argument::milliseconds;
use crate::keyword::place::places::{ANY, NO_DEFAULTS};
use crate::keyword::rule;
use crate::spec::StatsPageSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        NO_DEFAULTS,
        "stats admin",
        "{ if | unless } <condition>",
        "Condition under which servers can be changed on the page.",
        admin,
    ),
    supported(ANY, "stats auth", "<user>:<password>", "Credentials for the page.", auth),
    supported(ANY, "stats dashboard", "", "Weir's own: a live dashboard and a JSON API below the page.", dashboard),
    supported(ANY, "stats enable", "", "Shows the page.", enable),
    supported(ANY, "stats hide-version", "", "Hides the version.", hide_version),
    supported(
        NO_DEFAULTS,
        "stats http-request",
        "<action> [{ if | unless } <condition>]",
        "Rules for requests to the page.",
        http_request,
    ),
    supported(ANY, "stats realm", "<text>", "Realm of the authentication.", realm),
    supported(ANY, "stats refresh", "<time>", "Refresh interval of the page.", refresh),
    supported(ANY, "stats scope", "{ <proxy> | \".\" }", "Proxies to show.", scope),
    supported(ANY, "stats show-desc", "[<text>]", "Shows a description.", show_desc),
    supported(ANY, "stats show-legends", "", "Shows details as tooltips.", show_legends),
    supported(ANY, "stats show-modules", "", "Shows counters of modules.", show_modules),
    supported(ANY, "stats show-node", "[<name>]", "Shows the node's name.", show_node),
    supported(ANY, "stats show-version", "", "Shows the version.", show_version),
    supported(ANY, "stats uri", "<prefix>", "URI prefix of the page.", uri),
];

/// Returns the page described by the proxy's lines: the proxy's first line about it replaces an inherited one, as in
/// HAProxy.
fn page<'c>(context: &'c mut ProxyContext<'_>) -> &'c mut StatsPageSpec {
    let page = context.draft.spec.stats.get_or_insert_default();
    if !page.own {
        **page = StatsPageSpec { own: true, ..StatsPageSpec::default() };
    }
    page
}

/// Returns the required word after the keyword; further words are ignored, as in HAProxy.
fn argument(context: &mut ProxyContext<'_>, line: &Line, missing: &str) -> Option<String> {
    match line.words.get(2).filter(|word| !word.text.is_empty()) {
        Some(word) => Some(word.text.clone()),
        None => {
            context.report.alert(line.span(2), missing);
            None
        }
    }
}

fn admin(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(condition) = condition_line(context, line, 2, "stats admin") {
        page(context).admin.push(condition);
    }
}

fn auth(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(account) = argument(context, line, "'auth' needs a user:password account.") {
        let page = page(context);
        page.accounts.push(account);
        page.identifies.get_or_insert(line.span(0));
    }
}

fn dashboard(context: &mut ProxyContext<'_>, _: &Line) {
    page(context).dashboard = true;
}

fn enable(context: &mut ProxyContext<'_>, _: &Line) {
    page(context);
}

fn hide_version(context: &mut ProxyContext<'_>, _: &Line) {
    page(context).shows_version = false;
}

fn http_request(context: &mut ProxyContext<'_>, line: &Line) {
    // Reads the rule as one of the proxy, then moves it to the page.
    let before = context.draft.spec.rules.rules.len();
    rule::read(context, line, 2, rule::HTTP_REQUEST);
    let rules = context.draft.spec.rules.rules.split_off(before);
    page(context).rules.extend(rules);
}

fn realm(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(realm) = argument(context, line, "'realm' needs an realm name.") {
        let page = page(context);
        page.realm = Some(realm);
        page.identifies.get_or_insert(line.span(0));
    }
}

fn refresh(context: &mut ProxyContext<'_>, line: &Line) {
    let unexpected = "unexpected character '%c' in argument to stats refresh interval.";
    let missing = "'refresh' needs a positive interval.";
    // The default unit is a second.
    let written = line.text(2).parse::<u64>().ok();
    let milliseconds = match written {
        Some(seconds) => seconds.checked_mul(1000),
        None => milliseconds(line.words.get(2), line, "stats refresh", missing, unexpected, &mut context.report),
    };
    if let Some(milliseconds) = milliseconds {
        page(context).refresh = Some(milliseconds / 1000).filter(|seconds| *seconds > 0);
    }
}

fn scope(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(name) = argument(context, line, "'scope' needs a proxy name.") {
        page(context).scope.push(name);
    }
}

fn show_desc(context: &mut ProxyContext<'_>, line: &Line) {
    let words: Vec<&str> = line.words.iter().skip(2).map(|word| word.text.as_str()).collect();
    page(context).description = Some((!words.is_empty()).then(|| words.join(" ")));
}

fn show_legends(context: &mut ProxyContext<'_>, _: &Line) {
    page(context).shows_legends = true;
}

fn show_modules(context: &mut ProxyContext<'_>, _: &Line) {
    page(context).shows_modules = true;
}

fn show_node(context: &mut ProxyContext<'_>, line: &Line) {
    let name = line.words.get(2).map(|word| word.text.clone());
    page(context).node = Some(name);
}

fn show_version(context: &mut ProxyContext<'_>, _: &Line) {
    page(context).shows_version = true;
}

fn uri(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(uri) = argument(context, line, "'uri' needs an URI prefix.") {
        page(context).uri = Some(uri);
    }
}
