//! Resolves the addresses of the configuration. Must never open a socket.

use super::Compiler;
use crate::program::{BindAddress, LogAddress, SYSLOG, ServerAddress, ServerPort};
use config::spec::{AddressSpec, Family, HostSpec, InitialAddress, PortSpec, SocketKind};
use config::text;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Length in bytes of an abstract name that fills the whole field: `sun_path` without the leading NUL.
const ABSTRACT_LENGTH: usize = 107;

impl Compiler<'_> {
    /// Returns the address of a host; the error is the name that cannot be resolved.
    fn host<'a>(&mut self, host: &'a HostSpec, family: Family) -> Result<IpAddr, &'a str> {
        match host {
            HostSpec::Any if family == Family::V6 => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            HostSpec::Any => Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            HostSpec::Ip(ip) => Ok(*ip),
            HostSpec::Name(name) => self.resolver.resolve(name, family).map_err(|_| name.as_str()),
        }
    }

    /// Returns a server's initial address by the methods of `init-addr`. `last` is the address in its state file;
    /// `is_followed`: the name is resolved at run time.
    pub(super) fn initial_address(
        &mut self,
        written: &AddressSpec,
        last: Option<IpAddr>,
        methods: &[InitialAddress],
        is_followed: bool,
    ) -> Result<ServerAddress, String> {
        if let AddressSpec::Descriptor { fd, .. } = written
            && !self.resolver.has_descriptor(*fd)
        {
            return Err(format!("cannot use file descriptor '{fd}' : Bad file descriptor."));
        }
        let AddressSpec::Inet { host: HostSpec::Name(name), family, port, kind, multipath } = written else {
            return self.server_address(written).map_err(|host| format!("could not resolve address '{host}'."));
        };
        let with = |host| AddressSpec::Inet { host, family: *family, port: *port, kind: *kind, multipath: *multipath };
        let methods = effective(methods, is_followed);
        let is_service = is_service(name);
        for method in methods {
            let host = match method {
                InitialAddress::Last => match last {
                    Some(ip) => HostSpec::Ip(ip),
                    None => continue,
                },
                // The system's resolver does not support SRV records.
                InitialAddress::Libc if is_service => continue,
                InitialAddress::Libc => HostSpec::Name(name.clone()),
                InitialAddress::None => {
                    return Ok(ServerAddress::Unresolved { port: unresolved_port(*port, is_service) });
                }
                InitialAddress::Address(ip) => HostSpec::Ip(*ip),
            };
            if let Ok(address) = self.server_address(&with(host)) {
                return Ok(address);
            }
        }
        Err(if methods.contains(&InitialAddress::Libc) && !is_service {
            format!("could not resolve address '{name}'.")
        } else {
            format!("no method found to resolve address '{name}'.")
        })
    }

    pub(super) fn server_address<'a>(&mut self, written: &'a AddressSpec) -> Result<ServerAddress, &'a str> {
        Ok(match written {
            AddressSpec::Inet { host, family, port, .. } => ServerAddress::Inet {
                ip: self.host(host, *family)?,
                port: match *port {
                    // Port 0 means the client's port.
                    PortSpec::Exact(0) | PortSpec::None => ServerPort::Offset(0),
                    PortSpec::Exact(port) | PortSpec::Range(port, _) => ServerPort::Exact(port),
                    PortSpec::Offset(offset) => ServerPort::Offset(offset),
                },
            },
            AddressSpec::Unix { path, .. } => ServerAddress::Unix(text::to_os_string(path).into()),
            AddressSpec::Abstract { name, unpadded, .. } => ServerAddress::Abstract(abstract_name(name, *unpadded)),
            AddressSpec::Descriptor { fd, .. } => ServerAddress::Carrier(*fd),
            AddressSpec::Reverse { .. } => ServerAddress::Reversed,
        })
    }

    pub(super) fn bind_address<'a>(&mut self, written: &'a AddressSpec) -> Result<BindAddress, &'a str> {
        Ok(match written {
            AddressSpec::Inet { host, family, port, .. } => {
                let address = SocketAddr::new(self.host(host, *family)?, exact(*port).unwrap_or(0));
                if written.is_quic() { BindAddress::Quic(address) } else { BindAddress::Inet(address) }
            }
            AddressSpec::Unix { path, .. } => BindAddress::Unix(text::to_os_string(path).into()),
            AddressSpec::Abstract { name, unpadded, .. } => BindAddress::Abstract(abstract_name(name, *unpadded)),
            AddressSpec::Descriptor { fd, kind, is_carrier } => {
                BindAddress::Descriptor { fd: *fd, kind: *kind, is_carrier: *is_carrier }
            }
            // Resolved where the servers are known.
            AddressSpec::Reverse { server } => return Err(server),
        })
    }

    pub(super) fn log_address<'a>(&mut self, written: &'a AddressSpec) -> Result<LogAddress, &'a str> {
        Ok(match written {
            AddressSpec::Inet { host, family, port, .. } => {
                LogAddress::Inet(SocketAddr::new(self.host(host, *family)?, exact(*port).unwrap_or(SYSLOG)))
            }
            AddressSpec::Unix { path, .. } => LogAddress::Unix(text::to_os_string(path).into()),
            AddressSpec::Abstract { name, unpadded, .. } => LogAddress::Abstract(abstract_name(name, *unpadded)),
            AddressSpec::Descriptor { fd, .. } => LogAddress::Descriptor(*fd),
            AddressSpec::Reverse { server } => return Err(server),
        })
    }
}

/// Returns the methods of `init-addr`, or the default ones.
fn effective(methods: &[InitialAddress], is_followed: bool) -> &[InitialAddress] {
    match methods {
        // A server whose name is resolved at run time may start without an address.
        [] if is_followed => &[InitialAddress::Last, InitialAddress::Libc, InitialAddress::None],
        [] => &[InitialAddress::Last, InitialAddress::Libc],
        methods => methods,
    }
}

/// Returns the name of a server without an address that the system's resolver could not resolve; `None` if it has an
/// address, or if no address was required.
pub(super) fn unresolved<'a>(
    address: &ServerAddress,
    written: &'a AddressSpec,
    methods: &[InitialAddress],
    is_followed: bool,
) -> Option<&'a str> {
    let AddressSpec::Inet { host: HostSpec::Name(name), .. } = written else { return None };
    let mut tried = effective(methods, is_followed).iter().take_while(|method| **method != InitialAddress::None);
    let is_asked = !is_service(name) && tried.any(|method| *method == InitialAddress::Libc);
    (is_asked && matches!(address, ServerAddress::Unresolved { .. })).then_some(name.as_str())
}

/// Whether a name is resolved to SRV records.
fn is_service(name: &str) -> bool {
    name.starts_with('_')
}

/// Returns the port of a server without an address. With SRV records the port is part of the record.
fn unresolved_port(port: PortSpec, is_service: bool) -> ServerPort {
    match port {
        PortSpec::Exact(port) | PortSpec::Range(port, _) => ServerPort::Exact(port),
        PortSpec::None if is_service => ServerPort::Exact(0),
        PortSpec::None => ServerPort::Offset(0),
        PortSpec::Offset(offset) => ServerPort::Offset(offset),
    }
}

fn exact(port: PortSpec) -> Option<u16> {
    match port {
        PortSpec::Exact(port) | PortSpec::Range(port, _) => Some(port),
        PortSpec::Offset(_) | PortSpec::None => None,
    }
}

fn abstract_name(name: &str, unpadded: bool) -> Vec<u8> {
    let mut bytes = text::to_bytes(name).into_owned();
    bytes.truncate(ABSTRACT_LENGTH);
    if !unpadded {
        bytes.resize(ABSTRACT_LENGTH, 0);
    }
    bytes
}

/// Formats an address as in the configuration, for messages about lines whose words are not available.
pub(super) fn written(address: &AddressSpec) -> String {
    match address {
        AddressSpec::Inet { host, port, kind, family, .. } => {
            let prefix = match (kind, family) {
                (SocketKind::Quic, Family::V6) => "quic6@",
                (SocketKind::Quic, _) => "quic4@",
                _ => "",
            };
            let host = match host {
                HostSpec::Any => "*".to_owned(),
                HostSpec::Ip(ip) => ip.to_string(),
                HostSpec::Name(name) => name.clone(),
            };
            match port {
                PortSpec::Exact(port) => format!("{prefix}{host}:{port}"),
                PortSpec::Range(first, last) => format!("{prefix}{host}:{first}-{last}"),
                PortSpec::Offset(offset) => format!("{host}:{offset:+}"),
                PortSpec::None => host,
            }
        }
        AddressSpec::Unix { path, .. } => path.clone(),
        AddressSpec::Abstract { name, .. } => format!("abns@{name}"),
        AddressSpec::Descriptor { fd, is_carrier: true, .. } => format!("sockpair@{fd}"),
        AddressSpec::Descriptor { fd, kind: SocketKind::Quic, .. } => format!("quic+fd@{fd}"),
        AddressSpec::Descriptor { fd, .. } => format!("fd@{fd}"),
        AddressSpec::Reverse { server } => format!("rhttp@{server}"),
    }
}

#[cfg(test)]
mod tests {
    use super::abstract_name;

    #[test]
    fn abstract_names_fill_the_field_unless_told_otherwise() {
        let padded = abstract_name("weir", false);
        assert_eq!((padded.len(), &padded[..6]), (107, &b"weir\0\0"[..]));
        assert_eq!(abstract_name("weir", true), b"weir");
    }
}
