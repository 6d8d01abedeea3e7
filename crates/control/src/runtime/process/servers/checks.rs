//! `set server <backend>/<server>` for health checks and agent checks (management manual, section 9.3). Must never run
//! a check.

use std::net::IpAddr;

use config::text;
use live::Checker;
use live::health::Operation;
use policy::program::{Proxy, Server};

use super::super::super::Call;
use engine::service::transitions;
use engine::worker::Worker;

/// The settings that can be changed.
pub(super) const CHANGES: [&str; 7] =
    ["agent", "agent-addr", "agent-port", "agent-send", "check-addr", "check-port", "health"];

/// Executes the change named by the third word.
pub(super) fn change(call: &mut Call<'_, Worker>, proxy: &Proxy, server: &Server) {
    let state = &call.state.process.live.proxies[proxy.index];
    let has = |checker| state.health(server.index, checker).is_some_and(|health| health.is_enabled());
    // Missing arguments are reported first.
    let names_one = |call: &Call<'_, Worker>| !call.word(4).is_empty();
    match call.word(3) {
        "health" if server.tracking.leader.is_some() => call.refuse("cannot change health on a tracking server."),
        "health" => force(call, proxy, server, Checker::Health),
        "agent" | "agent-send" if !has(Checker::Agent) => {
            call.refuse("agent checks are not enabled on this server.");
        }
        "agent" => force(call, proxy, server, Checker::Agent),
        "agent-send" if server.agent.as_ref().is_some_and(|agent| agent.uri.is_some()) => {
            call.refuse("'agent-send' has no effect: the agent gets an HTTP request ('agent-check http').");
        }
        "agent-send" => {
            let send = text::to_bytes(call.word(4)).into();
            call.state.process.checks.targets.change_agent(server.serial, |orders| orders.send = Some(send));
        }
        "agent-addr" | "agent-port" if names_one(call) && !has(Checker::Agent) => {
            call.warn("agent checks are not enabled on this server");
        }
        "check-addr" | "check-port" if names_one(call) && !has(Checker::Health) => {
            call.warn("health checks are not enabled on this server");
        }
        _ => move_target(call, server),
    }
}

fn force(call: &mut Call<'_, Worker>, proxy: &Proxy, server: &Server, checker: Checker) {
    let operation = match (call.word(4), checker) {
        ("up", _) => Operation::Up,
        ("down", _) => Operation::Down,
        ("stopping", Checker::Health) => Operation::Stopping,
        (_, Checker::Health) => {
            return call.refuse("'set server <srv> health' expects 'up', 'stopping', or 'down'.");
        }
        (_, Checker::Agent) => return call.refuse("'set server <srv> agent' expects 'up' or 'down'."),
    };
    transitions::force(call.state, proxy, server, checker, operation, transitions::Orderer::Cli);
}

/// `agent-addr`, `agent-port`, `check-addr` and `check-port`.
fn move_target(call: &mut Call<'_, Worker>, server: &Server) {
    let what = call.word(3).to_owned();
    let by_address = what.ends_with("-addr");
    let (address, port) = match by_address {
        true => (call.word(4), (call.word(5) == "port").then(|| call.word(6))),
        false => ("", Some(call.word(4))),
    };
    match read(&what, address, port) {
        Err(sentence) => call.warn(&sentence),
        Ok((address, port)) => {
            let change = |orders: &mut engine::check::Orders| {
                orders.address = address.or(orders.address);
                orders.port = port.or(orders.port);
            };
            let probing = &call.state.process.checks.targets;
            match what.starts_with("agent") {
                true => probing.change_agent(server.serial, change),
                false => probing.change_check(server.serial, change),
            }
        }
    }
}

/// Parses an address and a port.
fn read(what: &str, address: &str, port: Option<&str>) -> Result<(Option<IpAddr>, Option<u16>), String> {
    let by_address = what.ends_with("-addr");
    if by_address && address.is_empty() {
        return Err(format!("set server <b>/<s> {what} requires an address and optionally a port."));
    }
    if !by_address && port == Some("") {
        return Err(format!("set server <b>/<s> {what} requires a port."));
    }
    let address = match by_address {
        true => Some(address.parse().map_err(|_| format!("invalid addr '{address}'"))?),
        false => None,
    };
    let port = match port.map(str::parse::<i64>) {
        None => None,
        Some(Err(_)) => return Err("provided port is not an integer".to_owned()),
        Some(Ok(port)) => Some(u16::try_from(port).map_err(|_| "provided port is invalid".to_owned())?),
    };
    Ok((address, port))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn addresses_and_ports_are_read_as_haproxy_reads_them() {
        let ip = |text: &str| Some(text.parse().unwrap());
        let refused = |text: &str| Err(text.to_owned());
        let rows = [
            ("check-port", "", Some("80"), Ok((None, Some(80)))),
            ("check-port", "", Some(""), refused("set server <b>/<s> check-port requires a port.")),
            ("check-port", "", Some("x"), refused("provided port is not an integer")),
            ("agent-port", "", Some("70000"), refused("provided port is invalid")),
            ("agent-addr", "127.0.0.1", None, Ok((ip("127.0.0.1"), None))),
            ("check-addr", "::1", Some("8"), Ok((ip("::1"), Some(8)))),
            ("agent-addr", "x", None, refused("invalid addr 'x'")),
            (
                "agent-addr",
                "",
                None,
                refused("set server <b>/<s> agent-addr requires an address and optionally a port."),
            ),
        ];
        for (what, address, port, expected) in rows {
            assert_eq!(read(what, address, port), expected, "{what} {address} {port:?}");
        }
    }
}
