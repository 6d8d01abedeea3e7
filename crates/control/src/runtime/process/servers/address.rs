//! `set server <backend>/<server> addr` (management manual, section 9.3). Must never touch a connection that is in use.

use std::net::IpAddr;

use policy::program::{Proxy, Server, ServerAddress, ServerPort};

use super::super::super::Call;
use engine::service::cookies::follow_address;
use engine::service::events;
use engine::worker::Worker;

/// A change, or the reason why there is none.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Refused(String),
    Nothing,
    To { ip: IpAddr, port: ServerPort, told: String },
}

/// `addr <ip> [port <port>]`: new connections use the address, idle ones are closed, others are kept.
pub(super) fn change(call: &mut Call<'_, Worker>, proxy: &Proxy, server: &Server) {
    let shared = &call.state.process;
    let port = (call.word(5) == "port").then(|| call.word(6));
    let follows = server.connecting.varies;
    match work_out(&shared.outgoing.address(server), call.word(4), port, follows) {
        Change::Refused(sentence) => call.warn(&sentence),
        Change::Nothing => call.warn("nothing changed"),
        Change::To { ip, port, told } => {
            let address = ServerAddress::Inet { ip, port };
            if let Some(address) = address.of_syslog().filter(|_| server.log.is_some()) {
                shared.log_targets.move_server(proxy.place_of(server), address);
            }
            shared.outgoing.set_address(server, address);
            follow_address(shared, proxy);
            shared.forget_links(server.serial);
            events::moved(shared, proxy, server);
            call.inform(&told);
        }
    }
}

/// Computes the change. `follows`: connections to the server may use the destination address of the client's
/// connection.
fn work_out(now: &ServerAddress, written: &str, port: Option<&str>, follows: bool) -> Change {
    let refused = |sentence: &str| Change::Refused(sentence.to_owned());
    if written.is_empty() {
        return refused("set server <b>/<s> addr requires an address and optionally a port.");
    }
    let Ok(ip) = written.parse::<IpAddr>() else { return Change::Refused(format!("Invalid addr '{written}'")) };
    let &ServerAddress::Inet { ip: old_ip, port: old_port } = now else {
        return refused("Update for the current server address family is only supported through configuration file.");
    };
    let port = match port.map(|port| read_port(port).ok_or(port)) {
        None => old_port,
        Some(Ok(port)) => port,
        Some(Err(port)) => return Change::Refused(format!("problem converting port '{port}' to an int")),
    };
    if !follows && (ip.is_unspecified() || matches!(port, ServerPort::Offset(_))) {
        return refused("An address or a port that follows the client's has to be in the configuration file.");
    }
    let mut told = Vec::new();
    if ip != old_ip {
        told.push(format!("IP changed from '{old_ip}' to '{ip}'"));
    }
    if port != old_port {
        told.push(format!("port changed from '{}' to '{}'", show(old_port), show(port)));
    }
    if told.is_empty() {
        return Change::Nothing;
    }
    Change::To { ip, port, told: format!("{} by 'stats socket command'", told.join(", ")) }
}

/// Parses a port, or with a sign an offset to the destination port of the client's connection.
fn read_port(written: &str) -> Option<ServerPort> {
    if written.starts_with(['+', '-']) {
        let offset = written.parse::<i32>().ok()?;
        return (offset.unsigned_abs() <= u32::from(u16::MAX)).then_some(ServerPort::Offset(offset));
    }
    written.parse().ok().map(ServerPort::Exact)
}

fn show(port: ServerPort) -> String {
    match port {
        ServerPort::Exact(port) => port.to_string(),
        ServerPort::Offset(offset) => format!("{offset:+}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_as_haproxy_tells_them() {
        let at = |ip: &str, port| ServerAddress::Inet { ip: ip.parse().unwrap(), port };
        let fixed = at("127.0.0.1", ServerPort::Exact(80));
        let mapped = at("0.0.0.0", ServerPort::Offset(5));
        let socket = ServerAddress::Unix("/x".into());
        let family = "Update for the current server address family is only supported through configuration file.";
        let follows = "An address or a port that follows the client's has to be in the configuration file.";
        let rows: &[(&ServerAddress, &str, Option<&str>, &str)] = &[
            (&fixed, "", None, "set server <b>/<s> addr requires an address and optionally a port."),
            (&fixed, "x", None, "Invalid addr 'x'"),
            (&fixed, "127.0.0.3:90", None, "Invalid addr '127.0.0.3:90'"),
            (&socket, "127.0.0.1", None, family),
            (&fixed, "127.0.0.1", None, "nothing changed"),
            (&fixed, "127.0.0.1", Some("80"), "nothing changed"),
            (&fixed, "127.0.0.2", None, "IP changed from '127.0.0.1' to '127.0.0.2' by 'stats socket command'"),
            (&fixed, "127.0.0.1", Some("81"), "port changed from '80' to '81' by 'stats socket command'"),
            (
                &fixed,
                "::1",
                Some("81"),
                "IP changed from '127.0.0.1' to '::1', port changed from '80' to '81' by 'stats socket command'",
            ),
            (&fixed, "::1", Some(""), "problem converting port '' to an int"),
            (&fixed, "::1", Some("x"), "problem converting port 'x' to an int"),
            (&fixed, "::1", Some("65536"), "problem converting port '65536' to an int"),
            (&fixed, "::1", Some("+5"), follows),
            (&fixed, "0.0.0.0", None, follows),
            (&mapped, "0.0.0.0", Some("+99999"), "problem converting port '+99999' to an int"),
            (&mapped, "0.0.0.0", Some("9"), "port changed from '+5' to '9' by 'stats socket command'"),
            (&mapped, "0.0.0.0", Some("-9"), "port changed from '+5' to '-9' by 'stats socket command'"),
        ];
        for (now, written, port, expected) in rows {
            let said = match work_out(now, written, *port, **now == mapped) {
                Change::Refused(said) | Change::To { told: said, .. } => said,
                Change::Nothing => "nothing changed".to_owned(),
            };
            assert_eq!(said, *expected, "{written} {port:?}");
        }
    }
}
