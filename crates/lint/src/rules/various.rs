//! Lines of proxies that need another line to have an effect. Must never report a line that is inherited.

use super::contradictions::tests_of;
use crate::finding::Findings;
use crate::model::{Model, Proxy, Statement, StatementKind};
use crate::rule::Rule;
use config::keyword::rule::{HTTP_REQUEST, TCP_REQUEST_CONTENT};
use config::spec::Mode;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "compression-without-algorithm",
        doc: "a section has 'compression' settings and no algorithm: nothing is compressed",
        check: compression,
    },
    Rule {
        name: "monitor-fail-without-uri",
        doc: "a section has 'monitor fail' without 'monitor-uri': the condition is never evaluated",
        check: monitor_fail,
    },
    Rule {
        name: "redirect-loop",
        doc: "requests over TLS are redirected to 'https' without a condition, that is to themselves",
        check: redirect_loop,
    },
    Rule {
        name: "no-inspect-delay",
        doc: "a TCP section looks at the first bytes of clients without an inspect delay, and finds them at random",
        check: inspect_delay,
    },
    Rule {
        name: "header-name",
        doc: "the name of a header field has a character that no field name has, so that no field is found",
        check: header_name,
    },
];

/// Whether a text may be the name of a header field (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fits)
}

fn compression(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        let spec = &proxy.spec.compression;
        if !spec.algorithms.is_empty() || spec.request_algorithm.is_some() {
            continue;
        }
        if let Some(line) = proxy.own(&["compression"]).next() {
            findings.add(line.whole(), "nothing is compressed without 'compression algo'");
        }
    }
}

fn monitor_fail(model: &Model<'_>, findings: &mut Findings) {
    for proxy in model.proxies.iter().filter(|proxy| proxy.spec.monitor_uri.is_none()) {
        if let Some(line) = proxy.own(&["monitor", "fail"]).next() {
            findings.add(line.whole(), "never evaluated without 'monitor-uri'");
        }
    }
}

fn redirect_loop(model: &Model<'_>, findings: &mut Findings) {
    for proxy in model.proxies.iter().filter(|proxy| proxy.has_clients() && proxy.spec.mode == Mode::Http) {
        let has_tls = proxy.spec.binds.iter().any(|bind| bind.tls.as_ref().is_some_and(|tls| tls.ssl));
        let requests = proxy.statements.iter().filter(|one| one.kind == StatementKind::Rule(HTTP_REQUEST));
        let mut ended = false;
        for statement in requests.chain(proxy.statements.iter().filter(|one| one.kind == StatementKind::Redirect)) {
            let is_redirect = statement
                .words
                .windows(3)
                .any(|words| words[0].text == "redirect" && words[1].text == "scheme" && words[2].text == "https");
            if has_tls && !ended && is_redirect && statement.condition.is_none() {
                let message = "an endless loop: requests that came over TLS are redirected to the same URL";
                findings.add_with_hint(statement.line.span, message, "add 'unless { ssl_fc }'");
            }
            // Requests over TLS may have been answered before.
            ended |= matches!(statement.action(), "allow" | "return" | "redirect" | "deny" | "use-service");
        }
    }
}

/// Whether a sample is taken from the first bytes of a client.
fn is_of_content(fetch: &str) -> bool {
    ["req.ssl_", "req.payload", "req.len", "req.rdp_cookie", "payload", "req_ssl_"]
        .iter()
        .any(|start| fetch.starts_with(start))
}

fn inspect_delay(model: &Model<'_>, findings: &mut Findings) {
    for proxy in model.proxies.iter().filter(|proxy| proxy.has_clients() && proxy.spec.mode == Mode::Tcp) {
        let waits = proxy.spec.rules.request_inspect_delay.is_some_and(|delay| delay > 0);
        // The system accepts such connections with their first bytes.
        if waits || proxy.spec.binds.iter().any(|bind| bind.defer_accept) {
            continue;
        }
        let found = proxy.statements.iter().find(|statement| {
            matches!(statement.kind, StatementKind::Switching | StatementKind::Rule(TCP_REQUEST_CONTENT))
                && looks_at_content(proxy, statement)
        });
        if let Some(statement) = found {
            let message = "found at random, if the first bytes of a client have arrived: the section has no 'tcp-request inspect-delay'";
            findings.add_with_hint(
                statement.line.span,
                message,
                "add 'tcp-request inspect-delay 5s' and 'tcp-request content accept if { req.ssl_hello_type 1 }'",
            );
        }
    }
}

fn looks_at_content(proxy: &Proxy<'_>, statement: &Statement<'_>) -> bool {
    let terms = statement.condition.iter().flat_map(|condition| condition.terms());
    let mut tests = terms.flat_map(|term| tests_of(proxy, statement, term));
    tests.any(|test| is_of_content(&test.fetch))
}

/// Fetches whose first argument is the name of a field.
const FIELDS: &[&str] = &[
    "hdr",
    "hdr_beg",
    "hdr_cnt",
    "hdr_dir",
    "hdr_dom",
    "hdr_end",
    "hdr_ip",
    "hdr_len",
    "hdr_reg",
    "hdr_sub",
    "hdr_val",
    "req.fhdr",
    "req.fhdr_cnt",
    "req.hdr",
    "req.hdr_cnt",
    "req.hdr_ip",
    "req.hdr_val",
    "res.fhdr",
    "res.fhdr_cnt",
    "res.hdr",
    "res.hdr_cnt",
    "res.hdr_ip",
    "res.hdr_val",
    "shdr",
];

fn header_name(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        for sample in &proxy.samples {
            let Some(call) = sample.fetch().filter(|call| FIELDS.contains(&call.name.as_str())) else { continue };
            let name = call.arguments.as_deref().and_then(|list| list.first());
            if let Some(name) = name.filter(|name| !name.is_empty() && !is_token(name)) {
                findings.add(sample.span, format!("no header field has the name '{name}'"));
            }
        }
    }
}
