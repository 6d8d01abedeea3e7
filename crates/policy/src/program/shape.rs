//! Compares two configurations, and determines whether one can replace the other in a running process: everything that
//! sockets, live state, idle connections, rings and `log-forward` sections were created from has to be equal. Must
//! never change either.

use super::{
    Backend, Bind, BindAddress, Frontend, Global, Listening, Options, Program, Proxy, QuicLimits, Server,
    ServerAddress, ServerPort, SpoeLog, Tracking,
};
use crate::rule::ServerChoice;
use expression::Expression;
use live::persistence::PersistencePlan;
use live::table::StickTable;

/// A part that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Description of the part.
    pub what: String,
    /// Objects in the process were created from it, so that a new process is needed.
    pub is_kept: bool,
}

/// A field that differs, and whether it must not.
type Field = (&'static str, bool);

/// Returns the fields in which two values differ. Every field of the type is listed as kept, free, or handled
/// separately, so that a new field does not compile until it is classified.
macro_rules! fields {
    ($kind:ident, $own:expr, $next:expr, kept: [$($kept:ident),*], free: [$($free:ident),*], apart: [$($apart:ident),*]) => {{
        let $kind { $($kept,)* $($free,)* $($apart: _,)* } = $own;
        let kept = [$((stringify!($kept), *$kept == $next.$kept)),*].map(|(field, same)| (field, true, same));
        let free = [$((stringify!($free), *$free == $next.$free)),*].map(|(field, same)| (field, false, same));
        let different = kept.into_iter().chain(free).filter(|(_, _, same)| !same);
        different.map(|(field, is_kept, _)| (field, is_kept)).collect::<Vec<Field>>()
    }};
}

/// Adds descriptions of fields.
fn of(fields: Vec<Field>, whose: &str, found: &mut Vec<Difference>) {
    let told = fields.into_iter().map(|(field, is_kept)| {
        let what = format!("{} of {whose}", field.replace('_', " "));
        Difference { what, is_kept }
    });
    found.extend(told);
}

fn kept(what: String) -> Difference {
    Difference { what, is_kept: true }
}

fn free(what: String) -> Difference {
    Difference { what, is_kept: false }
}

impl Program {
    /// Returns a description of the difference that prevents `next` from replacing this program in a running process:
    /// live state was created from it. `None` if it can. Rules, conditions, error pages, timeouts, filters, check
    /// scripts, user lists, keys and patterns may differ, and servers may be added at the end or removed.
    pub fn obstacle(&self, next: &Self) -> Option<String> {
        self.differences(next).into_iter().find(|found| found.is_kept).map(|found| found.what)
    }

    /// Returns the differences to `next`. Parts are compared by meaning: the same text differs if its names refer to
    /// other objects.
    pub fn differences(&self, next: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let fields = fields!(Program, self, next,
            kept: [caches, rings, log_forwards, resolvers, peers, bgp, namespaces, runtime, variables, event_descriptors, stores],
            free: [fcgi_logs, profiles, spare_logs, traces, acme, ocsp, http_client, otel_exporters, otel_metrics, userlists, lists, keys],
            apart: [global, proxies, index, servers, names, files, registry, script_maps, wanted, tls, tables, spoe_logs]);
        of(fields, "the configuration", &mut found);
        // Rows belong to the program; services belong to the process, by number.
        if self.registry.services != next.registry.services {
            found.push(kept("services of the configuration".to_owned()));
        }
        tables(&self.tables, &next.tables, &mut found);
        engines(&self.spoe_logs, &next.spoe_logs, &mut found);
        self.proxies_differ(next, &mut found);
        of(global(&self.global, &next.global), "the process", &mut found);
        of(quic(&self.global.quic, &next.global.quic), "QUIC", &mut found);
        found
    }

    fn proxies_differ(&self, next: &Self, found: &mut Vec<Difference>) {
        if self.proxies.places() > next.proxies.places() {
            found.push(kept("the number of proxies".to_owned()));
            return;
        }
        let lists_differ = self.lists != next.lists;
        for place in 0..next.proxies.places() {
            let Some(after) = next.proxies.get(place) else { continue };
            let before = self.proxies.get(place).filter(|_| self.proxies.is_present(place));
            match (before, next.proxies.is_present(place)) {
                (Some(before), true) => proxy(before, after, lists_differ, found),
                (Some(before), false) => found.push(comes_or_goes(before, &self.global, "removed")),
                (None, true) if place < self.proxies.places() => {
                    found.push(kept(format!("the place of proxy {}", after.name)))
                }
                (None, true) => found.push(comes_or_goes(after, &next.global, "added")),
                (None, false) => {}
            }
        }
    }
}

/// Compares stick tables, which are added at the end or removed. Tables shared with peers are part of the
/// synchronization and must not change.
fn tables(own: &[StickTable], next: &[StickTable], found: &mut Vec<Difference>) {
    let is_told = |table: &StickTable| table.shared || table.write_to.is_some();
    for place in 0..own.len().max(next.len()) {
        match (own.get(place), next.get(place)) {
            (Some(before), Some(after)) if before == after => {}
            (None, Some(after)) if !is_told(after) => found.push(free(format!("stick table {} is added", after.name))),
            (Some(before), Some(after)) if after.is_removed() && !is_told(before) => {
                found.push(free(format!("stick table {} is removed", before.name)));
            }
            (before, after) => {
                let name = before.or(after).map_or("", |table| &table.name);
                found.push(kept(format!("stick table {name}")));
            }
        }
    }
}

/// Compares SPOE engines, which are added at the end; removed ones leave an empty entry.
fn engines(own: &[SpoeLog], next: &[SpoeLog], found: &mut Vec<Difference>) {
    for place in 0..own.len().max(next.len()) {
        match (own.get(place), next.get(place)) {
            (Some(before), Some(after)) if before == after => {}
            (Some(before), Some(after)) if before.engine == after.engine => {
                found.push(free(format!("log targets of SPOE engine {}", before.engine)));
            }
            (None, Some(after)) => found.push(free(format!("SPOE engine {} is added", after.engine))),
            (Some(before), Some(after)) if after.engine.is_empty() => {
                found.push(free(format!("SPOE engine {} is removed", before.engine)));
            }
            (before, _) => found.push(kept(format!("SPOE engine {}", before.map_or("", |before| &before.engine)))),
        }
    }
}

/// Returns the difference of a proxy that is added or removed; it is not permitted if other objects were created from
/// all proxies of its kind.
fn comes_or_goes(proxy: &Proxy, global: &Global, change: &str) -> Difference {
    let name = &proxy.name;
    let mut binds = proxy.frontend.iter().flat_map(|frontend| &frontend.binds).filter(|bind| !bind.is_removed);
    let is_opened = |bind: &Bind| matches!(bind.address, BindAddress::Reverse { .. } | BindAddress::Descriptor { .. });
    if global.rates.tls_sessions.is_some() && binds.clone().any(|bind| bind.tls.is_some()) {
        return kept(format!("addresses with TLS of proxy {name}, whose rate is limited"));
    }
    let mut servers = proxy.backend.iter().flat_map(|backend| &backend.servers);
    if let Some(server) = servers.find(|server| matches!(server.address, ServerAddress::Carrier(_))) {
        return kept(format!("the inherited descriptor of server {} of proxy {name}", server.name));
    }
    match binds.find(|bind| is_opened(bind)) {
        Some(bind) => kept(format!("address {} of proxy {name}", bind.text)),
        None => free(format!("proxy {name} is {change}")),
    }
}

fn global(own: &Global, next: &Global) -> Vec<Field> {
    fields!(Global, own, next,
        kept: [maxconn, maxconn_is_automatic, rates, maxpipes, strict_limits, nbthread, bufsize,
               http, maxaccept, maxpollevents, idle_pool_shared, client_buffers, server_buffers,
               datagram_receive_buffer, datagram_send_buffer, pipesize, nosplice, variables, max_spread_checks,
               measure_tasks, anonymous_key, shared_counters],
        free: [logs, log_tag, log_send_hostname, logurilen, descriptors, compression, large_bufsize, max_tls_connections, excess, maxrewrite, maxhdr, http2, http2_servers, streams,
               glitches, tokens, max_rules_at_once, evaluation_time, multi_queue, pool_low_descriptors,
               pool_high_descriptors, reject_privileged_ports, hard_stop_after, spread_checks, checks_are_proxied, grace,
               close_spread, node, measure_rules],
        apart: [quic])
}

/// Compares the parameters of QUIC: connections that begin later have the new ones, sockets and keys stay.
fn quic(own: &QuicLimits, next: &QuicLimits) -> Vec<Field> {
    fields!(QuicLimits, own, next,
        kept: [listens, cluster_secret, send_buffer, qlog],
        free: [retry_threshold, refuses_privileged_ports, idle_timeout, glitches, transmit_memory, segments, streams,
               servers],
        apart: [])
}

fn proxy(own: &Proxy, next: &Proxy, lists_differ: bool, found: &mut Vec<Difference>) {
    let whose = format!("proxy {}", own.name);
    let fields = fields!(Proxy, own, next,
        kept: [index, name, id, guid, kind, mode, disabled, unpublished],
        free: [logs, log_lines, log_tag, description, rules, filters, compression, timeouts, close_mode, http,
               monitor_uri, monitor_fail, stats, errors, mail, flows],
        apart: [id_is_written, options, frontend, backend, fixed, slow_userlists, features]);
    of(fields, &whose, found);
    // The linger mode was set on server connections; options that addresses and servers inherit are compared there.
    let options = fields!(Options, &own.options, &next.options,
        kept: [nolinger],
        free: [dontlognull, splice, clitcpka, srvtcpka, idle_close_on_response, independent_streams],
        apart: []);
    of(options, &format!("options of {whose}"), found);
    match (&own.frontend, &next.frontend) {
        (Some(own), Some(next)) => frontend(own, next, &whose, found),
        (None, None) => {}
        _ => found.push(kept(format!("side of clients of {whose}"))),
    }
    match (&own.backend, &next.backend) {
        (Some(own), Some(next)) => backend(own, next, &whose, lists_differ, found),
        (None, None) => {}
        _ => found.push(kept(format!("side of servers of {whose}"))),
    }
}

fn frontend(own: &Frontend, next: &Frontend, whose: &str, found: &mut Vec<Difference>) {
    let fields = fields!(Frontend, own, next,
        kept: [maxconn, limits, backlog, proxy, reception],
        free: [abortonclose, switching, target, own, at_once, force_switching, captures, unique_id, trace],
        apart: [binds]);
    of(fields, whose, found);
    if own.binds.len() > next.binds.len() {
        found.push(kept(format!("the number of addresses of {whose}")));
    }
    for (place, after) in next.binds.iter().enumerate() {
        let before = own.binds.get(place);
        let name = format!("address {} of {whose}", before.unwrap_or(after).text);
        match before {
            Some(before) if before.is_removed && after.is_removed => {}
            Some(before) if before.is_removed => found.push(kept(format!("the place of {name}"))),
            Some(_) if after.is_removed => found.push(free(format!("{name} is removed"))),
            Some(before) => of(bind(before, after), &name, found),
            // Limits and rates were created for the existing addresses.
            None if after.maxconn.is_some() => found.push(kept(format!("maxconn of {name}"))),
            None => found.push(free(format!("{name} is added"))),
        }
    }
}

fn bind(own: &Bind, next: &Bind) -> Vec<Field> {
    let mut found = fields!(Bind, own, next,
        kept: [index, is_removed, address, maxconn, backlog, defer_accept, v6only, shards, unix_mode],
        free: [text, name, is_named, id, tls],
        apart: [listening]);
    found.extend(fields!(Listening, &own.listening, &next.listening,
        kept: [socket, threads, connections],
        free: [quic, protocol, idle_ping, header, label, guid],
        apart: []));
    if own.tls.is_some() != next.tls.is_some() || matches!(own.address, BindAddress::Reverse { .. }) {
        found.iter_mut().for_each(|(_, is_kept)| *is_kept = true);
    }
    found
}

fn backend(own: &Backend, next: &Backend, whose: &str, lists_differ: bool, found: &mut Vec<Difference>) {
    let fields = fields!(Backend, own, next,
        kept: [balance, hash, recogniser, log_key, allbackups, limits, fullconn],
        free: [hash_key, retries, redispatch, http_reuse, abortonclose, fcgi, check, check_id],
        apart: [servers, persistence, choice, fullconn_is_written]);
    of(fields, whose, found);
    of(choice(&own.choice, &next.choice), whose, found);
    of(persistence(&own.persistence, &next.persistence), whose, found);
    if own.servers.places() > next.servers.places() {
        found.push(kept(format!("the number of servers of {whose}")));
        return;
    }
    for place in 0..next.servers.places() {
        let Some(after) = next.servers.get(place) else { continue };
        let before = own.servers.get(place).filter(|_| own.servers.is_present(place));
        let name = format!("server {} of {whose}", before.unwrap_or(after).name);
        match (before, next.servers.is_present(place)) {
            (Some(before), true) => of(server(before, after), &name, found),
            (Some(_), false) => found.push(free(format!("{name} is removed"))),
            (None, true) if own.servers.get(place).is_some_and(|former| !former.leaves_place_to(after)) => {
                found.push(kept(format!("the place of {name}")));
            }
            // Sessions of the previous configuration use it as well, with the lists that they started with.
            (None, true) if lists_differ && asks_lists(after) => {
                found.push(kept(format!("lists of patterns that {name} asks")));
            }
            // Only descriptors that the process was started with are known to be intended.
            (None, true) if matches!(after.address, ServerAddress::Carrier(_)) => {
                found.push(kept(format!("the inherited descriptor of {name}")));
            }
            (None, true) => found.push(free(format!("{name} is added"))),
            (None, false) => {}
        }
    }
}

/// Whether connections to a server depend on a pattern list.
fn asks_lists(server: &Server) -> bool {
    let connecting = &server.connecting;
    let sni = connecting.tls.as_ref().and_then(|tls| tls.sni.as_ref());
    let expressions = sni.into_iter().chain(&connecting.name).map(Expression::text);
    let fields = connecting.header.iter().flat_map(|header| header.fields.iter().map(|field| &*field.text));
    expressions.chain(fields).any(|text| text.contains("map"))
}

/// Compares server rules; names depend on the servers.
fn choice(own: &ServerChoice, next: &ServerChoice) -> Vec<Field> {
    fields!(ServerChoice, own, next, kept: [], free: [rules, persistence, persists, stick], apart: [names])
}

/// Compares persistence; the cookie values depend on the servers.
fn persistence(own: &PersistencePlan, next: &PersistencePlan) -> Vec<Field> {
    fields!(PersistencePlan, own, next, kept: [cookie, dynamic_key, rdp_cookie], free: [], apart: [values])
}

fn server(own: &Server, next: &Server) -> Vec<Field> {
    let mut found = fields!(Server, own, next,
        kept: [index, name, id, host, resolving, address, weight, maxconn, minconn, strict_maxconn, maxqueue, cookie,
               disabled, backup, guid, place, slowstart, pool_max_conn, pool_low_conn, connecting, log, check,
               unchecked_level, agent, tracking],
        free: [non_stick, pool_purge_delay, max_reuse, redirect, down_shuts_sessions, up_shuts_backups],
        apart: [serial, id_is_written, fixed, written]);
    // The address of a resolved name is determined at run time.
    if own.resolving.is_some() && own.resolving == next.resolving && own.host == next.host {
        found.retain(|(field, _)| !["address", "place"].contains(field));
    }
    found
}

impl Server {
    /// Whether another server may take over the index of this one after nothing refers to this one: all state of the
    /// process at that index, and everything that sessions of older configurations read there, is the same for both.
    /// Names, addresses and cookies are passed to those sessions. The transport of log lines is internal to the process.
    pub(crate) fn leaves_place_to(&self, next: &Self) -> bool {
        let fields = fields!(Server, self, next,
            kept: [index, id, host, resolving, maxconn, minconn, strict_maxconn, pool_max_conn, pool_low_conn,
                   pool_purge_delay, connecting, tracking, non_stick, max_reuse, redirect],
            free: [name, address, weight, maxqueue, cookie, disabled, backup, guid, place, slowstart, check,
                   unchecked_level, agent, down_shuts_sessions, up_shuts_backups],
            apart: [serial, id_is_written, fixed, written, log]);
        let is_fixed = self.has_one_address() && next.has_one_address() && self.log.is_some() == next.log.is_some();
        is_fixed && fields.iter().all(|(_, is_kept)| !is_kept)
    }

    /// Whether all connections use one address, which is the configured one.
    pub fn is_plain(&self) -> bool {
        self.has_one_address() && self.log.is_none()
    }

    fn has_one_address(&self) -> bool {
        let is_one =
            matches!(self.address, ServerAddress::Inet { ip, port: ServerPort::Exact(_) } if !ip.is_unspecified());
        is_one
            && self.resolving.is_none()
            && self.tracking == Tracking { proxy: self.tracking.proxy, ..Tracking::default() }
    }

    /// Whether the state of this server can be kept for `next`, which was compiled with another index.
    pub(crate) fn goes_on_as(&self, next: &Self) -> bool {
        let mut there = next.clone();
        there.index = self.index;
        if !self.id_is_written && !next.id_is_written {
            let by_id = |server: &Self| server.id.wrapping_mul(4_096) == server.place;
            if by_id(self) && by_id(next) {
                there.place = self.place;
            }
            there.id = self.id;
        }
        server(self, &there).iter().all(|(_, is_kept)| !is_kept)
    }
}
