//! Compiles the client side of a proxy: listening addresses, limits, and the default backend. Must never open a socket.

use super::listening::{ListenerOwner, reception, shards, with_unix_defaults};
use super::udp::receive_datagrams;
use super::{Compiler, address};
use crate::processors::group_sizes;
use crate::program::{
    Bind, BindAddress, Frontend, FrontendLimits, Global, LogForward, Runtime, RuntimeSocket, TlsTraffic,
};
use crate::rule::{Switch, Target};
use config::diagnostic::{Diagnostic, Form, Severity};
use config::span::Span;
use config::spec::{
    AddressSpec, BindSpec, CaptureSlotSpec, GlobalSpec, MuxProtocol, ProxyKind, ProxySpec, RuntimeLevel, Spec,
    UsedCertificateSpec,
};
use config::text;
use expression::capture::{CapturePlan, Slot};
use expression::condition::Condition;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Default `maxconn` of a `log-forward` section.
const DEFAULT_RELAY_MAXCONN: u32 = 10;

/// Default `backlog` of the address of a `peers` section.
const DEFAULT_PEERS_BACKLOG: u32 = 1_024;

/// HAProxy's name of the frontend of the runtime API.
const RUNTIME: &str = "GLOBAL";

/// The context of a `bind` line.
#[derive(Clone, Copy)]
struct Line<'a> {
    owner: ListenerOwner<'a>,
    /// Default `backlog` of the addresses.
    backlog: u32,
    /// Number of threads of the process.
    threads: u32,
    global: &'a GlobalSpec,
    /// The section is in HTTP mode.
    is_http: bool,
    /// `ssl-f-use` of the frontend.
    used: &'a [UsedCertificateSpec],
    /// For lookups of the servers of `rhttp@`.
    spec: Option<&'a Spec>,
}

impl Compiler<'_> {
    pub(super) fn frontend(
        &mut self,
        spec: &Spec,
        index: usize,
        written: &ProxySpec,
        global: &Global,
        switching: Vec<Switch>,
        force_switching: Vec<Condition>,
    ) -> Frontend {
        let maxconn = written.maxconn.filter(|maxconn| *maxconn > 0).unwrap_or(global.maxconn);
        let backlog = written.backlog.filter(|backlog| *backlog > 0).unwrap_or(maxconn);
        let ids = bind_ids(&written.binds);
        let kind = if written.kind == ProxyKind::Listen { "proxy" } else { "frontend" };
        let is_http = written.mode == config::spec::Mode::Http;
        let owner = ListenerOwner { kind, name: &written.name.value };
        let line = Line {
            owner,
            backlog,
            threads: global.nbthread,
            is_http,
            global: &spec.global,
            used: &written.used_certificates,
            spec: Some(spec),
        };
        let binds = written.binds.iter().zip(ids).enumerate();
        let binds = binds.filter_map(|(place, (bind, id))| self.bind(bind, place, id, line));
        let mut binds: Vec<_> = binds.collect();
        if written.udp.is_some() {
            receive_datagrams(&mut binds);
        }
        let limits = FrontendLimits::new(&written.limits);
        let reception = reception(written);
        let target = self.target(spec, index, written);
        let at_once = match switching.first() {
            None => target,
            Some(Switch { condition: None, target: Target::Proxy(proxy), .. }) => Some(*proxy),
            Some(_) => None,
        };
        Frontend {
            abortonclose: written.options.abortonclose.unwrap_or(written.mode == config::spec::Mode::Http),
            binds,
            maxconn,
            limits,
            backlog,
            switching: switching.into(),
            target,
            own: (written.kind == ProxyKind::Listen).then_some(index),
            at_once,
            proxy: index,
            force_switching: force_switching.into(),
            captures: self.captures(spec, written),
            unique_id: self.unique_id(spec, index, written),
            trace: self.otel_trace(spec, index, written),
            reception,
        }
    }

    /// Compiles the captures for the log.
    fn captures(&mut self, spec: &Spec, written: &ProxySpec) -> Option<CapturePlan> {
        let captures = &written.captures;
        let slot = |slot: &CaptureSlotSpec| Slot {
            field: slot.name.as_deref().map(|name| text::to_bytes(name).to_ascii_lowercase().into()),
            length: slot.length,
        };
        let most = spec.global.tune.http_cookielen.map_or(64, |bytes| bytes as usize).saturating_sub(1);
        let cookie = captures.cookie.as_ref().map(|(name, length)| {
            if *length > most {
                let message =
                    format!("truncating capture length to {most} bytes for frontend '{}'.", written.name.value);
                self.out.push(Diagnostic::warning(written.span, message).with_form(Form::Bare));
            }
            (text::to_bytes(name).into_owned().into(), (*length).min(most))
        });
        let plan = CapturePlan {
            request: captures.request.iter().map(slot).collect(),
            response: captures.response.iter().map(slot).collect(),
            cookie,
        };
        (plan != CapturePlan::default()).then_some(plan)
    }

    /// Compiles the sockets of the runtime API; messages about them begin with their line.
    pub(super) fn runtime(&mut self, global: &GlobalSpec, threads: u32) -> Runtime {
        let written = &global.runtime;
        let maxconn = written.maxconn.unwrap_or(10);
        let ids = bind_ids(&written.sockets);
        let line = Line {
            owner: ListenerOwner { kind: "frontend", name: RUNTIME },
            backlog: maxconn,
            threads,
            is_http: false,
            global,
            used: &[],
            spec: None,
        };
        let binds = written.sockets.iter().zip(ids).enumerate();
        let sockets = binds.filter_map(|(place, (bind, id))| {
            let access = bind.access;
            Some(RuntimeSocket {
                bind: self.bind(bind, place, id, line)?,
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

    /// Compiles the `log-forward` sections.
    pub(super) fn log_forwards(&mut self, spec: &Spec, threads: u32) -> Vec<LogForward> {
        let forwards = spec.sections.log_forwards.iter().enumerate().map(|(index, written)| {
            let maxconn = written.maxconn.unwrap_or(DEFAULT_RELAY_MAXCONN);
            let backlog = written.backlog.unwrap_or(maxconn);
            let owner = ListenerOwner { kind: "frontend", name: &written.name.value };
            let line = Line { owner, backlog, threads, is_http: false, global: &spec.global, used: &[], spec: None };
            let mut binds = |written: &[BindSpec]| {
                let binds = written.iter().zip(bind_ids(written)).enumerate();
                binds.filter_map(|(place, (bind, id))| self.bind(bind, place, id, line)).collect()
            };
            let (binds, datagrams) = (binds(&written.binds), binds(&written.datagrams));
            LogForward {
                index,
                name: written.name.value.as_str().into(),
                binds,
                datagrams,
                maxconn,
                timeout: written.timeout_client.filter(|millis| *millis > 0).map(Duration::from_millis),
                lines_only: written.lines_only,
                unparsed: written.unparsed,
                host: written.host,
                targets: self.relay_targets(&written.logs, spec),
            }
        });
        forwards.collect()
    }

    /// Compiles the address of a `peers` section.
    pub(super) fn peers_bind(&mut self, written: &BindSpec, section: &str, spec: &Spec, threads: u32) -> Option<Bind> {
        let (owner, backlog) = (ListenerOwner { kind: "peers", name: section }, DEFAULT_PEERS_BACKLOG);
        let line = Line { owner, backlog, threads, is_http: false, global: &spec.global, used: &[], spec: None };
        self.bind(written, 0, written.id.unwrap_or(1), line)
    }

    /// Resolves the address of a `bind` line; reports errors.
    fn listening_address(&mut self, bind: &BindSpec, owner: &str) -> Option<BindAddress> {
        let why = match self.bind_address(&bind.address) {
            Ok(BindAddress::Descriptor { fd, .. }) if !self.resolver.has_descriptor(fd) => {
                format!("cannot use file descriptor '{fd}' : Bad file descriptor.")
            }
            Ok(address) => return Some(address),
            Err(name) => {
                let text = if bind.text.is_empty() { address::written(&bind.address) } else { bind.text.clone() };
                format!("invalid address: '{name}' in '{text}'")
            }
        };
        let keyword = if owner == RUNTIME { "stats socket" } else { "bind" };
        let again = if owner == RUNTIME { format!("parsing [{}] : ", self.place(bind.span)) } else { String::new() };
        self.alert(bind.span, Form::Parsing, format!("{again}'{keyword}' : {why}"));
        None
    }

    /// Resolves the listening addresses of a configuration that is not started, only to report errors.
    pub(super) fn bind_addresses(&mut self, spec: &Spec) {
        let of_proxies = spec.proxies.iter().filter(|proxy| proxy.kind != ProxyKind::Backend);
        let of_proxies = of_proxies.flat_map(|proxy| proxy.binds.iter().map(|bind| (bind, proxy.name.value.as_str())));
        let of_runtime = spec.global.runtime.sockets.iter().map(|bind| (bind, RUNTIME));
        let of_relays = spec.sections.log_forwards.iter().flat_map(|relay| {
            let binds = relay.binds.iter().chain(&relay.datagrams);
            binds.map(|bind| (bind, relay.name.value.as_str()))
        });
        let all: Vec<_> = of_proxies.chain(of_runtime).chain(of_relays).collect();
        for (bind, owner) in all.into_iter().filter(|(bind, _)| !matches!(bind.address, AddressSpec::Reverse { .. })) {
            let _ = self.listening_address(bind, owner);
        }
    }

    /// Reports lines that listen on the same address and share its connections, which is rarely intended.
    pub(super) fn tell_of_shared_addresses(&mut self, spec: &Spec) {
        let mut first: HashMap<String, Span> = HashMap::new();
        let faces_clients =
            |proxy: &&ProxySpec| proxy.kind != ProxyKind::Backend && !proxy.disabled && proxy.udp.is_none();
        for bind in spec.proxies.iter().filter(faces_clients).flat_map(|proxy| &proxy.binds) {
            if !matches!(bind.address, AddressSpec::Inet { .. }) {
                continue;
            }
            let address = match bind.address.is_quic() {
                // An address of datagrams that two lines name is an error.
                true => continue,
                false => address::written(&bind.address),
            };
            let Some(other) = first.get(&address).copied() else {
                first.insert(address, bind.span);
                continue;
            };
            let message = format!("'{address}' is listened on by {} as well: both get connections.", self.place(other));
            self.out.push(Diagnostic::new(Severity::Diag, bind.span, message));
        }
    }

    /// Rejects an inherited descriptor that several lines use, because two could not both close it. Lines that listen
    /// for streams may share one, including sockets of the runtime API and of peers: each has a copy of it.
    pub(super) fn descriptors_have_one_owner(&mut self, spec: &Spec) {
        let proxies = || spec.proxies.iter().filter(|proxy| !proxy.disabled);
        let of_proxies = proxies().filter(|proxy| proxy.kind != ProxyKind::Backend).flat_map(|proxy| &proxy.binds);
        let relays = || spec.sections.log_forwards.iter();
        let of_peers =
            spec.sections.peers.iter().filter(|section| !section.disabled).filter_map(|peers| peers.bind.as_ref());
        let runtime = spec.global.runtime.sockets.iter().map(|bind| ("stats socket", true, bind));
        let binds = of_proxies.chain(relays().flat_map(|relay| &relay.binds)).chain(of_peers);
        let binds = binds.map(|bind| ("bind", !bind.address.is_quic(), bind));
        let datagrams = relays().flat_map(|relay| &relay.datagrams).map(|bind| ("bind", false, bind));
        let all = runtime.chain(binds).chain(datagrams);
        let all = all.map(|(keyword, listens, bind)| (keyword, listens, &bind.address, bind.span));
        let servers = proxies().flat_map(|proxy| &proxy.servers);
        let servers = servers.map(|server| ("server", false, &server.address.value, server.span));
        let mut first: HashMap<i32, (Span, bool)> = HashMap::new();
        for (keyword, listens, address, span) in all.chain(servers) {
            let AddressSpec::Descriptor { fd, is_carrier, .. } = address else { continue };
            let listens = listens && !is_carrier;
            match first.get(fd).copied() {
                Some((_, true)) if listens => {}
                Some((other, _)) => {
                    let other = self.place(other);
                    let message =
                        format!("'{keyword}' : file descriptor '{fd}' is that of the line at [{other}] already.");
                    self.alert(span, Form::Parsing, message);
                }
                None if keyword != "server" => drop(first.insert(*fd, (span, listens))),
                None => {}
            }
        }
    }

    /// Validates the protocol of a `bind` line: in HTTP mode one of HTTP clients, otherwise `none`. A QUIC address needs HTTP
    /// mode.
    fn usable_protocol(&mut self, bind: &BindSpec, line: &Line<'_>) {
        let is_quic = bind.address.is_quic();
        let Some(protocol) = bind.listening.protocol.or(is_quic.then_some(MuxProtocol::Quic)) else { return };
        let is_usable = match protocol {
            MuxProtocol::None => !line.is_http && !is_quic,
            MuxProtocol::Http1 | MuxProtocol::Http2 | MuxProtocol::Qmux => line.is_http && !is_quic,
            MuxProtocol::Quic => line.is_http && is_quic,
            MuxProtocol::Fcgi | MuxProtocol::Spop => false,
        };
        if !is_usable {
            let name = protocol.name();
            let place = self.place(bind.span);
            let owner = line.owner.name;
            let message =
                format!("proxy '{owner}' : MUX protocol '{name}' is not usable for 'bind {}' at [{place}].", bind.text);
            self.alert(bind.span, Form::Bare, message);
        }
    }

    fn bind(&mut self, written: &BindSpec, place: usize, id: u32, line: Line<'_>) -> Option<Bind> {
        let bind = &with_unix_defaults(written, &line.global.unix_bind);
        self.usable_protocol(bind, &line);
        let mut listening =
            self.listening(bind, line.owner, line.global, &group_sizes(&line.global.processors, line.threads));
        match self.guids.give(bind, line.owner.name) {
            Ok(guid) => listening.guid = guid,
            Err(message) => self.alert(bind.span, Form::Bare, message),
        }
        let threads = listening.threads.as_ref().map_or(line.threads, |threads| threads.len() as u32);
        let address = match (&bind.address, line.spec) {
            (AddressSpec::Reverse { server }, Some(spec)) => {
                self.reverse_address(spec, bind, server, line.owner.name)?
            }
            _ => self.listening_address(bind, line.owner.name)?,
        };
        let traffic = match (bind.address.is_quic(), line.is_http) {
            (true, _) => TlsTraffic::Quic,
            (false, true) if bind.listening.protocol == Some(MuxProtocol::Qmux) => TlsTraffic::Qmux,
            (false, true) => TlsTraffic::Http,
            (false, false) => TlsTraffic::Bytes,
        };
        Some(Bind {
            is_removed: false,
            index: place,
            address,
            text: bind.text.as_str().into(),
            name: bind.name.clone().unwrap_or_else(|| id.to_string()).into(),
            is_named: bind.name.is_some(),
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
            tls: self.bind_tls(bind, line.owner, traffic, line.used, &line.global.tls),
        })
    }

    /// Returns the backend for requests without a matching rule: `default_backend`, else the proxy itself. The parser
    /// has validated its mode, but not whether it is disabled.
    fn target(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> Option<usize> {
        let Some(name) = &written.default_backend else {
            return (written.kind == ProxyKind::Listen).then_some(index);
        };
        let found = self.shared.indexes.backend(spec, &name.value);
        if found.is_none() {
            let message = format!("Proxy '{}': unable to find required backend: '{}'.", written.name.value, name.value);
            self.alert(name.span, Form::Config, message);
        }
        self.shared.pins.borrow_mut().proxies.extend(found);
        found
    }
}

/// Assigns the lowest free IDs, from 1, to addresses without an `id`.
fn bind_ids(binds: &[BindSpec]) -> Vec<u32> {
    let mut next = 1;
    let taken: HashSet<u32> = binds.iter().filter_map(|bind| bind.id).collect();
    let ids = binds.iter().map(|bind| {
        bind.id.unwrap_or_else(|| {
            while taken.contains(&next) {
                next += 1;
            }
            next += 1;
            next - 1
        })
    });
    ids.collect()
}
