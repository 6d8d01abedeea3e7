//! Determines the proxies in TCP mode whose connections may be upgraded to HTTP: by a rule, or by a backend in HTTP
//! mode (configuration manual, section 4). Must never read a line.

use super::proxy::ProxyDraft;
use super::rule::TCP_REQUEST_CONTENT;
use crate::spec::{Mode, ProxyKind, ProxySpec};
use std::collections::HashSet;

/// Marks these proxies.
pub(super) fn mark(drafts: &mut [ProxyDraft]) {
    let http: HashSet<String> = drafts
        .iter()
        .filter(|draft| draft.spec.kind != ProxyKind::Frontend && draft.spec.mode == Mode::Http)
        .map(|draft| draft.spec.name.value.clone())
        .collect();
    for draft in drafts {
        let spec = &draft.spec;
        let leads = spec.default_backend.iter().chain(&draft.targets).any(|target| http.contains(&target.value));
        draft.spec.upgrades = spec.mode == Mode::Tcp
            && spec.kind != ProxyKind::Backend
            && (leads || switches(spec) || names_backends(spec));
    }
}

/// Whether a rule of the proxy switches to HTTP.
pub(super) fn switches(spec: &ProxySpec) -> bool {
    let mut rules = spec.rules.rules.iter().filter(|rule| rule.set == TCP_REQUEST_CONTENT);
    rules.any(|rule| rule.line.words.first().is_some_and(|word| word.text == "switch-mode"))
}

/// Whether the name of a backend contains a format: the backend may have either mode.
fn names_backends(spec: &ProxySpec) -> bool {
    spec.rules.switching.iter().any(|line| line.words.first().is_some_and(|word| word.text.contains('%')))
}
