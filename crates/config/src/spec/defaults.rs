//! Named `defaults` sections: backends added at run time inherit from them (management manual,
//! "add backend"). Must never hold changes made at run time.

use super::{Mode, ProxySpec};

/// A named `defaults` section.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultsSpec {
    pub name: String,
    /// `mode`; `None`: not written.
    pub mode: Option<Mode>,
    /// The section was purged after startup (`tune.defaults.purge`).
    pub purged: bool,
    /// Reason why no backend can inherit from it.
    pub refusal: Option<String>,
    /// Settings that a backend in TCP mode inherits, without a name.
    pub tcp: ProxySpec,
    /// Settings that a backend in HTTP mode inherits.
    pub http: ProxySpec,
}

impl DefaultsSpec {
    /// Returns the settings that a backend in that mode inherits.
    pub fn of(&self, mode: Mode) -> &ProxySpec {
        if mode == Mode::Http { &self.http } else { &self.tcp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::{InputFile, LoadOptions};

    #[test]
    fn named_sections_are_kept_in_both_modes() {
        let text = "defaults\n timeout server 1s\ndefaults a\n timeout server 2s\n log 127.0.0.1 local0\n\
                    defaults b from a\n mode http\n option forwardfor\ndefaults c from b\n\
                    defaults d\n mode http\n tcp-request connection accept\n";
        let file = InputFile { name: "c".to_owned(), bytes: text.as_bytes().to_vec() };
        let spec = crate::load(&[file], Environment::new(), &LoadOptions::default()).spec;
        let found: Vec<_> = spec.defaults.iter().map(|one| (one.name.as_str(), one.mode)).collect();
        assert_eq!(found, [("a", None), ("b", Some(Mode::Http)), ("c", Some(Mode::Http)), ("d", Some(Mode::Http))]);
        let c = &spec.defaults[2];
        assert_eq!((c.http.mode, c.tcp.mode, c.http.timeouts.server), (Mode::Http, Mode::Tcp, Some(2_000)));
        assert_eq!((c.http.logs.len(), c.tcp.logs.len()), (1, 1));
        assert!(c.of(Mode::Http).forwardfor.is_some() && c.of(Mode::Tcp).forwardfor.is_none());
        assert!(c.refusal.is_none());
        assert!(
            spec.defaults[3].refusal.as_deref().is_some_and(|why| why.starts_with("a backend section cannot inherit"))
        );
    }
}
