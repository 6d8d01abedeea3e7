//! Reports of a serving process on signals: servers, memory, totals of stopped proxies (management guide, sections 4
//! and 6). Must never change anything.

use crate::messages::Messages;
use config::spec::LogLevel;
use engine::frontends::Opening;
use engine::worker::{Process, Worker};
use policy::program::Proxy;
use std::sync::Arc;

/// Returns the number of connections of a proxy since the start: as a frontend, and as a backend.
fn totals(shared: &Process, proxy: usize) -> (u64, u64) {
    let counters = || shared.counters.workers.iter().filter_map(|worker| worker.proxies.get(proxy));
    let front = counters().map(|counters| counters.front.connections.get()).fold(0, u64::wrapping_add);
    (front, counters().filter_map(|one| one.known_back()).map(|one| one.sessions.get()).fold(0, u64::wrapping_add))
}

/// Logs with the logger of this worker.
fn log(proxy: usize, level: LogLevel, text: &str) {
    if let Some(worker) = rt::local::<Worker>() {
        worker.logger.message(Some(proxy), level, text);
    }
}

/// Reports on standard error and in their logs that the proxies have stopped.
pub fn stopped(shared: &Process) {
    let Some(worker) = rt::local::<Worker>() else { return };
    let shut = |index| shared.frontends.opening(index) == Opening::Shut;
    for proxy in shared.generation().program.proxies.iter().filter(|proxy| !proxy.disabled && !shut(proxy.index)) {
        let (front, back) = totals(shared, proxy.index);
        worker.stopped(proxy, front, back);
    }
}

/// SIGHUP: reports the servers and their load on standard error and in the logs of the proxies.
pub fn servers(shared: &Process, messages: &mut Messages) {
    messages.warning("SIGHUP received, dumping servers states.");
    for proxy in shared.generation().program.proxies.iter().filter(|proxy| !proxy.disabled) {
        for sentence in sentences(shared, proxy) {
            messages.warning(&sentence);
            log(proxy.index, LogLevel::Notice, &sentence);
        }
    }
}

fn sentences(shared: &Process, proxy: &Proxy) -> Vec<String> {
    let Some(state) = shared.live.proxies.get(proxy.index) else { return Vec::new() };
    let (mut said, mut active, mut backup, mut waiting) = (Vec::new(), 0, 0, 0);
    for server in proxy.servers() {
        let up = state.load(server.index).is_some_and(|(_, up)| up);
        let counter = if server.backup { &mut backup } else { &mut active };
        *counter += u32::from(up);
        let (of_backend, pending) = state.queued(Some(server.index));
        waiting = of_backend;
        let total: u64 = shared
            .counters
            .workers
            .iter()
            .filter_map(|worker| worker.known_server(server.serial))
            .map(|counters| counters.sessions.get())
            .sum();
        let busy = state.counts(Some(server.index)).srv_conn;
        let condition = if up { "UP" } else { "DOWN" };
        said.push(format!(
            "SIGHUP: Server {}/{} is {condition}. Conn: {busy} act, {pending} pend, {total} tot.",
            proxy.name, server.name
        ));
    }
    let ((front, back), beconn) = (totals(shared, proxy.index), state.counts(None).beconn);
    let load = format!(
        "Conn: act(FE+BE): {}+{beconn}, {waiting} pend ({waiting} unass), tot(FE+BE): {front}+{back}.",
        state.feconn()
    );
    let name = &proxy.name;
    said.push(match (proxy.servers().next().is_none(), active, backup) {
        (true, ..) => format!("SIGHUP: Proxy {name} has no servers. {load}"),
        (false, 0, 0) => format!("SIGHUP: Proxy {name} has no server available ! {load}"),
        (false, 0, _) => format!("SIGHUP: Proxy {name} is running on backup servers. {load}"),
        _ => format!("SIGHUP: Proxy {name} has {active} active servers and {backup} backup servers available. {load}"),
    });
    said
}

/// SIGQUIT: reports the use of memory.
pub fn memory(shared: &Arc<Process>, messages: &mut Messages) {
    let resident = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = resident.and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    messages.warning("SIGQUIT received, dumping the use of memory.");
    if let Some(pages) = pages {
        messages.warning(&format!("SIGQUIT: {} kB resident, {} sessions.", pages * 4, shared.sessions()));
    }
    for worker in 0..shared.workers() {
        let quiet = messages.quiet();
        rt::post(
            worker as rt::WorkerId,
            Box::new(move || {
                let (used, size) = (rt::buffers_in_use(), rt::buffer_size());
                let tasks = rt::tasks();
                Messages::while_serving(quiet).warning(&format!(
                    "SIGQUIT: Thread {}: {used} buffers of {size} bytes in use, {tasks} tasks.",
                    worker + 1
                ));
            }),
        );
    }
}
