//! Compiles `maxconn-store` of servers: finds their stores. Must never change a server.

use super::Compiler;
use config::diagnostic::Form;
use config::spec::{MaxconnStoreSpec, Mode, ProxySpec, ServerSpec, Spec};
use live::lease::slots::SlotPlan;

impl Compiler<'_> {
    /// Returns the servers whose `maxconn` holds over all nodes of a store, in the order of the configuration.
    pub(super) fn slots(&mut self, spec: &Spec) -> Vec<SlotPlan> {
        let mut slots = Vec::new();
        for (proxy, written) in spec.proxies.iter().enumerate() {
            for (server, own) in written.servers.iter().enumerate() {
                let Some(leased) = &own.limits.store else { continue };
                match store_of(spec, written, own, leased) {
                    Ok(store) => slots.push(SlotPlan {
                        proxy,
                        server,
                        store,
                        name: format!("{}/{}", written.name.value, own.name.value).into(),
                        lost: leased.lost,
                    }),
                    Err(why) => {
                        let message = format!("'server {}/{}' : {why}", written.name.value, own.name.value);
                        self.alert(leased.store.span, Form::Placed, message);
                    }
                }
            }
        }
        slots
    }
}

/// Returns the index of a server's store.
///
/// # Errors
/// Why its slots cannot be leased.
fn store_of(spec: &Spec, proxy: &ProxySpec, server: &ServerSpec, leased: &MaxconnStoreSpec) -> Result<usize, String> {
    let wanted = &leased.store.value;
    let Some(store) = spec.sections.stores.iter().position(|store| store.name.value == *wanted) else {
        let known: Vec<_> = spec.sections.stores.iter().map(|store| format!("'{}'", store.name.value)).collect();
        let known = if known.is_empty() { "there is none".to_owned() } else { format!("known: {}", known.join(", ")) };
        return Err(format!("'maxconn-store' : there is no store '{wanted}' ({known})."));
    };
    if proxy.mode == Mode::Log {
        return Err("'maxconn-store' has no meaning in mode log, whose servers have no 'maxconn'.".to_owned());
    }
    if server.maxconn.is_none_or(|most| most == 0) {
        return Err("'maxconn-store' requires 'maxconn', the number of slots of all nodes together.".to_owned());
    }
    if server.limits.strict_maxconn {
        return Err(
            "'maxconn-store' and 'strict-maxconn' exclude each other: idle connections have no slots.".to_owned()
        );
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::{backend, compiled, inet, refused};
    use config::span::{Span, Spanned};
    use config::spec::{HostSpec, LostMode, PortSpec, StoreSectionSpec, StoreServerSpec};
    use std::net::IpAddr;

    fn at<T>(value: T, line: u32) -> Spanned<T> {
        Spanned::new(value, Span { file: 0, line, start: 0, end: 1 })
    }

    /// Two stores, and a backend whose server has slots in one of them.
    fn leased(store: &str, change: impl Fn(&mut ProxySpec)) -> Spec {
        let mut spec = Spec::default();
        for name in ["a", "b"] {
            let address = at(inet(HostSpec::Ip(IpAddr::from([127, 0, 0, 1])), PortSpec::Exact(6_379)), 5);
            let server = Some(StoreServerSpec { span: address.span, name: at("s".to_owned(), 5), address, tls: None });
            let section = StoreSectionSpec::new(at((), 5).span, at(name.to_owned(), 5));
            spec.sections.stores.push(StoreSectionSpec { server, ..section });
        }
        spec.proxies = vec![backend("first"), backend("second")];
        let proxy = &mut spec.proxies[1];
        proxy.servers[0].maxconn = Some(7);
        proxy.servers[0].limits.store =
            Some(MaxconnStoreSpec { store: at(store.to_owned(), 9), lost: LostMode::Closed });
        change(proxy);
        spec
    }

    #[test]
    fn servers_are_found_by_proxy_and_place() {
        let program = compiled(&leased("b", |_| {}));
        let expected = SlotPlan { proxy: 1, server: 0, store: 1, name: "second/s1".into(), lost: LostMode::Closed };
        assert_eq!(program.stores.slots, [expected]);
        assert_eq!(compiled(&leased("b", |proxy| proxy.servers[0].limits = Default::default())).stores.slots, []);
    }

    #[test]
    fn slots_require_a_store_and_a_maxconn() {
        let none = "'maxconn-store' requires 'maxconn', the number of slots of all nodes together.";
        let row = |store, change: fn(&mut ProxySpec), why: &str| {
            let expected = format!("'server second/s1' : {why}");
            assert_eq!(refused(&leased(store, change)), [(9, expected)], "{why}");
        };
        row("c", |_| {}, "'maxconn-store' : there is no store 'c' (known: 'a', 'b').");
        row("a", |proxy| proxy.servers[0].maxconn = None, none);
        row("a", |proxy| proxy.servers[0].maxconn = Some(0), none);
        row(
            "a",
            |proxy| proxy.servers[0].limits.strict_maxconn = true,
            "'maxconn-store' and 'strict-maxconn' exclude each other: idle connections have no slots.",
        );
        let mut alone = leased("a", |_| {});
        alone.sections.stores.clear();
        let why = "'server second/s1' : 'maxconn-store' : there is no store 'a' (there is none).";
        assert_eq!(refused(&alone), [(9, why.to_owned())]);
    }
}
