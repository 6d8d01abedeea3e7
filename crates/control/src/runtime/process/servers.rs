//! Commands for backends and servers: their state, and changes that last until the process ends (management manual,
//! section 9.3). Must never select a server.

mod added;
mod address;
mod checks;
mod connections;
mod fqdn;
mod name;
pub(super) mod removed;
mod state;

use std::fmt::Write as _;

use config::spec::RuntimeLevel;
use live::{Admin, Checker, HedgeCounts, MirrorCounts, ProxyState};
use policy::program::{Program, Proxy, Server, ServerAddress, ServerPort};

use super::super::call::Anonymization;
use super::super::{Answer, Call, Command, Pending, Run};
use engine::service::transitions::{Orderer, set_admin};
use engine::service::weight;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("show backend", "show backend", "list backends in the current running config", Run::Now(show_backend)),
    Command::new(
        "show servers state",
        "show servers state [<backend>]",
        "dump volatile server information (all or for a single backend)",
        Run::Gradual(show_servers_state),
    ),
    Command::new(
        "show servers conn",
        "show servers conn [<backend>]",
        "dump server connections status (all or for a single backend)",
        Run::Gradual(connections::show),
    ),
    Command::new(
        "show hedges",
        "show hedges [<backend>]",
        "count requests that went to a second server as well (all or for a single backend)",
        Run::Now(show_hedges),
    ),
    Command::new(
        "show mirrors",
        "show mirrors [<backend>]",
        "count copies of requests that went to a backend (all or for a single backend)",
        Run::Now(show_mirrors),
    ),
    Command::new("get weight", "get weight <bk>/<srv>", "report a server's current weight", Run::Now(get_weight)),
    Command::new(
        "set weight",
        "set weight <bk>/<srv>  (DEPRECATED)",
        "change a server's weight (use 'set server' instead)",
        Run::Now(set_weight),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "set server",
        "set server <bk>/<srv> [opts]",
        "change a server's state, weight, address, name or ssl",
        Run::Gradual(set_server_or_name),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "set maxconn server",
        "set maxconn server <bk>/<srv>",
        "change a server's maxconn setting",
        Run::Now(set_maxconn),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "disable server",
        "disable server (DEPRECATED)",
        "disable a server for maintenance (use 'set server' instead)",
        Run::Now(disable),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "disable agent",
        "disable agent",
        "disable agent checks",
        Run::Now(|call| enable_check(call, Checker::Agent, false)),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "disable health",
        "disable health",
        "disable health checks",
        Run::Now(|call| enable_check(call, Checker::Health, false)),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "enable agent",
        "enable agent",
        "enable agent checks",
        Run::Now(|call| enable_check(call, Checker::Agent, true)),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "enable health",
        "enable health",
        "enable health checks",
        Run::Now(|call| enable_check(call, Checker::Health, true)),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "enable server",
        "enable server  (DEPRECATED)",
        "enable a disabled server (use 'set server' instead)",
        Run::Now(enable),
    )
    .at(RuntimeLevel::Admin),
    Command::new("add server", "add server <bk>/<srv>", "create a new server", Run::Now(added::add))
        .at(RuntimeLevel::Admin),
    Command::new("del server", "del server <bk>/<srv>", "remove a dynamically added server", Run::Now(removed::delete))
        .at(RuntimeLevel::Admin),
];

const STATE_HEADER: &str = "# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight \
                            srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health \
                            srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord \
                            srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n";

/// A backend and one of its servers.
type BackendServer<'a> = (&'a Proxy, &'a Server);

/// Finds `<backend>/<server>`.
pub(super) fn find<'a>(program: &'a Program, name: &str) -> Result<BackendServer<'a>, &'static str> {
    let (backend, server) = split(name)?;
    let proxy = find_backend(program, backend)?;
    program.server_called(proxy, server).map(|server| (proxy, server)).ok_or("No such server.")
}

/// Whether a word names an object: by its name, or by a sharp and its id.
fn is_called(word: &str, name: &str, id: u32) -> bool {
    *name == *word || word.strip_prefix('#').is_some_and(|number| number.parse() == Ok(id))
}

/// Splits `<backend>/<server>`.
fn split(name: &str) -> Result<(&str, &str), &'static str> {
    let names = name.split_once('/').filter(|(_, server)| !server.is_empty());
    names.ok_or("Require 'backend/server'.")
}

pub(super) fn find_backend<'a>(program: &'a Program, name: &str) -> Result<&'a Proxy, &'static str> {
    program.backend_called(name).ok_or("No such backend.")
}

/// Returns the backend that a word names, or all if it is empty.
fn backends<'a>(program: &'a Program, name: &str) -> Result<Vec<&'a Proxy>, &'static str> {
    let backends = program.proxies.iter().map(|proxy| &**proxy).filter(|proxy| proxy.backend.is_some());
    let found: Vec<&Proxy> =
        backends.filter(|proxy| name.is_empty() || is_called(name, &proxy.name, proxy.id)).collect();
    if found.is_empty() && !name.is_empty() { Err("Can't find backend.") } else { Ok(found) }
}

fn live<'a>(worker: &'a Worker, proxy: &Proxy) -> &'a ProxyState {
    &worker.process.live.proxies[proxy.index]
}

fn show_backend(call: &mut Call<'_, Worker>) {
    call.answer.push("# name\n");
    for proxy in call.generation.program.proxies.iter().filter(|proxy| proxy.backend.is_some()) {
        let _ = writeln!(call.answer, "{}", proxy.name);
    }
}

/// Writes a line for each server of the backends that the third word selects.
async fn each_server(
    call: &mut Call<'_, Worker>,
    header: &str,
    write: fn(&mut Answer, &Worker, &Proxy, &Server, Anonymization),
) -> Result<(), super::super::Disconnected> {
    let found = match backends(&call.generation.program, call.word(3)) {
        Ok(found) => found,
        Err(sentence) => {
            call.refuse(sentence);
            return Ok(());
        }
    };
    call.answer.push(header);
    for proxy in found {
        for server in proxy.backend.iter().flat_map(|backend| &backend.servers) {
            write(call.answer, call.state, proxy, server, call.conversation.anonymous);
            call.answer.relieve().await?;
        }
    }
    Ok(())
}

fn show_servers_state<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let header = format!("1\n{STATE_HEADER}");
        each_server(call, &header, state::write_state).await
    })
}

/// Returns the host and the port of a server, in the format of these dumps.
fn place(worker: &Worker, server: &Server) -> (String, u16) {
    match &*worker.process.outgoing.address(server) {
        ServerAddress::Inet { ip, port: ServerPort::Exact(port) } => (ip.to_string(), *port),
        ServerAddress::Inet { ip, port: ServerPort::Offset(offset) } => (ip.to_string(), *offset as u16),
        ServerAddress::Unresolved { port: ServerPort::Exact(port) } => ("-".to_owned(), *port),
        ServerAddress::Unix(_)
        | ServerAddress::Abstract(_)
        | ServerAddress::Carrier(_)
        | ServerAddress::Reversed
        | ServerAddress::Unresolved { .. } => ("-".to_owned(), 0),
    }
}

/// Shows the counters of `hedge-requests`, a line for each backend that has it.
fn show_hedges(call: &mut Call<'_, Worker>) {
    let found = match backends(&call.generation.program, call.word(2)) {
        Ok(found) => found,
        Err(sentence) => return call.refuse(sentence),
    };
    call.answer.push("# name begun won failed over_budget without_server delay_us\n");
    for proxy in found {
        let state = live(call.state, proxy);
        let Some(counts) = state.hedge_counts() else { continue };
        let delay = state.hedge_delay().map_or_else(|| "-".to_owned(), |delay| delay.as_micros().to_string());
        let HedgeCounts { begun, won, failed, over_budget, without_server } = counts;
        let _ = writeln!(call.answer, "{} {begun} {won} {failed} {over_budget} {without_server} {delay}", proxy.name);
    }
}

/// Shows the counters of `http-request mirror`, a line for each backend that received mirrored requests.
fn show_mirrors(call: &mut Call<'_, Worker>) {
    let found = match backends(&call.generation.program, call.word(2)) {
        Ok(found) => found,
        Err(sentence) => return call.refuse(sentence),
    };
    call.answer.push("# name begun answered failed lagged dropped\n");
    for proxy in found {
        let counts = live(call.state, proxy).mirror_counts();
        if counts == MirrorCounts::default() {
            continue;
        }
        let MirrorCounts { begun, answered, failed, lagged, dropped } = counts;
        let _ = writeln!(call.answer, "{} {begun} {answered} {failed} {lagged} {dropped}", proxy.name);
    }
}

/// Runs `action` with the server that a word names, or answers with an error.
fn with_server(
    call: &mut Call<'_, Worker>,
    word: usize,
    action: impl FnOnce(&mut Call<'_, Worker>, BackendServer<'_>),
) {
    match find(&call.generation.program, call.word(word)) {
        Ok(found) => action(call, found),
        Err(sentence) => call.refuse(sentence),
    }
}

fn get_weight(call: &mut Call<'_, Worker>) {
    with_server(call, 2, |call, (proxy, server)| {
        let weight = live(call.state, proxy).setting(server.index).map_or(0, |setting| setting.weight);
        let _ = writeln!(call.answer, "{weight} (initial {})", server.weight);
    });
}

fn change_weight(call: &mut Call<'_, Worker>, proxy: &Proxy, server: &Server, word: usize) {
    match weight::parse(call.word(word), server.weight) {
        Ok(weight) if weight != 0 && weight != server.weight && !live(call.state, proxy).heeds_weights() => {
            call.refuse("Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.");
        }
        Ok(weight) => weight::set(call.state, proxy, server, weight, Orderer::Cli),
        Err(sentence) => call.refuse(sentence),
    }
}

fn set_weight(call: &mut Call<'_, Worker>) {
    with_server(call, 2, |call, (proxy, server)| change_weight(call, proxy, server, 3));
}

/// A change of the FQDN is executed on the worker that resolves it.
fn set_server_or_name<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    if call.word(3) == "fqdn" {
        return fqdn::change(call);
    }
    Box::pin(async move {
        set_server(call);
        Ok(())
    })
}

fn set_server(call: &mut Call<'_, Worker>) {
    const USAGE: &str = "usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | agent-send | \
                         check-addr | check-port | fqdn | health | name | ssl | state | weight";
    with_server(call, 2, |call, (proxy, server)| match (call.word(3), call.word(4)) {
        ("weight", _) => change_weight(call, proxy, server, 4),
        ("addr", _) => address::change(call, proxy, server),
        ("state", "ready") => set_admin(call.state, proxy, server, Admin::Ready, Orderer::Cli),
        ("state", "maint") => set_admin(call.state, proxy, server, Admin::Maintenance, Orderer::Cli),
        ("state", "drain") => set_admin(call.state, proxy, server, Admin::Drain, Orderer::Cli),
        ("state", _) => call.refuse("'set server <srv> state' expects 'ready', 'drain' and 'maint'."),
        (what, _) if checks::CHANGES.contains(&what) => checks::change(call, proxy, server),
        ("name", _) => name::change(call, proxy, server),
        ("ssl", _) => switch_tls(call, server),
        _ => call.refuse(USAGE),
    });
}

/// `set server <backend>/<server> ssl`.
fn switch_tls(call: &mut Call<'_, Worker>, server: &Server) {
    let Some(tls) = &server.connecting.tls else {
        call.refuse("'set server <srv> ssl' cannot be set.  default-server should define ssl settings");
        return;
    };
    match call.word(4) {
        word @ ("on" | "off") => {
            tls.traffic.set(word == "on");
            // Connections made with the other setting are not reused.
            call.state.process.forget_links(server.serial);
            call.notice("server ssl setting updated.");
        }
        _ => call.refuse("'set server <srv> ssl' expects 'on' or 'off'."),
    }
}

fn set_maxconn(call: &mut Call<'_, Worker>) {
    with_server(call, 3, |call, (proxy, server)| {
        let state = live(call.state, proxy);
        match limit(call.word(4)) {
            Ok(most) => state.set_maxconn(server.index, (most > 0).then_some(most)),
            Err(sentence) => call.refuse(sentence),
        }
    });
}

/// Parses a number of connections, 0 for no limit. Out of range and negative numbers mean no limit.
fn limit(written: &str) -> Result<u32, &'static str> {
    if written.is_empty() {
        return Err("Require <maxconn>.");
    }
    let unsigned = written.strip_prefix(['-', '+']).unwrap_or(written);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    match (digits, digits == unsigned.len()) {
        (0, _) => Err("maxconn string empty or preceded by garbage"),
        (_, false) => Err("Trailing garbage in maxconn string"),
        (_, true) if written.starts_with('-') => Ok(0),
        (_, true) => Ok(unsigned.parse().unwrap_or(0)),
    }
}

/// Enables or disables one of a server's checks.
fn enable_check(call: &mut Call<'_, Worker>, checker: Checker, enabled: bool) {
    with_server(call, 2, |call, (proxy, server)| {
        if !live(call.state, proxy).enable_check(server.index, checker, enabled) && enabled {
            let what = if checker == Checker::Agent { "Agent" } else { "Health check" };
            call.refuse(&format!("{what} was not configured on this server, cannot enable."));
        }
    });
}

fn disable(call: &mut Call<'_, Worker>) {
    with_server(call, 2, |call, (proxy, server)| {
        set_admin(call.state, proxy, server, Admin::Maintenance, Orderer::Cli)
    });
}

fn enable(call: &mut Call<'_, Worker>) {
    with_server(call, 2, |call, (proxy, server)| set_admin(call.state, proxy, server, Admin::Ready, Orderer::Cli));
}
