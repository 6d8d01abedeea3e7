//! The client side of a proxy: listening addresses, limits, and the backend it leads to.

use super::listening::{reception, shards, with_unix_defaults};
use super::{Compiler, address};
use crate::processors::group_sizes;
use crate::program::{Bind, Frontend, FrontendLimits, Global, Runtime, RuntimeSocket};
use config::diagnostic::Form;
use config::span::Spanned;
use config::spec::{BindSpec, GlobalSpec, ProxyKind, ProxySpec, RuntimeLevel, Spec};
use std::time::Duration;

/// What an address depends on beside its own words.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// Kind and name of who listens, as HAProxy says them in messages.
    owner: (&'a str, &'a str),
    /// `backlog` of addresses that have none.
    backlog: u32,
    /// Threads of the process.
    threads: u32,
    global: &'a GlobalSpec,
}

impl Compiler<'_> {
    pub(super) fn frontend(&mut self, spec: &Spec, index: usize, written: &ProxySpec, global: &Global) -> Frontend {
        let maxconn = written.maxconn.filter(|maxconn| *maxconn > 0).unwrap_or(global.maxconn);
        let backlog = written.backlog.filter(|backlog| *backlog > 0).unwrap_or(maxconn);
        let ids = bind_ids(&written.binds);
        let kind = if written.kind == ProxyKind::Listen { "proxy" } else { "frontend" };
        let line = Line { owner: (kind, &written.name.value), backlog, threads: global.nbthread, global: &spec.global };
        let binds = written.binds.iter().zip(ids).enumerate();
        let binds = binds.filter_map(|(place, (bind, id))| self.bind(bind, (place, id), line));
        let binds = binds.collect();
        let limits = FrontendLimits::new(&written.limits);
        let reception = reception(written);
        Frontend { binds, maxconn, limits, backlog, target: self.target(spec, index, written), reception }
    }

    /// The sockets of the runtime API; a message about one begins like its line.
    pub(super) fn runtime(&mut self, global: &GlobalSpec, threads: u32) -> Runtime {
        let written = &global.runtime;
        let maxconn = written.maxconn.unwrap_or(10);
        let ids = bind_ids(&written.sockets);
        let line = Line { owner: ("frontend", "GLOBAL"), backlog: maxconn, threads, global };
        let binds = written.sockets.iter().zip(ids).enumerate();
        let sockets = binds.filter_map(|(place, (bind, id))| {
            let access = bind.access;
            Some(RuntimeSocket {
                bind: self.bind(bind, (place, id), line)?,
                level: access.level.unwrap_or(RuntimeLevel::Operator),
                expose_listeners: access.expose_listeners,
                severity_output: access.severity_output,
            })
        });
        Runtime {
            sockets: sockets.collect(),
            timeout: Duration::from_millis(written.timeout.unwrap_or(10_000)),
            maxconn,
            max_payload: written.max_payload.unwrap_or(128 * 1024) as usize,
            counts_maxima: !written.without_maxima,
        }
    }

    fn bind(&mut self, written: &BindSpec, (place, id): (usize, u32), line: Line<'_>) -> Option<Bind> {
        let bind = &with_unix_defaults(written, &line.global.unix_bind);
        let mut listening = self.listening(bind, line.owner, &group_sizes(&line.global.processors, line.threads));
        match self.guids.give(bind, line.owner.1) {
            Ok(guid) => listening.guid = guid,
            Err(message) => self.alert(bind.span, Form::Bare, message),
        }
        let threads = listening.threads.as_ref().map_or(line.threads, |threads| threads.len() as u32);
        let address = match self.bind_address(&bind.address) {
            Ok(address) => address,
            Err(name) => {
                let text = if bind.text.is_empty() { address::written(&bind.address) } else { bind.text.clone() };
                self.alert(bind.span, Form::Parsing, format!("'bind' : invalid address: '{name}' in '{text}'"));
                return None;
            }
        };
        Some(Bind {
            index: place,
            address,
            text: bind.text.as_str().into(),
            name: bind.name.clone().unwrap_or_else(|| id.to_string()).into(),
            id,
            maxconn: bind.maxconn.filter(|maxconn| *maxconn > 0),
            backlog: bind.backlog.filter(|backlog| *backlog > 0).unwrap_or(line.backlog),
            defer_accept: bind.defer_accept,
            v6only: match (bind.v6only, bind.v4v6) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            },
            shards: shards(bind, line.global, threads),
            unix_mode: bind.unix_mode,
            listening,
        })
    }

    /// The backend that gets a frontend's requests: the first `use_backend`, else `default_backend`, else itself. That
    /// its mode fits was checked with the text.
    fn target(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> Option<usize> {
        // Rules that lead to a backend that is disabled or unpublished are passed over.
        let is_open = |name: &&Spanned<String>| {
            let is_it = |proxy: &&ProxySpec| proxy.kind != ProxyKind::Frontend && proxy.name.value == name.value;
            spec.proxies.iter().find(is_it).is_none_or(|proxy| !proxy.disabled && !proxy.unpublished)
        };
        let mut rules = written.use_backend.iter().chain(&written.default_backend);
        if rules.clone().next().is_some() && !rules.clone().any(|name| is_open(&name)) {
            return None;
        }
        let Some(name) = rules.find(is_open) else {
            return (written.kind == ProxyKind::Listen).then_some(index);
        };
        let is_named = |proxy: &ProxySpec| proxy.kind != ProxyKind::Frontend && proxy.name.value == name.value;
        let found = spec.proxies.iter().position(is_named);
        if found.is_none() {
            let message = format!("Proxy '{}': unable to find required backend: '{}'.", written.name.value, name.value);
            self.alert(name.span, Form::Config, message);
        }
        found
    }
}

/// Addresses without an `id` get the lowest ones that are left, from 1.
fn bind_ids(binds: &[BindSpec]) -> Vec<u32> {
    let mut next = 1;
    let is_taken = |id: u32| binds.iter().any(|bind| bind.id == Some(id));
    let ids = binds.iter().map(|bind| {
        bind.id.unwrap_or_else(|| {
            while is_taken(next) {
                next += 1;
            }
            next += 1;
            next - 1
        })
    });
    ids.collect()
}
