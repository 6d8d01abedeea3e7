//! Compiles the server side of a proxy: servers, balance, retries. Must never open a connection.

use super::Compiler;
use super::address::unresolved;
use super::check::server_head;
use super::names::SpecNames;
use crate::check::Check;
use crate::program::{Backend, BackendLimits, Proxy, Redispatch, Server, ServerAddress, ServerPort, Tracking};
use crate::rule::ServerChoice;
use balance::Recogniser;
use base::hash::{avalanche, xxh32};
use config::diagnostic::{Diagnostic, Form, Severity};
use config::spec::{AddressSpec, BalanceSpec, HashKey, HostSpec, Mode, ProxyKind, ProxySpec, ServerSpec, Spec};
use config::text;
use expression::Expression;
use expression::sample::EvalPlace;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

impl Compiler<'_> {
    pub(super) fn backend(&mut self, spec: &Spec, proxy: usize, written: &ProxySpec, choice: ServerChoice) -> Backend {
        let check = self.check(spec, proxy, written);
        let servers = written.servers.iter().enumerate();
        let names = &self.names(spec, Some(proxy));
        let servers = servers
            .filter_map(|(index, server)| self.server(spec, names, written, &check, index, server))
            .collect::<Vec<_>>();
        self.added_defaults(spec, names, written);
        // The unique ID of a `listen` is also that of its frontend.
        let is_alone = written.kind == ProxyKind::Backend;
        let check_id = is_alone.then(|| self.unique_id(spec, proxy, written)).flatten().map(|named| named.format);
        let persistence = self.persistence(written, &servers);
        Backend {
            servers: servers.into_iter().collect(),
            persistence,
            log_key: self.log_key(spec, proxy, written),
            hash_key: self.hash_key(spec, proxy, written),
            balance: written.balance.clone(),
            hash: *written.hash,
            recogniser: Recogniser::new(&written.balance, &written.hash),
            choice,
            allbackups: written.allbackups,
            retries: written.retries,
            redispatch: Redispatch::from_interval(written.options.redispatch),
            http_reuse: written.http_reuse,
            abortonclose: written.options.abortonclose.unwrap_or(written.mode == Mode::Http),
            limits: BackendLimits::new(&written.limits, written.mode),
            fullconn: written.fullconn.unwrap_or(0),
            fullconn_is_written: written.fullconn.is_some(),
            fcgi: self.fcgi_app(spec, proxy, written),
            check,
            check_id,
        }
    }

    /// Compiles the expression of `balance hash`.
    fn hash_key(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> Option<Expression> {
        let BalanceSpec::Hash(text) = &written.balance else { return None };
        let place = EvalPlace::ServerChoice;
        let kind = if written.kind == ProxyKind::Backend { "backend" } else { "proxy" };
        let named = format!("{kind} '{}' [{}]: ", written.name.value, self.place(written.name.span));
        match Expression::parse_all(&text.value, place, &self.names(spec, Some(index))) {
            Ok(expression) if expression.fetch().refusal(place).is_none() => Some(expression),
            Ok(expression) => {
                let message = format!(
                    "{named}error detected while parsing 'balance hash' expression '{}' which requires information \
                     from {}, which is not available here.",
                    text.value,
                    expression.fetch().wanted()
                );
                self.alert(text.span, Form::Bare, message);
                None
            }
            Err(error) => {
                let why = error.message;
                let message = format!("{named}failed to parse 'balance hash' expression '{}' in : {why}.", text.value);
                self.alert_with_hint(text.span, Form::Bare, message, error.hint);
                None
            }
        }
    }

    /// Compiles the TLS of `default-server for-added`, so that its files are read, and known to servers added at run time.
    fn added_defaults(&mut self, spec: &Spec, names: &SpecNames<'_>, proxy: &ProxySpec) {
        let Some(span) = proxy.added_defaults else { return };
        let unnamed = proxy.default_servers.iter().find(|server| server.name.value.is_empty() && server.tls.is_some());
        let Some(written) = unnamed else { return };
        let written = ServerSpec { span, ..written.clone() };
        names.begin_at(span);
        let tls = self.server_tls(&written, false, proxy, &spec.global.tls, names, "'default-server' : ");
        self.tls.defaults.extend(tls.map(|tls| tls.client));
    }

    /// Resolves the server addresses of a proxy that is not started, only to report errors.
    pub(super) fn server_addresses(&mut self, spec: &Spec, proxy: &ProxySpec) {
        for written in &proxy.servers {
            let follows = self.resolving(spec, proxy, written).is_some();
            let methods = &written.connecting.initial_address;
            let last = self.resolver.last_address(&proxy.name.value, &written.name.value);
            if let Err(message) = self.initial_address(&written.address.value, last, methods, follows) {
                let head = format!("'server {}/{}' : ", proxy.name.value, written.name.value);
                self.alert(written.address.span, Form::LatePlaced, format!("{head}{message}"));
            }
        }
    }

    /// Rejects connections of agents that depend on a client, since agents are shared by all clients.
    fn refuse_varying(&mut self, proxy: &ProxySpec, written: &ServerSpec, varies: bool, head: &str) {
        if proxy.mode == Mode::Spop && varies {
            let message = format!(
                "{head}connections that depend on a client ('send-proxy', 'usesrc', an address without host or port) are not \
                 supported yet by Weir in 'mode spop'."
            );
            self.alert(written.span, Form::LatePlaced, message);
        }
    }

    /// Rejects reverse-HTTP servers outside of `mode http`.
    fn refuse_reversed(&mut self, proxy: &ProxySpec, written: &ServerSpec, address: &ServerAddress, head: &str) {
        if *address == ServerAddress::Reversed && proxy.mode != Mode::Http {
            let what = "another mode than 'mode http'";
            let message = format!("{head}{what} is not supported yet by Weir for a server with 'rhttp@'.");
            self.alert(written.span, Form::LatePlaced, message);
        }
    }

    /// Reports a server that starts without an address because its name was not resolved (`init-addr`).
    fn note_unresolved(&mut self, proxy: &ProxySpec, written: &ServerSpec, address: &ServerAddress, is_followed: bool) {
        let methods = &written.connecting.initial_address;
        if let Some(name) = unresolved(address, &written.address.value, methods, is_followed) {
            let message =
                format!("{}could not resolve address '{name}', disabling server.", server_head(proxy, written));
            let notice = Diagnostic::new(Severity::Notice, written.address.span, message);
            self.out.push(notice.with_form(Form::LatePlaced));
        }
    }

    /// Returns the address that a server starts with; `None` if an error was reported.
    fn first_address(
        &mut self,
        proxy: &ProxySpec,
        written: &ServerSpec,
        is_followed: bool,
        head: &str,
    ) -> Option<ServerAddress> {
        let methods = &written.connecting.initial_address;
        let last = self.resolver.last_address(&proxy.name.value, &written.name.value);
        match self.initial_address(&written.address.value, last, methods, is_followed) {
            Ok(address) => Some(address),
            Err(message) => {
                self.alert(written.address.span, Form::LatePlaced, format!("{head}{message}"));
                self.lacks_address = true;
                None
            }
        }
    }

    pub(super) fn server(
        &mut self,
        spec: &Spec,
        names: &SpecNames<'_>,
        proxy: &ProxySpec,
        check: &Check,
        index: usize,
        written: &ServerSpec,
    ) -> Option<Server> {
        let head = format!("'server {}/{}' : ", proxy.name.value, written.name.value);
        let resolving = self.resolving(spec, proxy, written).map(Box::new);
        let address = self.first_address(proxy, written, resolving.is_some(), &head)?;
        self.note_unresolved(proxy, written, &address, resolving.is_some());
        names.begin_at(written.span);
        let by_tls = self.is_checked_by_tls(names, proxy, written);
        let tls = self.server_tls(written, by_tls, proxy, &spec.global.tls, names, &head);
        let connecting = self.connecting(names, proxy, written, &address, &head, tls);
        let check = self.server_check(names, proxy, check, written, &address, &connecting);
        self.refuse_varying(proxy, written, connecting.varies, &head);
        self.refuse_reversed(proxy, written, &address, &head);
        let log = match proxy.mode {
            Mode::Log => {
                Some(self.log_server(proxy, written, &address, connecting.tls.as_deref(), spec.global.tune.bufsize)?)
            }
            Mode::Tcp | Mode::Http | Mode::Spop | Mode::Udp => None,
        };
        // Zero means "no limit" for both.
        let is_http = proxy.mode == Mode::Http;
        let limit = |written: Option<u32>| written.filter(|limit| *limit > 0 && log.is_none());
        // Without `maxconn`, or with one below `minconn`, the limit is `minconn` at any load.
        let minconn = limit(written.limits.minconn);
        let maxconn = limit(written.maxconn).max(minconn);
        Some(Server {
            index,
            serial: 0,
            name: written.name.value.as_str().into(),
            id: written.id,
            id_is_written: written.id_is_written,
            host: host_name(&written.address.value).map(Into::into),
            resolving,
            place: place(written, &address),
            address,
            weight: written.weight.min(256),
            maxconn,
            minconn: minconn.filter(|minconn| Some(*minconn) < maxconn),
            strict_maxconn: written.limits.strict_maxconn,
            maxqueue: limit(written.maxqueue),
            disabled: written.disabled,
            backup: written.backup,
            guid: written.balance.guid.as_deref().map(Into::into),
            fixed: false,
            written: self.place(written.span),
            non_stick: written.persistence.non_stick,
            cookie: written.persistence.cookie.as_deref().filter(|_| is_http).map(|value| text::to_bytes(value).into()),
            slowstart: written.balance.slowstart.map(Duration::from_millis),
            pool_max_conn: written.pool_max_conn,
            pool_purge_delay: Duration::from_millis(u64::from(written.pool_purge_delay)),
            pool_low_conn: written.connecting.pool_low_conn,
            max_reuse: written.connecting.max_reuse,
            redirect: written.connecting.redirect.as_deref().map(|prefix| text::to_bytes(prefix).into()),
            connecting: connecting.shared(),
            log,
            check: check.map(Box::new),
            unchecked_level: if written.check.has_defaults { written.check.rise } else { 0 },
            agent: self.agent_check(written).map(Box::new),
            tracking: Tracking { proxy: names.proxy.unwrap_or_default(), ..Tracking::default() },
            // A client that goes on sending would keep its flow to a dead server for ever.
            down_shuts_sessions: written.check.down_shuts_sessions || proxy.mode == Mode::Udp,
            up_shuts_backups: written.check.up_shuts_backups,
        })
    }
}

/// Returns the host name of an address.
fn host_name(address: &AddressSpec) -> Option<&str> {
    match address {
        AddressSpec::Inet { host: HostSpec::Name(name), .. } => Some(name),
        _ => None,
    }
}

/// Returns a server's base value on the consistent-hash ring (`hash-key`), equal to that of HAProxy 3.5. A missing
/// property is replaced by the server's `id`.
fn place(written: &ServerSpec, address: &ServerAddress) -> u32 {
    // The maximum number of ring positions of a server.
    let by_id = written.id.wrapping_mul(4_096);
    let of_address = |ip: IpAddr, port: u32| match ip {
        IpAddr::V4(ip) => avalanche(port.wrapping_add(u32::from_le_bytes(ip.octets()))),
        IpAddr::V6(ip) => xxh32(&ip.octets(), port),
    };
    match (written.balance.hash_key, address) {
        (HashKey::Id32, _) => avalanche(written.id.swap_bytes()),
        (HashKey::Guid, _) => written.balance.guid.as_ref().map_or(by_id, |guid| xxh32(guid.as_bytes(), 0)),
        (HashKey::Addr, ServerAddress::Inet { ip, .. }) => of_address(*ip, 0),
        (HashKey::AddrPort, ServerAddress::Inet { ip, port }) => {
            let port = if let ServerPort::Exact(port) = port { *port } else { 0 };
            of_address(*ip, avalanche(u32::from(port)))
        }
        (HashKey::Id | HashKey::Addr | HashKey::AddrPort, _) => by_id,
    }
}

/// Computes `fullconn` for backends that do not specify it: a tenth of the sum of the `maxconn` of all frontends that
/// may use the backend, rounded up, at least 1.
pub(super) fn fill_in_fullconn(spec: &Spec, proxies: &mut [Proxy]) {
    let backends = proxies.iter().filter(|proxy| proxy.backend.is_some());
    let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
    for proxy in backends {
        named.entry(&proxy.name).or_default().push(proxy.index);
    }
    let mut totals = vec![0_u64; proxies.len()];
    // The last frontend that was counted for each backend.
    let mut counted = vec![usize::MAX; proxies.len()];
    for (index, (proxy, written)) in proxies.iter().zip(&spec.proxies).enumerate() {
        let Some(front) = &proxy.frontend else { continue };
        let rules = written.rules.switching.iter().filter_map(|line| line.words.first()).map(|word| &word.text);
        let names = rules.chain(written.default_backend.as_ref().map(|target| &target.value));
        let targets = names.filter_map(|name| named.get(name.as_str())).flatten().copied();
        for target in targets.chain(front.target) {
            if std::mem::replace(&mut counted[target], index) != index {
                totals[target] += u64::from(front.maxconn);
            }
        }
    }
    for (proxy, total) in proxies.iter_mut().zip(totals) {
        if let Some(backend) = &mut proxy.backend
            && backend.fullconn == 0
        {
            backend.fullconn = u32::try_from(total.div_ceil(10)).unwrap_or(u32::MAX).max(1);
        }
    }
}
