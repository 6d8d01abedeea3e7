//! The server side of a proxy: servers, balance, retries.

use super::Compiler;
use crate::balance;
use crate::program::{Backend, BackendLimits, Proxy, Redispatch, Server};
use config::diagnostic::Form;
use config::spec::{Mode, ProxySpec, ServerSpec, Spec};
use config::text;
use std::time::Duration;

impl Compiler<'_> {
    pub(super) fn backend(&mut self, written: &ProxySpec) -> Backend {
        let servers = written.servers.iter().enumerate();
        let servers = servers.filter_map(|(index, server)| self.server(written, index, server)).collect();
        Backend {
            servers,
            balance: written.balance.clone(),
            retries: written.retries,
            redispatch: redispatch(written),
            http_reuse: written.http_reuse,
            abortonclose: written.options.abortonclose.unwrap_or(written.mode == Mode::Http),
            limits: BackendLimits::new(&written.limits, written.mode),
            fullconn: written.fullconn.unwrap_or(0),
        }
    }

    fn server(&mut self, proxy: &ProxySpec, index: usize, written: &ServerSpec) -> Option<Server> {
        let head = format!("'server {}/{}' : ", proxy.name.value, written.name.value);
        let (address, resolved) =
            match self.initial_address(&written.address.value, &written.connecting.initial_address) {
                Ok(address) => address,
                Err(message) => {
                    self.alert(written.address.span, Form::Parsing, format!("{head}{message}"));
                    return None;
                }
            };
        let connecting = self.connecting(proxy, written, &address, &head);
        // Zero means "no limit" for both.
        let limit = |written: Option<u32>| written.filter(|limit| *limit > 0);
        // Without a `maxconn`, or with a smaller one, the limit is `minconn` at any load.
        let minconn = limit(written.limits.minconn);
        let maxconn = limit(written.maxconn).max(minconn);
        Some(Server {
            index,
            serial: 0,
            name: written.name.value.as_str().into(),
            id: written.id,
            address,
            weight: written.weight.min(256),
            maxconn,
            minconn: minconn.filter(|minconn| Some(*minconn) < maxconn),
            strict_maxconn: written.limits.strict_maxconn,
            maxqueue: limit(written.maxqueue),
            // Nothing can be sent to a server without an address.
            disabled: written.disabled || !resolved,
            backup: written.backup,
            pool_max_conn: written.pool_max_conn,
            pool_purge_delay: Duration::from_millis(u64::from(written.pool_purge_delay)),
            pool_low_conn: written.connecting.pool_low_conn,
            max_reuse: written.connecting.max_reuse,
            redirect: written.connecting.redirect.as_deref().map(|prefix| text::to_bytes(prefix).into()),
            connecting,
        })
    }
}

/// HAProxy heeds the interval only where leaving the server breaks something: where a hash chose it.
fn redispatch(written: &ProxySpec) -> Redispatch {
    match Redispatch::from_interval(written.options.redispatch) {
        Redispatch::Every(_) | Redispatch::FromLast(_) if !balance::find(&written.balance).0.hashes => {
            Redispatch::Every(1)
        }
        redispatch => redispatch,
    }
}

/// `fullconn` where none is written: a tenth of the `maxconn` of all frontends that may lead to the backend, at least 1.
pub(super) fn fill_in_fullconn(spec: &Spec, proxies: &mut [Proxy]) {
    for index in 0..proxies.len() {
        let name = &proxies[index].name;
        let leads_here = |(proxy, written): &(&Proxy, &ProxySpec)| {
            let mut names = written.use_backend.iter().chain(&written.default_backend);
            let itself = proxy.frontend.as_ref().is_some_and(|frontend| frontend.target == Some(index));
            itself || names.any(|target| *target.value == **name)
        };
        let fronts = proxies.iter().zip(&spec.proxies).filter(leads_here);
        let total: u64 =
            fronts.filter_map(|(proxy, _)| proxy.frontend.as_ref()).map(|front| u64::from(front.maxconn)).sum();
        if let Some(backend) = &mut proxies[index].backend
            && backend.fullconn == 0
        {
            backend.fullconn = u32::try_from(total / 10).unwrap_or(u32::MAX).max(1);
        }
    }
}
