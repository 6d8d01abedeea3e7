//! Settings of servers and backends that need another setting to have an effect. Must never report a setting that is
//! inherited from a `defaults` section.

use crate::finding::Findings;
use crate::model::{Model, Proxy};
use crate::rule::Rule;
use config::document::Line;
use config::span::Span;
use config::spec::{AddressSpec, BalanceSpec, HostSpec, InitialAddress, Mode, ProxyKind, ServerSpec};
use std::collections::BTreeMap;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "server-cookie-without-cookie",
        doc: "a server has a cookie, and its backend has no 'cookie' line: no cookie is set or read",
        check: server_cookie,
    },
    Rule {
        name: "cookie-without-server-cookies",
        doc: "a backend has a 'cookie' line, and no server has a cookie: none is set, and none selects a server",
        check: backend_cookie,
    },
    Rule {
        name: "duplicate-server-cookie",
        doc: "two servers of a backend have the same cookie, which always selects the first of them",
        check: duplicate_cookie,
    },
    Rule {
        name: "check-not-enabled",
        doc: "a backend defines a health check, and no server has 'check': none is checked",
        check: check_not_enabled,
    },
    Rule {
        name: "check-setting-without-check",
        doc: "a server has a setting of health checks, and neither 'check' nor 'agent-check'",
        check: check_setting,
    },
    Rule {
        name: "agent-setting-without-agent",
        doc: "a server has a setting of agent checks without 'agent-check'",
        check: agent_setting,
    },
    Rule {
        name: "queue-limit-without-maxconn",
        doc: "a server has 'maxqueue' or 'strict-maxconn' without 'maxconn': no request is ever queued for it",
        check: queue_limit,
    },
    Rule {
        name: "fullconn-without-minconn",
        doc: "a backend has 'fullconn', and no server has 'minconn', the limit that it moves",
        check: fullconn,
    },
    Rule {
        name: "hash-type-without-hash",
        doc: "a backend has 'hash-type', and its balance algorithm hashes nothing",
        check: hash_type,
    },
    Rule {
        name: "resolvers-without-name",
        doc: "a server has 'resolvers', and an IP address that is never resolved",
        check: resolvers,
    },
    Rule {
        name: "server-without-address",
        doc: "a server starts without an address, and nothing resolves its name afterwards",
        check: without_address,
    },
];

/// Returns the proxies that have servers of their own.
fn with_servers<'m, 'a>(model: &'m Model<'a>) -> impl Iterator<Item = &'m Proxy<'a>> {
    model.proxies.iter().filter(|proxy| !proxy.spec.servers.is_empty() && !proxy.spec.disabled)
}

/// Returns each server with its line; those of a template share one, which is returned once.
fn servers<'m, 'a>(proxy: &'m Proxy<'a>) -> impl Iterator<Item = (&'m ServerSpec, &'a Line)> {
    let lines: BTreeMap<(u32, u32), &'a Line> =
        proxy.lines.iter().map(|line| ((line.file, line.number), line)).collect();
    let mut last = None;
    proxy.spec.servers.iter().filter_map(move |server| {
        let place = (server.span.file, server.span.line);
        let line = lines.get(&place).copied()?;
        (last.replace(place) != Some(place)).then_some((server, line))
    })
}

/// Returns the first of some options on a `server` line. Options follow the address.
fn option<'l>(line: &'l Line, names: &[&str]) -> Option<(&'l str, Span)> {
    let words = line.words.iter().skip(3);
    words.filter(|word| names.contains(&word.text.as_str())).map(|word| (word.text.as_str(), word.span)).next()
}

fn server_cookie(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model).filter(|proxy| proxy.spec.mode == Mode::Http) {
        if proxy.spec.persistence.cookie.is_some() {
            continue;
        }
        let found = servers(proxy).filter(|(server, _)| server.persistence.cookie.is_some());
        for (server, line) in found {
            let Some((_, span)) = option(line, &["cookie"]) else { continue };
            let message = format!(
                "the cookie of server '{}' is never used: {} '{}' has no 'cookie' line",
                server.name.value,
                proxy.noun(),
                proxy.name()
            );
            findings.add(span, message);
        }
    }
}

fn backend_cookie(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        let Some(cookie) = &proxy.spec.persistence.cookie else { continue };
        let Some(line) = proxy.own(&["cookie"]).last() else { continue };
        let has = |servers: &[ServerSpec]| servers.iter().any(|server| server.persistence.cookie.is_some());
        let is_used = cookie.value.dynamic || has(&proxy.spec.servers) || has(&proxy.spec.default_servers);
        if is_used || proxy.spec.mode != Mode::Http {
            continue;
        }
        let message =
            format!("no server of {} '{}' has a 'cookie', so that none is set or read", proxy.noun(), proxy.name());
        findings.add(line.whole(), message);
    }
}

fn duplicate_cookie(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model).filter(|proxy| proxy.spec.persistence.cookie.is_some()) {
        let mut known: BTreeMap<(&str, bool), &str> = BTreeMap::new();
        for (server, line) in servers(proxy) {
            let Some(cookie) = server.persistence.cookie.as_deref() else { continue };
            let first = *known.entry((cookie, server.backup)).or_insert(&server.name.value);
            if first == server.name.value {
                continue;
            }
            let Some((_, span)) = option(line, &["cookie"]) else { continue };
            findings.add(span, format!("the cookie '{cookie}' always selects server '{first}', which has it as well"));
        }
    }
}

/// Options that select a method of health checks.
const CHECK_OPTIONS: [&str; 9] = [
    "external-check",
    "httpchk",
    "ldap-check",
    "mysql-check",
    "pgsql-check",
    "redis-check",
    "smtpchk",
    "spop-check",
    "tcp-check",
];

fn check_not_enabled(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        let is_checked = |server: &ServerSpec| server.check.enabled;
        if proxy.spec.servers.iter().any(is_checked) || proxy.spec.default_servers.iter().any(is_checked) {
            continue;
        }
        let defines = |line: &&Line| match line.keyword() {
            "option" => CHECK_OPTIONS.contains(&line.text(1)),
            "http-check" | "tcp-check" | "external-check" => true,
            _ => false,
        };
        if let Some(line) = proxy.lines.iter().find(defines) {
            let message = format!("no server of {} '{}' has 'check': none is checked", proxy.noun(), proxy.name());
            findings.add(line.whole(), message);
        }
    }
}

/// Options of `server` lines that only checks use.
const CHECK_SETTINGS: [&str; 18] = [
    "inter",
    "fastinter",
    "downinter",
    "rise",
    "fall",
    "port",
    "check-ssl",
    "check-sni",
    "check-sni-auto",
    "check-alpn",
    "check-proto",
    "check-send-proxy",
    "check-via-socks4",
    "check-reuse-pool",
    "check-pool-conn-name",
    "observe",
    "on-error",
    "error-limit",
];

fn check_setting(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        for (server, line) in servers(proxy) {
            let check = &server.check;
            if check.enabled || check.agent.enabled || check.track.is_some() || line.words.iter().any(is_check) {
                continue;
            }
            if let Some((name, span)) = option(line, &CHECK_SETTINGS) {
                let message = format!("'{name}' has no effect: server '{}' has no 'check'", server.name.value);
                findings.add(span, message);
            }
        }
    }
}

/// Whether a word switches checks on or off: settings are then kept for the time that they are needed.
fn is_check(word: &config::document::Word) -> bool {
    matches!(word.text.as_str(), "check" | "no-check" | "agent-check" | "no-agent-check")
}

fn agent_setting(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        for (server, line) in servers(proxy) {
            if server.check.agent.enabled || option(line, &["no-agent-check"]).is_some() {
                continue;
            }
            if let Some((name, span)) = option(line, &["agent-addr", "agent-inter", "agent-port", "agent-send"]) {
                let message = format!("'{name}' has no effect: server '{}' has no 'agent-check'", server.name.value);
                findings.add(span, message);
            }
        }
    }
}

fn queue_limit(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        for (server, line) in servers(proxy) {
            let is_limited = server.maxconn.is_some_and(|most| most > 0) || server.limits.minconn.is_some();
            if let (false, Some((name, span))) = (is_limited, option(line, &["maxqueue", "strict-maxconn"])) {
                let message = format!("'{name}' has no effect: server '{}' has no 'maxconn'", server.name.value);
                findings.add(span, message);
            }
        }
    }
}

fn fullconn(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        let moves = |server: &ServerSpec| server.limits.minconn.is_some() || server.balance.slowstart.is_some();
        if proxy.spec.servers.iter().any(moves) || proxy.spec.default_servers.iter().any(moves) {
            continue;
        }
        if let Some(line) = proxy.own(&["fullconn"]).last() {
            let message =
                format!("'fullconn' has no effect: no server of {} '{}' has 'minconn'", proxy.noun(), proxy.name());
            findings.add(line.whole(), message);
        }
    }
}

fn hash_type(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        let hashes = !matches!(
            proxy.spec.balance,
            BalanceSpec::RoundRobin | BalanceSpec::StaticRr | BalanceSpec::LeastConn | BalanceSpec::First
        );
        if let (false, Some(line)) = (hashes, proxy.own(&["hash-type"]).last()) {
            let message = "'hash-type' has no effect: the balance algorithm hashes nothing";
            findings.add(line.whole(), message);
        }
    }
}

fn resolvers(model: &Model<'_>, findings: &mut Findings) {
    for proxy in with_servers(model) {
        for (server, line) in servers(proxy) {
            let is_ip = matches!(server.address.value, AddressSpec::Inet { host: HostSpec::Ip(_), .. });
            if let (true, Some((_, span))) = (is_ip, option(line, &["resolvers"])) {
                let message = format!("'resolvers' has no effect: server '{}' has an IP address", server.name.value);
                findings.add(span, message);
            }
        }
    }
}

fn without_address(model: &Model<'_>, findings: &mut Findings) {
    // The runtime API may set an address.
    if !model.spec.global.runtime.sockets.is_empty() || model.has_scripts() {
        return;
    }
    for proxy in with_servers(model).filter(|proxy| proxy.spec.kind != ProxyKind::Frontend) {
        for (server, line) in servers(proxy) {
            let has_name = matches!(server.address.value, AddressSpec::Inet { host: HostSpec::Name(_), .. });
            let methods = &server.connecting.initial_address;
            let has_none = !methods.is_empty() && methods.iter().all(|method| *method == InitialAddress::None);
            if has_name && has_none && server.connecting.resolving.section.is_none() {
                let span = option(line, &["init-addr"]).map_or(line.whole(), |(_, span)| span);
                let message = format!(
                    "server '{}' never has an address: 'init-addr none' without 'resolvers'",
                    server.name.value
                );
                findings.add(span, message);
            }
        }
    }
}
