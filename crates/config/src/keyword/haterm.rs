//! Frontends in haterm mode (configuration manual, section 4.2, "mode"): the test server answers every request, and
//! other settings of the proxy are dropped. Must never read a line.

use super::proxy::ProxyDraft;
use super::report::Report;
use super::rule::{HTTP_REQUEST, QUIC_INITIAL, TCP_REQUEST_CONNECTION, TCP_REQUEST_SESSION};
use crate::diagnostic::Severity;
use crate::document::Word;
use crate::spec::{CapturesSpec, ProxyKind, RuleLineSpec, RuleSpec, RulesSpec, Shared};

/// The test server's service name.
const SERVICE: &str = "haterm";

/// Removes settings without effect from proxies in haterm mode, warns about them, and adds the rule of the service.
pub(super) fn normalize(drafts: &mut [ProxyDraft], report: &mut Report<'_>) {
    for draft in drafts.iter_mut().filter(|draft| draft.haterm && draft.spec.kind != ProxyKind::Backend) {
        let vain = in_vain(draft);
        if !vain.is_empty() {
            let message = format!(
                "'mode haterm' answers every request of proxy '{}' at once: its {} are ignored.",
                draft.spec.name.value,
                vain.join(", ")
            );
            report.late(Severity::Warning, draft.spec.span, message);
        }
        strip(draft);
    }
}

/// Returns the written settings that have no effect.
fn in_vain(draft: &ProxyDraft) -> Vec<&'static str> {
    let spec = &draft.spec;
    let rows = [
        (spec.rules.rules.iter().any(|rule| !is_kept(rule)), "rules on requests and responses"),
        (!spec.rules.redirects.is_empty(), "redirects"),
        (!spec.rules.switching.is_empty() || spec.default_backend.is_some(), "backends"),
        (!spec.filters.list.is_empty(), "filters"),
        (*spec.captures != CapturesSpec::default(), "captures"),
        (spec.stats.is_some() || spec.monitor_uri.is_some(), "pages"),
        (!spec.servers.is_empty(), "servers"),
    ];
    rows.into_iter().filter(|(is_written, _)| *is_written).map(|(_, what)| what).collect()
}

/// Whether a rule is kept: rules on connections are evaluated before any request.
fn is_kept(rule: &RuleSpec) -> bool {
    matches!(rule.set, QUIC_INITIAL | TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION)
}

fn strip(draft: &mut ProxyDraft) {
    let spec = &mut draft.spec;
    let known = std::mem::take(&mut spec.rules).into_inner();
    let words = ["use-service", SERVICE];
    let words = words.map(|text| Word { text: text.to_owned(), span: spec.span, quoted: false });
    let answer = RuleSpec {
        set: HTTP_REQUEST,
        line: RuleLineSpec { words: words.into(), span: spec.span, ..RuleLineSpec::default() },
    };
    let kept = known.rules.into_iter().filter(is_kept);
    spec.rules = RulesSpec { acls: known.acls, rules: kept.chain([answer]).collect(), ..RulesSpec::default() }.into();
    spec.default_backend = None;
    spec.filters = Shared::default();
    spec.compression = Shared::default();
    spec.captures = Shared::default();
    spec.http = Shared::default();
    spec.forwardfor = None;
    spec.monitor_uri = None;
    spec.stats = None;
    spec.otel = None;
    draft.logs.clear();
}
