//! Changes of a server's parameters in its saved state: name, port, check addresses. Must never apply a change.

use std::net::IpAddr;

use super::{Server, ServerAddress, ServerPort};
use live::saved_state::SavedState;

/// The changes, and HAProxy's message about an inapplicable state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The host name that replaces the configured one.
    pub renamed: Option<Box<str>>,
    /// The host of its SRV record.
    pub host: Option<Box<str>>,
    pub port: Option<u16>,
    /// Address and port of its checks.
    pub check: Target,
    /// Address and port of its agent.
    pub agent: Target,
    /// Why a part was not applied.
    pub left_out: Option<String>,
}

/// An address and a port; `None` for the configured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Target {
    pub address: Option<IpAddr>,
    pub port: Option<u16>,
}

/// Returns the configured addresses and ports of the checks and of the agent, as in "show servers state"; those of the
/// agent default to those of the checks.
pub fn configured_targets(server: &Server) -> (Target, Target) {
    let check = server.check.as_ref().map_or_else(Target::default, |check| Target {
        address: match check.address {
            Some(ServerAddress::Inet { ip, .. }) => Some(ip),
            _ => None,
        },
        port: check.port,
    });
    let agent = server
        .agent
        .as_ref()
        .map_or(check, |agent| Target { address: agent.address.or(check.address), port: Some(agent.port) });
    (check, agent)
}

impl Target {
    /// Parses a saved target, if it differs from the configured one.
    fn read(
        address: Option<&str>,
        port: Option<&str>,
        configured: Self,
        missing: Option<&str>,
    ) -> Result<Self, String> {
        let same_address = configured.address.map(|ip| ip.to_string());
        let same_port = configured.port.map(|port| port.to_string());
        let address = address.filter(|text| Some(*text) != same_address.as_deref());
        let port = port.filter(|text| Some(*text) != same_port.as_deref());
        if let (Some(missing), true) = (missing, address.is_some() || port.is_some()) {
            return Err(missing.to_owned());
        }
        let address = address.map(|text| text.parse().map_err(|_| format!("invalid addr '{text}'"))).transpose()?;
        let port = match port.map(str::parse::<i64>) {
            None => None,
            Some(Err(_)) => return Err("provided port is not an integer".to_owned()),
            Some(Ok(port)) => Some(u16::try_from(port).map_err(|_| "provided port is invalid".to_owned())?),
        };
        Ok(Self { address, port })
    }
}

impl Changes {
    /// Returns the changes of a server in a saved state.
    pub fn of(server: &Server, saved: &SavedState) -> Self {
        let mut changes = Self::default();
        changes.left_out = changes.fill(server, saved).err();
        changes
    }

    fn fill(&mut self, server: &Server, saved: &SavedState) -> Result<(), String> {
        let service = server.host.as_deref().filter(|host| host.starts_with('_'));
        // Without a name nothing was resolved.
        match (saved.service.as_deref().filter(|_| saved.fqdn.is_some()), service) {
            (Some(_), None) => {
                return Err(format!("no SRV resolution for server '{}'. Previous state not applied", server.name));
            }
            (Some(then), Some(now)) if !then.eq_ignore_ascii_case(now) => {
                return Err(format!(
                    "SRV record mismatch between configuration ('{now}') and state file ('{then}) for server '{}'. \
                     Previous state not applied",
                    server.name
                ));
            }
            (Some(_), Some(_)) => self.host.clone_from(&saved.fqdn),
            (None, Some(_)) => {}
            (None, None) => {
                let is_followed = server.resolving.is_some() && saved.admin.renamed;
                self.renamed = saved.fqdn.clone().filter(|name| is_followed && server.host.as_deref() != Some(name));
            }
        }
        self.port = saved.port.filter(|_| takes_port(&server.address));
        let (check, agent) = configured_targets(server);
        let (written, none) = (&saved.targets, |missing, has: bool| (!has).then_some(missing));
        let on = |enabled: Option<bool>| enabled != Some(false);
        let has = (server.check.is_some() && on(saved.checked), server.agent.is_some() && on(saved.asked));
        let missing = none("health checks are not enabled on this server", has.0);
        self.check = Target::read(written.check_address.as_deref(), written.check_port.as_deref(), check, missing)?;
        let missing = none("agent checks are not enabled on this server", has.1);
        self.agent = Target::read(written.agent_address.as_deref(), written.agent_port.as_deref(), agent, missing)?;
        Ok(())
    }
}

/// Whether a saved port applies. A port below the client's cannot be distinguished from a high one in a state file.
fn takes_port(address: &ServerAddress) -> bool {
    matches!(
        address,
        ServerAddress::Inet { port: ServerPort::Exact(_) | ServerPort::Offset(0..), .. }
            | ServerAddress::Unresolved { port: ServerPort::Exact(_) }
    )
}

/// Returns the address of a server with another port.
pub fn with_port(address: &ServerAddress, port: u16) -> ServerAddress {
    let moved = |old: ServerPort| match old {
        ServerPort::Exact(_) => ServerPort::Exact(port),
        ServerPort::Offset(_) => ServerPort::Offset(i32::from(port)),
    };
    match address {
        ServerAddress::Inet { ip, port } => ServerAddress::Inet { ip: *ip, port: moved(*port) },
        ServerAddress::Unresolved { port } => ServerAddress::Unresolved { port: moved(*port) },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::{backend, compiled, server, spec};
    use config::spec::{AddressSpec, Family, HostSpec, PortSpec, SocketKind};
    use live::ServerPlace;
    use live::saved_state::entries;

    /// The changes of a server with that host, from fields starting with the name.
    fn changes(host: &str, checked: bool, admin: u32, fields: &str) -> Changes {
        changes_of((host, checked), &format!("{admin} 1 1 4 1 0 0 6"), fields)
    }

    fn changes_of((host, checked): (&str, bool), states: &str, fields: &str) -> Changes {
        let mut proxy = backend("be");
        let ip = host.parse().map(HostSpec::Ip).unwrap_or_else(|_| HostSpec::Name(host.to_owned()));
        let (family, kind) = (Family::Unspecified, SocketKind::Stream);
        let address = AddressSpec::Inet { host: ip, family, port: PortSpec::Exact(80), kind, multipath: false };
        let mut written = server("s1", address);
        written.connecting.initial_address = vec![config::spec::InitialAddress::None];
        written.check.enabled = checked;
        written.check.port = Some(70);
        proxy.servers = vec![written];
        let program = compiled(&spec(vec![proxy]));
        let text = format!("1\n2 be 1 s1 127.0.0.1 2 {states} 0 0 0 {fields}\n");
        let saved = entries(text.as_bytes(), |_, _| true).unwrap()[0].state().unwrap();
        Changes::of(program.server_at(ServerPlace { proxy: 0, server: 0 }).unwrap(), &saved)
    }

    #[test]
    fn ports_and_targets_of_checks_are_taken_over() {
        let to = |address: &str, port| Target { address: address.parse().ok(), port };
        let taken = changes("127.0.0.1", true, 0, "- 81 - 0 8080 ::1 - 0");
        assert_eq!((taken.port, taken.check, taken.left_out), (Some(81), to("::1", Some(8080)), None));
        assert_eq!(changes("127.0.0.1", true, 0, "- 0 - 0 70 - - 70"), Changes::default(), "nothing differs");
        let rows = [
            (true, "x - - 0", "provided port is not an integer"),
            (true, "70000 - - 0", "provided port is invalid"),
            (true, "0 foo - 0", "invalid addr 'foo'"),
            (true, "0 - 127.0.0.1 0", "agent checks are not enabled on this server"),
            (false, "8080 - - 0", "health checks are not enabled on this server"),
        ];
        for (checked, fields, why) in rows {
            let left = changes("127.0.0.1", checked, 0, &format!("- 81 - 0 {fields}"));
            assert_eq!((left.left_out.as_deref(), left.port), (Some(why), Some(81)), "{fields}");
        }
    }

    #[test]
    fn checks_that_are_switched_off_cannot_be_sent_elsewhere() {
        let left = changes_of(("127.0.0.1", true), "0 1 1 4 1 0 0 2", "- 80 - 0 8080");
        assert_eq!(left.left_out.as_deref(), Some("health checks are not enabled on this server"));
    }

    #[test]
    fn services_have_to_be_the_same() {
        let none = "no SRV resolution for server 's1'. Previous state not applied";
        assert_eq!(changes("127.0.0.1", false, 0, "a.b 81 _http._tcp.b").left_out.as_deref(), Some(none));
        assert_eq!(changes("127.0.0.1", false, 0, "- 81 _http._tcp.b").left_out, None);
        let taken = changes("_http._tcp.b", false, 0, "a.b 81 _http._tcp.B");
        assert_eq!((taken.host.as_deref(), taken.port, taken.left_out), (Some("a.b"), Some(81), None));
        let mismatch = changes("_http._tcp.b", false, 0, "a.b 81 _http._tcp.c");
        let why = "SRV record mismatch between configuration ('_http._tcp.b') and state file ('_http._tcp.c) for server \
                   's1'. Previous state not applied";
        assert_eq!((mismatch.host, mismatch.port, mismatch.left_out.as_deref()), (None, None, Some(why)));
    }

    #[test]
    fn a_name_that_an_order_gave_needs_somebody_to_resolve_it() {
        assert_eq!(changes("a.invalid", false, 64, "b.invalid 80 -").renamed, None);
    }
}
