//! Compiles `store` sections: resolves their addresses, and reads their passwords. Must never connect.

use super::Compiler;
use crate::program::{Login, Store, StorePassword, StoreServer, Stores};
use config::diagnostic::Form;
use config::spec::{Spec, StoreSectionSpec};
use config::text;
use live::lease::LimitPlan;
use std::sync::Arc;
use std::time::Duration;

/// Maximum length of a password in bytes.
const LONGEST_PASSWORD: usize = 4_096;

/// Returns the limits of all sections, in the order of the configuration.
fn limits(spec: &Spec) -> Vec<LimitPlan> {
    let stores = spec.sections.stores.iter().enumerate();
    stores.flat_map(|(store, section)| section.limits.iter().map(move |limit| LimitPlan::new(store, limit))).collect()
}

impl Compiler<'_> {
    /// Compiles all sections.
    pub(super) fn stores(&mut self, spec: &Spec) -> Stores {
        let sections = spec.sections.stores.iter();
        let sections = sections.filter_map(|section| self.store(spec, section)).map(Arc::new).collect();
        Stores { sections, limits: limits(spec), slots: self.slots(spec) }
    }

    fn store(&mut self, spec: &Spec, written: &StoreSectionSpec) -> Option<Store> {
        let name = &written.name.value;
        let server = written.server.as_ref()?;
        let head = format!("'server {name}/{}' : ", server.name.value);
        let address = match self.server_address(&server.address.value) {
            Ok(address) => address,
            Err(host) => {
                let text = super::address::written(&server.address.value);
                let message = format!("{head}invalid address: '{host}' in '{text}'");
                self.alert(server.address.span, Form::Placed, message);
                return None;
            }
        };
        if address.inet().is_some_and(|address| address.port() == 0 || address.ip().is_unspecified()) {
            let message = format!("{head}the server of a store requires an address and a port.");
            self.alert(server.address.span, Form::Placed, message);
            return None;
        }
        let tls = self.link_tls(server.tls.as_deref(), name, &server.name.value, server.span, spec, &head);
        Some(Store {
            name: name.as_str().into(),
            server: StoreServer { name: server.name.value.as_str().into(), address, tls },
            login: self.login(written)?,
            database: written.database,
            key_prefix: text::to_bytes(&written.key_prefix).into_owned().into(),
            connect_timeout: Duration::from_millis(written.timeout_connect),
            server_timeout: Duration::from_millis(written.timeout_server),
            answer_size: written.answer_size as usize,
        })
    }

    /// Reads the password. The outer `None`: it cannot be read, which was reported.
    fn login(&mut self, written: &StoreSectionSpec) -> Option<Option<Login>> {
        let Some(path) = &written.password_file else { return Some(None) };
        let problem = match (self.resolver.file_reader())(&path.value) {
            Ok(mut content) => {
                if content.last() == Some(&b'\n') {
                    content.pop();
                }
                if content.is_empty() {
                    "it is empty".to_owned()
                } else if content.len() > LONGEST_PASSWORD {
                    format!("it has more than {LONGEST_PASSWORD} bytes")
                } else {
                    let user = written.user.as_ref().map(|user| text::to_bytes(&user.value).into_owned().into());
                    return Some(Some(Login { user, password: StorePassword(content.into()) }));
                }
            }
            Err(error) => error.to_string(),
        };
        let message = format!("'password-file' : cannot use file '{}' : {problem}.", path.value);
        self.alert(path.span, Form::Parsing, message);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::names::limit;
    use crate::compile::tests::{compiled, inet, refused};
    use config::span::{Span, Spanned};
    use config::spec::{HostSpec, LimitSpec, LostMode, PortSpec, StoreServerSpec};
    use std::net::IpAddr;

    fn at<T>(value: T) -> Spanned<T> {
        Spanned::new(value, Span { file: 0, line: 5, start: 0, end: 1 })
    }

    fn store(name: &str, port: PortSpec, limits: &[&str]) -> StoreSectionSpec {
        let span = at(()).span;
        let address = at(inet(HostSpec::Ip(IpAddr::from([127, 0, 0, 1])), port));
        let limit = |name: &&str| {
            let (rate, period, burst, size, lost) = (3, 1_000, 2, 100, LostMode::Open);
            LimitSpec { span, name: at((*name).to_owned()), rate, period, burst, size, lost }
        };
        let server = Some(StoreServerSpec { span, name: at("s".to_owned()), address, tls: None });
        let limits = limits.iter().map(limit).collect();
        StoreSectionSpec { server, limits, ..StoreSectionSpec::new(span, at(name.to_owned())) }
    }

    fn with(stores: Vec<StoreSectionSpec>) -> Spec {
        let mut spec = Spec::default();
        spec.sections.stores = stores;
        spec
    }

    #[test]
    fn limits_are_found_by_store_and_name() {
        let spec = with(vec![
            store("a", PortSpec::Exact(6_379), &["x", "y"]),
            store("b", PortSpec::Exact(6_380), &["y", "z"]),
        ]);
        let rows = [
            ("a/x", Some(0)),
            ("a/y", Some(1)),
            ("b/y", Some(2)),
            ("b/z", Some(3)),
            ("b/x", None),
            ("c/x", None),
            ("x", None),
            ("a/x/y", None),
        ];
        for (name, expected) in rows {
            assert_eq!(limit(&spec, name), expected, "{name}");
        }
        let program = compiled(&spec);
        let found: Vec<_> = program.stores.limits.iter().map(|limit| (limit.store, &*limit.name)).collect();
        assert_eq!(found, [(0, "x"), (0, "y"), (1, "y"), (1, "z")]);
        assert_eq!(program.stores.limits[0].interval(), 333_333_333);
    }

    #[test]
    fn a_store_requires_a_port_and_a_password_that_can_be_read() {
        let mut locked = store("a", PortSpec::Exact(6_379), &[]);
        locked.password_file = Some(at("/none".to_owned()));
        let rows = [
            (store("a", PortSpec::None, &[]), "'server a/s' : the server of a store requires an address and a port."),
            (locked, "'password-file' : cannot use file '/none' : entity not found."),
        ];
        for (store, expected) in rows {
            assert_eq!(refused(&with(vec![store])), [(5, expected.to_owned())]);
        }
    }
}
