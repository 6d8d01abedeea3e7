//! Compiles `resolvers` sections, and the name resolution of servers. Must never query a name server.

use super::Compiler;
use super::names::DEFAULT_RESOLVERS;
use crate::program::{AddressChoice, Hold, LinkTls, Nameserver, Resolvers, Resolving};
use crate::rule::{Action, NameLookup, Rules, Wait};
use config::diagnostic::{Diagnostic, Form, Severity};
use config::span::{Span, Spanned};
use config::spec::{
    AddressSpec, Family, HostSpec, NameserverSpec, PortSpec, ProxyKind, ProxySpec, ResolversSpec, ServerSpec,
    SocketKind, Spec,
};
use expression::sample::RulePlace;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use wire::dns::Name;

/// The file with the system's name servers.
const OF_SYSTEM: &str = "/etc/resolv.conf";

/// The port of DNS.
const DOMAIN: u16 = 53;
/// Maximum number of lines read from the file.
const MOST_LINES: usize = 1_000;

impl Compiler<'_> {
    /// Compiles all sections, in order; adds `default` if it is not configured.
    pub(super) fn resolvers(&mut self, spec: &Spec) -> Vec<Resolvers> {
        let mut sections: Vec<Resolvers> =
            spec.sections.resolvers.iter().map(|written| self.resolvers_section(spec, written)).collect();
        if !sections.iter().any(|section| &*section.name == DEFAULT_RESOLVERS)
            && let Ok(nameservers) = self.nameservers_of_system()
            && !nameservers.is_empty()
        {
            let mut section = bare(DEFAULT_RESOLVERS, spec);
            section.nameservers = nameservers;
            sections.push(section);
        }
        sections
    }

    fn resolvers_section(&mut self, spec: &Spec, written: &ResolversSpec) -> Resolvers {
        let mut section = Resolvers {
            payload: written.payload,
            retries: written.retries,
            interval: Duration::from_millis(written.timeout_resolve),
            retry: Duration::from_millis(written.timeout_retry),
            hold: hold(written),
            ..bare(&written.name.value, spec)
        };
        for one in &written.nameservers {
            match one {
                NameserverSpec::Named { name, address, tls } => {
                    let head = format!("'server (null)/{}' : ", name.value);
                    let tls = self.link_tls(tls.as_deref(), &written.name.value, &name.value, name.span, spec, &head);
                    section.nameservers.extend(compile_nameserver(&name.value, &address.value, tls));
                }
                NameserverSpec::OfSystem(span) => match self.nameservers_of_system() {
                    Ok(found) => {
                        // Name servers configured before, with the same name, take precedence.
                        let fresh = |one: &Nameserver| !section.nameservers.iter().any(|other| other.name == one.name);
                        let fresh: Vec<_> = found.into_iter().filter(fresh).collect();
                        section.nameservers.extend(fresh);
                    }
                    Err(reason) => {
                        let message = format!("'parse-resolv-conf': failed to open {OF_SYSTEM}: {reason}.");
                        self.alert(*span, Form::Parsing, message);
                    }
                },
            }
        }
        if section.nameservers.is_empty() {
            let name = &written.name.value;
            let file = self.shared.files.get(written.span.file as usize).map_or("", |file| file.as_str());
            let message = format!("resolvers '{name}' [{file}:{}] has no nameservers configured!", written.span.line);
            self.warn_at(written.span, Form::Bare, message);
        }
        section
    }

    fn warn_at(&mut self, span: Span, form: Form, message: String) {
        self.out.push(Diagnostic::new(Severity::Warning, span, message).with_form(form));
    }

    fn nameservers_of_system(&mut self) -> Result<Vec<Nameserver>, String> {
        let bytes = (self.resolver.file_reader())(OF_SYSTEM).map_err(|error| error.to_string())?;
        Ok(of_system(&String::from_utf8_lossy(&bytes)))
    }

    /// Reports rules that resolve names in an unknown section.
    pub(super) fn check_lookups(&mut self, proxy: &str, rules: &Rules) {
        for (lookup, place) in lookups(rules).filter(|(lookup, _)| lookup.section.is_none()) {
            let span = Span { file: place.file, line: place.line, start: 0, end: 0 };
            let name = &lookup.section_name;
            let message = format!("Proxy '{proxy}': Can't find resolvers section '{name}' for do-resolve action.");
            self.alert(span, Form::Bare, message);
        }
    }

    /// Reports `srv-port` on the line of a server that follows no service.
    fn check_srv_port(&mut self, proxy: &ProxySpec, server: &ServerSpec) {
        let written = &server.connecting.resolving;
        let is_service = match &server.address.value {
            AddressSpec::Inet { host: HostSpec::Name(name), .. } => {
                Name::parse(name).is_some_and(|name| name.is_service())
            }
            _ => false,
        };
        // It may come from `default-server` on another line.
        let is_own = |port: &&Spanned<u16>| (port.span.file, port.span.line) == (server.span.file, server.span.line);
        let Some(port) = written.srv_port.as_ref().filter(is_own) else { return };
        if !is_service || written.section.is_none() {
            let head = format!("'server {}/{}' : ", proxy.name.value, server.name.value);
            let why = "'srv-port' requires 'resolvers' and a name of a service, which begins with '_'.";
            self.alert(port.span, Form::Placed, format!("{head}{why}"));
        }
    }

    /// Compiles the run-time name resolution of a server; `None` if it has none.
    pub(super) fn resolving(&mut self, spec: &Spec, proxy: &ProxySpec, server: &ServerSpec) -> Option<Resolving> {
        self.check_srv_port(proxy, server);
        let written = &server.connecting.resolving;
        let wanted = written.section.as_ref()?;
        let sections = &spec.sections.resolvers;
        let section = match self.shared.indexes.resolvers(spec, &wanted.value) {
            Some(section) => section,
            // The implicit section follows the configured ones.
            None if wanted.value == DEFAULT_RESOLVERS
                && self.nameservers_of_system().is_ok_and(|found| !found.is_empty()) =>
            {
                sections.len()
            }
            None => {
                let kind = if proxy.kind == ProxyKind::Listen { "proxy" } else { "backend" };
                let message = format!(
                    "{kind} '{}', server '{}': unable to find required resolvers '{}'",
                    proxy.name.value, server.name.value, wanted.value
                );
                self.alert(wanted.span, Form::Bare, message);
                return None;
            }
        };
        let AddressSpec::Inet { host, .. } = &server.address.value else { return None };
        let name = match host {
            HostSpec::Name(name) => match Name::parse(name) {
                Some(name) => Some(name),
                None => {
                    let message = format!(
                        "'server {}/{}' : Can't create DNS resolution for server '{}'",
                        proxy.name.value, server.name.value, server.name.value
                    );
                    self.alert(server.address.span, Form::Parsing, message);
                    return None;
                }
            },
            HostSpec::Any | HostSpec::Ip(_) => None,
        };
        Some(Resolving {
            section,
            name,
            choice: AddressChoice {
                prefers_ipv4: written.prefers_ipv4,
                networks: written.networks.as_slice().into(),
                allows_duplicates: written.allows_duplicates,
            },
            ignores_weight: written.ignores_weight,
            srv_port: written.srv_port.as_ref().map(|port| port.value),
        })
    }
}

/// Returns the rules that resolve names.
fn lookups(rules: &Rules) -> impl Iterator<Item = (&NameLookup, RulePlace)> {
    let sets = rules.http_request.iter().chain(&rules.request_content);
    sets.filter_map(|rule| match &rule.action {
        Action::Wait(Wait::Lookup(lookup)) => Some((&**lookup, rule.place)),
        _ => None,
    })
}

/// Returns a section with default values.
fn bare(name: &str, spec: &Spec) -> Resolvers {
    let second = Duration::from_secs(1);
    Resolvers {
        name: name.into(),
        nameservers: Vec::new(),
        payload: 512,
        retries: 3,
        interval: second,
        retry: second,
        hold: Hold {
            valid: 10 * second,
            obsolete: Duration::ZERO,
            nx: 30 * second,
            refused: 30 * second,
            timeout: 30 * second,
            other: 30 * second,
        },
        families: spec.global.dns_families,
    }
}

fn hold(written: &ResolversSpec) -> Hold {
    let written = &written.hold;
    Hold {
        valid: Duration::from_millis(written.valid),
        obsolete: Duration::from_millis(written.obsolete),
        nx: Duration::from_millis(written.nx),
        refused: Duration::from_millis(written.refused),
        timeout: Duration::from_millis(written.timeout),
        other: Duration::from_millis(written.other),
    }
}

/// Compiles a name server. The parser has rejected names and UNIX sockets.
fn compile_nameserver(name: &str, address: &AddressSpec, tls: Option<LinkTls>) -> Option<Nameserver> {
    let AddressSpec::Inet { host, family, port: PortSpec::Exact(port), kind, .. } = address else { return None };
    let ip = match host {
        HostSpec::Ip(ip) => *ip,
        HostSpec::Any if *family == Family::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        HostSpec::Any => IpAddr::V4(Ipv4Addr::LOCALHOST),
        HostSpec::Name(_) => return None,
    };
    let over_tcp = *kind == SocketKind::Stream;
    Some(Nameserver { name: name.into(), address: SocketAddr::new(ip, *port), over_tcp, tls })
}

/// Parses the name servers of the system's file, without duplicates, named by their addresses.
fn of_system(text: &str) -> Vec<Nameserver> {
    let mut found: Vec<Nameserver> = Vec::new();
    for line in text.lines().take(MOST_LINES) {
        let Some(rest) = line.strip_prefix("nameserver") else { continue };
        let Some(word) = rest.split_ascii_whitespace().next().filter(|_| rest.starts_with([' ', '\t'])) else {
            continue;
        };
        // The zone of a link-local address is dropped.
        let bare = word.split('%').next().unwrap_or_default();
        let Ok(ip) = bare.parse::<IpAddr>() else { continue };
        if !found.iter().any(|known| *known.name == *word) {
            let address = SocketAddr::new(ip, DOMAIN);
            found.push(Nameserver { name: word.into(), address, over_tcp: false, tls: None });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::of_system;

    #[test]
    fn the_systems_file() {
        let text = "# nameserver 1.1.1.1\nnameserver 10.0.0.1\nsearch x\nnameserver\t::1 # two\n  nameserver 9.9.9.9\n\
                    nameservers 8.8.8.8\nnameserver 10.0.0.1\nnameserver x\nnameserver";
        let found: Vec<_> = of_system(text).iter().map(|one| (one.name.to_string(), one.address.to_string())).collect();
        let expected = [("10.0.0.1", "10.0.0.1:53"), ("::1", "[::1]:53")];
        assert_eq!(found, expected.map(|(name, at)| (name.to_owned(), at.to_owned())));
    }
}
