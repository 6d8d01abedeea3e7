//! Which backends a frontend may select: by `default_backend`, by rules with a name, and by rules whose format computes
//! one. Must never decide whether a rule applies.

use config::spec::{ProxyKind, ProxySpec};
use std::collections::BTreeMap;

/// For each proxy, the proxies that may serve its requests.
pub struct Reach(Vec<Vec<bool>>);

impl Reach {
    pub fn of(proxies: &[ProxySpec]) -> Self {
        let backends = proxies.iter().enumerate().filter(|(_, proxy)| proxy.kind != ProxyKind::Frontend);
        let by_name: BTreeMap<&str, usize> =
            backends.map(|(index, proxy)| (proxy.name.value.as_str(), index)).collect();
        let row = |frontend: &ProxySpec| {
            if frontend.kind == ProxyKind::Backend || frontend.disabled {
                return Vec::new();
            }
            let mut selected = vec![false; proxies.len()];
            let default = frontend.default_backend.iter().map(|name| name.value.as_str());
            let rules = frontend.rules.switching.iter().filter_map(|line| Some(line.words.first()?.text.as_str()));
            for target in default.chain(rules) {
                if !target.contains('%') {
                    let named = by_name.get(target).and_then(|index| selected.get_mut(*index));
                    named.into_iter().for_each(|one| *one = true);
                    continue;
                }
                let targets = selected.iter_mut().zip(proxies);
                targets.for_each(|(one, proxy)| *one |= is_target(target, proxy));
            }
            selected
        };
        let mut rows: Vec<Vec<bool>> = proxies.iter().map(row).collect();
        for (index, proxy) in proxies.iter().enumerate() {
            if proxy.kind == ProxyKind::Listen
                && !proxy.disabled
                && let Some(own) = rows.get_mut(index).and_then(|row| row.get_mut(index))
            {
                *own = true;
            }
        }
        Self(rows)
    }

    /// Whether a backend may serve requests of a frontend.
    pub fn is_selected(&self, frontend: usize, backend: usize) -> bool {
        self.0.get(frontend).and_then(|row| row.get(backend)).copied().unwrap_or(false)
    }
}

/// Whether a format that computes a name may give that of a proxy.
fn is_target(target: &str, proxy: &ProxySpec) -> bool {
    if proxy.kind == ProxyKind::Frontend {
        return false;
    }
    let name = proxy.name.value.as_str();
    let (Some(first), Some(last)) = (target.find('%'), target.rfind(']')) else { return name == target };
    // Text around the first and the last expression is part of every name.
    let (prefix, suffix) = (&target[..first], target.get(last + 1..).unwrap_or_default());
    let suffix = if suffix.contains('%') { "" } else { suffix };
    name.len() >= prefix.len() + suffix.len() && name.starts_with(prefix) && name.ends_with(suffix)
}
