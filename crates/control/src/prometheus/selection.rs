//! The selection of metrics by a request: the query parameters, in their order. Must never read a value.

use std::collections::HashMap;

use policy::program::OtelMetrics;

/// A group of metrics that a request can select (`scope`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    Frontend,
    Listener,
    Backend,
    Server,
    StickTable,
    Resolver,
    /// Weir's own; only if requested by their names.
    Certificate,
    Store,
    Bgp,
    Udp,
    AuthCache,
}

/// All scopes, in the order of the output.
pub(super) const SCOPES: [(Scope, &str); 12] = [
    (Scope::Global, "global"),
    (Scope::Frontend, "frontend"),
    (Scope::Listener, "listener"),
    (Scope::Backend, "backend"),
    (Scope::Server, "server"),
    (Scope::StickTable, "sticktable"),
    (Scope::Resolver, "resolver"),
    (Scope::Certificate, "certificate"),
    (Scope::Store, "store"),
    (Scope::Bgp, "bgp"),
    (Scope::Udp, "udp"),
    (Scope::AuthCache, "auth-cache"),
];

/// Number of scopes of Weir's own, which are the last ones.
const OWN: usize = 5;

/// HAProxy's scopes, which a request without `scope` selects.
const ALL: u16 = (1 << (SCOPES.len() - OWN)) - 1;

/// The selected metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selection {
    /// Bit set of scopes, by their index in [`SCOPES`].
    scopes: u16,
    /// Names given by `metrics`; the last occurrence of a name wins. True: include it.
    names: HashMap<String, bool>,
    /// A name is included, so others are excluded.
    is_explicit: bool,
    /// `no-maint`: no servers in maintenance.
    pub(super) no_maint: bool,
    /// `desc-labels`: section descriptions as labels.
    pub(super) descriptions: bool,
    /// `extra-counters`: counters of the protocols.
    pub(super) extra: bool,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            scopes: ALL,
            names: HashMap::new(),
            is_explicit: false,
            no_maint: false,
            descriptions: false,
            extra: false,
        }
    }
}

impl Selection {
    /// Returns the selection of `otel-metrics`.
    pub(super) fn of(plan: &OtelMetrics) -> Self {
        let scopes = plan.scopes.iter().fold(0, |scopes, place| scopes | 1 << place);
        Self {
            scopes: if plan.scopes.is_empty() { ALL } else { scopes },
            no_maint: plan.no_maint,
            extra: plan.extra_counters,
            ..Self::default()
        }
    }

    /// Parses the query of a target. `None`: an unknown scope, or a parameter that lacks its value. Unknown parameters
    /// are ignored.
    pub(super) fn read(target: &[u8]) -> Option<Self> {
        let mut selection = Self::default();
        let Some(begin) = memchr::memchr(b'?', target) else { return Some(selection) };
        let query = target[begin + 1..].split(|byte| *byte == b'#').next().unwrap_or_default();
        let mut chosen = None;
        for parameter in query.split(|byte| *byte == b'&') {
            let at = memchr::memchr(b'=', parameter);
            let name = crate::page::decode(&parameter[..at.unwrap_or(parameter.len())]);
            let value = at.map(|at| crate::page::decode(&parameter[at + 1..]));
            match &*name {
                b"scope" => chosen = Some(scopes(&value?, chosen.unwrap_or(0))?),
                b"metrics" => selection.names(&String::from_utf8_lossy(&value?)),
                b"no-maint" => selection.no_maint = true,
                b"desc-labels" => selection.descriptions = true,
                b"extra-counters" => selection.extra = true,
                _ => {}
            }
        }
        selection.scopes = chosen.unwrap_or(ALL);
        Some(selection)
    }

    fn names(&mut self, list: &str) {
        for word in list.split(',') {
            let (name, include) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
            if !name.is_empty() {
                self.names.insert(name.to_owned(), include);
                self.is_explicit |= include;
            }
        }
    }

    /// Whether the scope at an index of [`SCOPES`] is selected.
    pub(super) fn has(&self, place: usize) -> bool {
        self.scopes & 1 << place != 0
    }

    /// Whether a metric is selected, by its full name.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.names.get(name).copied().unwrap_or(!self.is_explicit)
    }
}

/// Returns the scopes after a `scope` parameter; an empty one removes all.
fn scopes(value: &[u8], before: u16) -> Option<u16> {
    match value {
        b"" => Some(0),
        b"*" => Some(before | ALL),
        name => SCOPES.iter().position(|(_, known)| known.as_bytes() == name).map(|at| before | 1 << at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes_of(target: &str) -> Option<Vec<&'static str>> {
        let selection = Selection::read(target.as_bytes())?;
        Some(SCOPES.iter().enumerate().filter(|(at, _)| selection.has(*at)).map(|(_, (_, name))| *name).collect())
    }

    #[test]
    fn the_language_has_the_same_scopes() {
        assert_eq!(SCOPES.map(|(_, name)| name), config::spec::METRIC_SCOPES);
    }

    #[test]
    fn scopes_are_read_in_their_order() {
        let own = ["certificate", "store", "bgp", "udp", "auth-cache"];
        let all: Vec<&str> = SCOPES.iter().map(|(_, name)| *name).filter(|name| !own.contains(name)).collect();
        let more = [&all[..], &["certificate"]].concat();
        for (target, wanted) in [
            ("/metrics", Some(all.clone())),
            ("/metrics?", Some(all.clone())),
            ("/metrics?scope=server", Some(vec!["server"])),
            ("/metrics?scope=%73erver&scope=global", Some(vec!["global", "server"])),
            ("/metrics?scope=*&scope=", Some(vec![])),
            ("/metrics?scope=&scope=global", Some(vec!["global"])),
            ("/metrics?scope=global&scope=*", Some(all.clone())),
            ("/metrics?scope=certificate", Some(vec!["certificate"])),
            ("/metrics?scope=certificate&scope=*", Some(more.clone())),
            ("/metrics?scope=*&scope=certificate", Some(more)),
            ("/metrics?scope=store", Some(vec!["store"])),
            ("/metrics?scope=bgp", Some(vec!["bgp"])),
            ("/metrics?scope=udp", Some(vec!["udp"])),
            ("/metrics?scope=auth-cache", Some(vec!["auth-cache"])),
            ("/metrics?scope=global#&scope=server", Some(vec!["global"])),
            ("/metrics?SCOPE=global&=x&&", Some(all)),
            ("/metrics?scope", None),
            ("/metrics?scope=Global", None),
            ("/metrics?scope=global;metrics=x", None),
            ("/metrics?metrics", None),
        ] {
            assert_eq!(scopes_of(target), wanted, "{target}");
        }
    }

    #[test]
    fn the_last_word_about_a_metric_counts() {
        for (query, wanted) in [
            ("", [true, true]),
            ("metrics=", [true, true]),
            ("metrics=a", [true, false]),
            ("metrics=-a", [false, true]),
            ("metrics=a,-a", [false, false]),
            ("metrics=-a,a", [true, false]),
            ("metrics=,,-,a&metrics=b", [true, true]),
        ] {
            let selection = Selection::read(format!("/?{query}").as_bytes()).expect("it is valid");
            assert_eq!([selection.wants("a"), selection.wants("b")], wanted, "{query}");
        }
        let selection = Selection::read(b"/?no-maint=empty&desc-labels&extra-counters=").expect("it is valid");
        assert!(selection.no_maint && selection.descriptions && selection.extra);
    }
}
