//! Resolves names with the system's resolver while the configuration is compiled, and implements `-dr` for names that
//! do not resolve. Must never be used once connections are accepted: it blocks.

use crate::material;
use base::moment::{WallTime, ZoneName};
use config::spec::{AddressSpec, Family, HostSpec, Spec};
use engine::service::registry::Services;
use expression::record::Record;
use expression::sample::{Probes, ProcessFacts, Transport, Value};
use policy::Resolver;
use policy::registry::Registry;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

/// The system's resolver.
pub struct SystemResolver {
    /// `-4`: IPv4 addresses only.
    pub ipv4_only: bool,
    /// Names of the configuration files.
    pub files: Vec<String>,
    /// Addresses of servers in the previous process, by backend and server.
    pub last_addresses: BTreeMap<(String, String), IpAddr>,
    /// Context for expressions that are evaluated during compilation.
    pub surroundings: ResolveContext,
    /// Built-in services and those of scripts.
    pub services: Services,
}

/// The process and its machine before the process serves.
#[derive(Default)]
pub struct ResolveContext {
    /// Environment of the configuration: `NAME=value`.
    pub environment: Vec<String>,
    pub hostname: String,
}

/// Returns the current time.
fn wall() -> WallTime {
    WallTime::default().saturating_add(rt::clock::since_epoch())
}

impl Probes for ResolveContext {
    fn source(&self) -> Option<SocketAddr> {
        None
    }

    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    fn wall(&self) -> WallTime {
        wall()
    }

    fn random(&self) -> u64 {
        rt::clock::seed()
    }

    fn transport(&self, _: Transport) -> Option<Value<'static>> {
        None
    }

    fn process(&self) -> ProcessFacts<'_> {
        ProcessFacts { pid: std::process::id(), hostname: &self.hostname, ..ProcessFacts::default() }
    }

    fn local_offset(&self, seconds: i64) -> i32 {
        rt::local_offset(seconds)
    }

    fn zone_name(&self, seconds: i64) -> ZoneName {
        rt::zone_name(seconds)
    }

    fn lend_record(&self, with: &mut dyn FnMut(&Record<'_>)) {
        let wall = wall();
        with(&Record {
            accept_date: wall,
            request_date: wall,
            local_offset: rt::local_offset(wall.seconds),
            pid: std::process::id(),
            hostname: &self.hostname,
            frontend: "CFG",
            server: "",
            ..Record::default()
        });
    }

    fn environment(&self, name: &[u8]) -> Option<&[u8]> {
        self.environment.iter().find_map(|line| line.as_bytes().strip_prefix(name)?.strip_prefix(b"="))
    }
}

impl Resolver for SystemResolver {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, String> {
        material::address(host, if self.ipv4_only { Family::V4 } else { family })
    }

    fn user(&mut self, name: &str) -> Option<u32> {
        material::user(name).ok().flatten()
    }

    fn group(&mut self, name: &str) -> Option<u32> {
        material::group(name).ok().flatten()
    }

    fn registry(&self) -> &Registry {
        self.services.registry()
    }

    fn has_descriptor(&mut self, number: i32) -> bool {
        // Without /proc, an error is reported when the descriptor is used.
        let all = Path::new("/proc/self/fd");
        !all.exists() || std::fs::symlink_metadata(all.join(number.to_string())).is_ok()
    }

    fn file_names(&self) -> Vec<String> {
        self.files.clone()
    }

    fn passphrase(&mut self, command: &[String]) -> Result<Vec<u8>, String> {
        material::passphrase(command)
    }

    fn file_reader(&self) -> policy::ReadFile {
        material::file
    }

    fn folder_reader(&self) -> policy::ReadFolder {
        material::folder
    }

    fn host_finder(&self) -> policy::FindHost {
        material::host
    }

    fn probes(&self) -> &dyn Probes {
        &self.surroundings
    }

    fn last_address(&mut self, backend: &str, server: &str) -> Option<IpAddr> {
        if self.last_addresses.is_empty() {
            return None;
        }
        self.last_addresses.get(&(backend.to_owned(), server.to_owned())).copied()
    }

    fn has_namespace(&mut self, name: &str) -> bool {
        material::has_namespace(name)
    }
}

/// A server that starts disabled because its name does not resolve.
pub struct Unresolved {
    /// Its position in the configuration.
    pub span: config::span::Span,
    pub backend: String,
    pub server: String,
    /// The unresolved host name.
    pub host: String,
}

/// `-dr`: disables every server whose name does not resolve, so that the others can start.
pub fn disable_unresolved(spec: &mut Spec, resolver: &mut dyn Resolver) -> Vec<Unresolved> {
    let mut found = Vec::new();
    for proxy in &mut spec.proxies {
        for server in &mut proxy.servers {
            let AddressSpec::Inet { host, family, .. } = &mut server.address.value else { continue };
            let HostSpec::Name(name) = &*host else { continue };
            if resolver.resolve(name, *family).is_err() {
                found.push(Unresolved {
                    span: server.span,
                    backend: proxy.name.value.clone(),
                    server: server.name.value.clone(),
                    host: name.clone(),
                });
                *host = HostSpec::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
                server.disabled = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_addresses_need_no_server_of_names() {
        let resolver = |ipv4_only| SystemResolver {
            ipv4_only,
            files: Vec::new(),
            last_addresses: BTreeMap::new(),
            surroundings: ResolveContext::default(),
            services: Services::default(),
        };
        let mut resolver_of_both = resolver(false);
        assert_eq!(resolver_of_both.resolve("127.0.0.1", Family::Unspecified), Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(resolver_of_both.resolve("127.0.0.1", Family::V6).is_err());
        assert!(resolver(true).resolve("::1", Family::Unspecified).is_err());
    }
}
