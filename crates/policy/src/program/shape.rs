//! What two configurations must have in common for one to follow the other in a running process: all that sockets, live
//! state, idle connections and the senders of logs were made of. Must never change either.

use super::{Backend, Frontend, Global, Program, Proxy, Server};

/// The name of the first field of those that are kept in which two values differ. Every field of the type is either kept
/// or free, so that the compiler asks where a new one belongs.
macro_rules! difference {
    ($kind:ident, $own:expr, $next:expr, kept: [$($kept:ident),*], free: [$($free:ident),*]) => {{
        let $kind { $($kept,)* $($free: _,)* } = $own;
        let same = [$((stringify!($kept), *$kept == $next.$kept)),*];
        same.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
    }};
}

impl Program {
    /// What keeps `next` from taking this program's place in a running process: something that live state was made of is
    /// different, in words. `None`: it can. Rules, conditions, error pages, timeouts, filters, the scripts of checks,
    /// user lists, keys and patterns may be others. Parts are compared by what they mean: the same text is something else
    /// where its names lead elsewhere.
    pub fn obstacle(&self, next: &Self) -> Option<String> {
        let field = difference!(Program, self, next,
            kept: [caches, rings, log_forwards, fcgi_logs, spoe_logs, profiles, resolvers, peers, namespaces, runtime, variables,
                   event_descriptors, tables, spare_logs],
            free: [traces, global, proxies, servers, acme, ocsp, http_client, userlists, names, files, lists, keys, registry, script_maps, wanted,
                   tls]);
        // Rows are the program's own; services are the process's, by number.
        let services = || (self.registry.services != next.registry.services).then_some("services");
        field
            .or_else(services)
            .map(|field| format!("{field} of the configuration"))
            .or_else(|| self.obstacle_of_proxies(next))
            .or_else(|| Some(format!("{} of the process", global(&self.global, &next.global)?)))
    }

    fn obstacle_of_proxies(&self, next: &Self) -> Option<String> {
        let grown = self.proxies.places() != self.proxies.len();
        if grown || self.proxies.places() != next.proxies.places() {
            return Some("the number of proxies".to_owned());
        }
        let mut pairs = self.proxies.iter().zip(&next.proxies);
        pairs.find_map(|(own, next)| Some(format!("{} of proxy {}", proxy(own, next)?, own.name)))
    }
}

fn global(own: &Global, next: &Global) -> Option<&'static str> {
    difference!(Global, own, next,
        kept: [maxconn, maxconn_is_automatic, rates, maxpipes, descriptors, strict_limits, nbthread, bufsize, logurilen,
               http, maxaccept, maxpollevents, idle_pool_shared, client_buffers, server_buffers,
               datagram_receive_buffer, datagram_send_buffer, pipesize, nosplice, variables, max_spread_checks, logs,
               log_tag, log_send_hostname, measure_tasks, anonymous_key],
        free: [compression, large_bufsize, max_tls_connections, maxrewrite, maxhdr, http2, http2_servers, streams, glitches, tokens, max_rules_at_once, evaluation_time, multi_queue,
               pool_low_descriptors, pool_high_descriptors, reject_privileged_ports, hard_stop_after, spread_checks,
               checks_are_proxied, grace, close_spread, node])
}

fn proxy(own: &Proxy, next: &Proxy) -> Option<String> {
    let field = difference!(Proxy, own, next,
        kept: [index, name, id, guid, kind, mode, disabled, unpublished, options, logs, log_lines, log_tag],
        free: [description, id_is_written, frontend, backend, fixed, rules, filters, compression, slow_userlists, timeouts, close_mode, http,
               monitor_uri, monitor_fail, stats, errors, mail]);
    let field = field.or_else(|| match (&own.frontend, &next.frontend) {
        (Some(own), Some(next)) => frontend(own, next),
        (own, next) => (own.is_some() != next.is_some()).then_some("side of clients"),
    });
    field.map(str::to_owned).or_else(|| match (&own.backend, &next.backend) {
        (Some(own), Some(next)) => backend(own, next),
        (own, next) => (own.is_some() != next.is_some()).then(|| "side of servers".to_owned()),
    })
}

fn frontend(own: &Frontend, next: &Frontend) -> Option<&'static str> {
    difference!(Frontend, own, next,
        kept: [binds, maxconn, limits, backlog, proxy, reception],
        free: [switching, target, at_once, force_switching, captures, unique_id])
}

fn backend(own: &Backend, next: &Backend) -> Option<String> {
    let field = difference!(Backend, own, next,
        kept: [balance, hash, recogniser, log_key, persistence, allbackups, limits, fullconn],
        free: [servers, hash_key, choice, retries, redispatch, http_reuse, abortonclose, fcgi, check, check_id]);
    let grown = own.servers.places() != own.servers.len();
    if grown || own.servers.places() != next.servers.places() {
        return Some("the number of servers".to_owned());
    }
    let mut pairs = own.servers.iter().zip(&next.servers);
    field
        .map(str::to_owned)
        .or_else(|| pairs.find_map(|(own, next)| Some(format!("{} of server {}", server(own, next)?, own.name))))
}

fn server(own: &Server, next: &Server) -> Option<&'static str> {
    difference!(Server, own, next,
        kept: [index, serial, name, id, host, resolving, address, weight, maxconn, minconn, strict_maxconn, maxqueue,
               cookie, disabled, backup, guid, place, slowstart, pool_max_conn, pool_low_conn, connecting, log, check,
               unchecked_level, agent, tracking],
        free: [id_is_written, non_stick, fixed, written, pool_purge_delay, max_reuse, redirect, down_shuts_sessions,
               up_shuts_backups])
}
