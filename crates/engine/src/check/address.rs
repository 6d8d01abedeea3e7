//! The address at which a server is checked (configuration manual, "addr", "port"). Must never open a socket.

use std::net::{IpAddr, SocketAddr};

use policy::check::ServerCheck;
use policy::program::{Server, ServerAddress, ServerPort};
use rt::net::Address;

use crate::outgoing::fixed_address;
use crate::worker::Worker;

/// Returns the address of a server's check. `ip` and `port` are those of a step, which take precedence. `None`: the server has no
/// address yet, or none that a check can use.
pub(super) fn checked_address(
    worker: &Worker,
    server: &Server,
    own: &ServerCheck,
    ip: Option<IpAddr>,
    port: Option<u16>,
) -> Option<Address> {
    let current = worker.process.outgoing.address(server);
    let orders = worker.process.checks.targets.check(server.serial);
    let ordered = orders.address.map(|ip| ServerAddress::Inet { ip, port: ServerPort::Exact(0) });
    let base = ordered.as_ref().or(own.address.as_ref()).unwrap_or(&current);
    let port = port.or(orders.port).or(own.port);
    match (base, ip) {
        (_, Some(ip)) => Some(Address::Inet(SocketAddr::new(ip, port.or_else(|| inet_port(&current))?))),
        (ServerAddress::Inet { ip, .. }, None) => {
            let ip = if ip.is_unspecified() { loopback(*ip) } else { *ip };
            let port = port.or_else(|| inet_port(base).filter(|port| *port > 0)).or_else(|| inet_port(&current))?;
            Some(Address::Inet(SocketAddr::new(ip, port)))
        }
        (other, None) => fixed_address(other),
    }
}

/// Returns the port of an address.
fn inet_port(address: &ServerAddress) -> Option<u16> {
    match address {
        ServerAddress::Inet { port, .. } => Some(port.resolve(0)),
        _ => None,
    }
}

/// A server whose address is the client's destination has none of its own: the loopback address is checked.
fn loopback(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
    }
}
