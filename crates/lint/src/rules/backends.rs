//! Proxies that have nothing to answer with. Must never report one whose rules may answer.

use crate::finding::Findings;
use crate::model::{Model, Proxy, Statement, StatementKind};
use crate::rule::Rule;
use config::keyword::rule::HTTP_REQUEST;
use config::spec::{FilterSpec, Mode};

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "nothing-answers",
        doc: "requests reach a proxy that has no server and no rule that answers, so that all of them fail",
        check: nothing_answers,
    },
    Rule {
        name: "servers-not-reached",
        doc: "a rule without a condition answers every request before a server is selected",
        check: servers_not_reached,
    },
];

/// Actions that end a request, with an answer or without.
const ENDING: &[&str] =
    &["auth", "cache-use", "deny", "redirect", "reject", "return", "silent-drop", "tarpit", "use-service"];

/// Actions that answer whatever the request is.
const ANSWERING: &[&str] = &["deny", "redirect", "reject", "return", "silent-drop", "tarpit", "use-service"];

fn nothing_answers(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        let spec = proxy.spec;
        if spec.disabled || !matches!(spec.mode, Mode::Http | Mode::Tcp) || !is_used(model, proxy) {
            continue;
        }
        let selects = spec.default_backend.is_some() || !spec.rules.switching.is_empty();
        if selects || !spec.servers.is_empty() || may_answer(proxy) {
            continue;
        }
        let what = if proxy.may_have_servers() { "no server" } else { "no backend to select" };
        let failure =
            if spec.mode == Mode::Http { "every request is answered with 503" } else { "every connection is closed" };
        let message = format!("{} '{}' has {what} and no rule that answers: {failure}", proxy.noun(), proxy.name());
        findings.add(proxy.span(), message);
    }
}

fn is_used(model: &Model<'_>, proxy: &Proxy<'_>) -> bool {
    if proxy.has_clients() { !proxy.spec.binds.is_empty() } else { model.frontends_of(proxy).next().is_some() }
}

/// Whether a line may answer a request, or servers may come at run time.
fn may_answer(proxy: &Proxy<'_>) -> bool {
    let spec = proxy.spec;
    let ends = |action: &str| ENDING.contains(&action) || action.contains('.');
    let by_rule = proxy.statements.iter().any(|statement| match statement.kind {
        StatementKind::Rule(_) => ends(statement.action()),
        StatementKind::Redirect => true,
        _ => false,
    });
    let by_page = spec.stats.is_some() || spec.monitor_uri.is_some();
    // The page of the error is the answer.
    let by_error = proxy.own(&["errorfile", "503"]).chain(proxy.own(&["http-error"])).next().is_some();
    let at_run_time = proxy.own(&["default-server"]).next().is_some();
    let by_option = proxy.own(&["option", "transparent"]).next().is_some();
    let by_script = spec.filters.list.iter().any(|filter| matches!(filter, FilterSpec::Script(_)));
    by_rule || by_page || by_error || at_run_time || by_option || by_script
}

fn servers_not_reached(model: &Model<'_>, findings: &mut Findings) {
    for proxy in model.proxies.iter().filter(|proxy| proxy.spec.mode == Mode::Http) {
        let Some(server) = proxy.spec.servers.first() else { continue };
        let is_own = |one: &&Statement<'_>| !one.line.inherited;
        let requests =
            || proxy.statements.iter().filter(is_own).filter(|one| one.kind == StatementKind::Rule(HTTP_REQUEST));
        // The other rules are skipped for requests that one of these applies to.
        if requests().any(|one| one.action() == "allow") {
            continue;
        }
        let redirects = proxy.statements.iter().filter(|one| one.kind == StatementKind::Redirect);
        let answers = |one: &&Statement<'_>| {
            let may_be_empty = one.words.iter().any(|word| word.text == "ignore-empty");
            one.condition.is_none() && !may_be_empty && ANSWERING.contains(&one.action())
        };
        if let Some(rule) = requests().chain(redirects).find(answers) {
            let line = rule.line.span.line;
            findings.add(
                server.name.span,
                format!("no request reaches a server: the rule in line {line} answers all of them"),
            );
        }
    }
}
