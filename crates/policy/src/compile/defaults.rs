//! Validates the rules of named `defaults` sections: errors are reported whether the sections are used or not. Must
//! never compile them for use.

use super::{Compiler, Resolver};
use config::diagnostic::Diagnostic;
use config::spec::{Mode, ProxyKind, ProxySpec, Spec};

/// Reports errors in the sections. Returns true if there are any.
pub(super) fn diagnose(spec: &Spec, resolver: &mut dyn Resolver, out: &mut Vec<Diagnostic>) -> bool {
    let written: Vec<ProxySpec> = spec.defaults.iter().filter_map(as_proxy).collect();
    if written.is_empty() {
        return false;
    }
    let mut with = spec.clone();
    let first = with.proxies.len();
    with.proxies.extend(written);
    let mut found = Vec::new();
    let mut compiler = Compiler::new(&with, resolver, &mut found);
    compiler.tables(&with);
    for (index, proxy) in with.proxies.iter().enumerate().skip(first) {
        let _ = compiler.rules(&with, index, proxy);
    }
    let of_rules = |one: &Diagnostic| {
        let rules = with.proxies[first..].iter().flat_map(|proxy| proxy.rules.rules.iter());
        one.span.is_some_and(|span| {
            rules.map(|rule| rule.line.span).any(|line| (line.file, line.line) == (span.file, span.line))
        })
    };
    found.retain(|one| one.is_alert() && of_rules(one));
    for one in &mut found {
        for proxy in &with.proxies[first..] {
            let name = &proxy.name.value;
            one.message = one.message.replace(&format!("in proxy '{name}'"), &format!("in defaults '{name}'"));
        }
    }
    let failed = !found.is_empty();
    out.append(&mut found);
    failed
}

/// Returns a proxy with all that proxies of either side inherit from a section; `None` if it has no rules.
fn as_proxy(section: &config::spec::DefaultsSpec) -> Option<ProxySpec> {
    let inherited = section.of(section.mode.unwrap_or(Mode::Tcp));
    if inherited.rules.rules.is_empty() {
        return None;
    }
    let mut proxy = inherited.clone();
    proxy.kind = ProxyKind::Listen;
    proxy.name.value.clone_from(&section.name);
    Some(proxy)
}
