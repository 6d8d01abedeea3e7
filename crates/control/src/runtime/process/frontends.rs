//! `disable frontend`, `enable frontend`, `shutdown frontend` (management manual, section 9.3). Must never end a session.

use config::spec::{LogLevel, ProxyKind, RuntimeLevel};
use policy::program::Proxy;

use super::super::{Call, Command, Run};
use engine::frontends::{self, Opening};
use engine::generation::Generation;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "disable frontend",
        "disable frontend <frontend>",
        "temporarily disable specific frontend",
        Run::Now(disable),
    )
    .at(RuntimeLevel::Admin),
    Command::new("enable frontend", "enable frontend <frontend>", "re-enable specific frontend", Run::Now(enable))
        .at(RuntimeLevel::Admin),
    Command::new("shutdown frontend", "shutdown frontend <frontend>", "stop a specific frontend", Run::Now(shutdown))
        .at(RuntimeLevel::Admin),
];

/// Finds a frontend by name, or by id after a `#`.
pub(super) fn find<'g>(generation: &'g Generation, name: &str) -> Option<&'g Proxy> {
    generation.program.proxy_called(name, |proxy| proxy.frontend.is_some()).map(|proxy| &**proxy)
}

/// Returns the frontend named by the third word, and its state; answers with an error if there is none.
fn named<'a>(call: &mut Call<'a, Worker>) -> Option<(&'a Proxy, Opening)> {
    let worker: &'a Worker = call.state;
    let name = call.word(2);
    if name.is_empty() {
        call.refuse("A frontend name is expected.");
        return None;
    }
    let Some(proxy) = find(call.generation, name) else {
        call.refuse("No such frontend.");
        return None;
    };
    let opening = if proxy.disabled { Opening::Shut } else { worker.process.frontends.opening(proxy.index) };
    Some((proxy, opening))
}

/// Logs a change of a frontend.
fn log_change(worker: &Worker, proxy: &Proxy, what: &str) {
    let kind = if proxy.kind == ProxyKind::Listen { "proxy" } else { "frontend" };
    worker.announce(proxy.index, LogLevel::Warning, &format!("{what} {kind} {}.", proxy.name));
}

fn disable(call: &mut Call<'_, Worker>) {
    let Some((proxy, opening)) = named(call) else { return };
    match opening {
        Opening::Shut => call.refuse("Frontend was previously shut down, cannot disable."),
        Opening::Paused => call.notice("All sockets are already disabled."),
        Opening::Open if frontends::pause(&call.state.process, proxy.index).is_err() => {
            call.refuse("Failed to pause frontend, check logs for precise cause.");
        }
        Opening::Open => log_change(call.state, proxy, "Paused"),
    }
}

fn enable(call: &mut Call<'_, Worker>) {
    let Some((proxy, opening)) = named(call) else { return };
    match opening {
        Opening::Shut => call.refuse("Frontend was previously shut down, cannot enable."),
        Opening::Open => call.notice("All sockets are already enabled."),
        Opening::Paused if frontends::resume(&call.state.process, proxy.index).is_err() => {
            call.refuse("Failed to resume frontend, check logs for precise cause (port conflict?).");
        }
        Opening::Paused => log_change(call.state, proxy, "Resumed"),
    }
}

fn shutdown(call: &mut Call<'_, Worker>) {
    let Some((proxy, opening)) = named(call) else { return };
    if opening == Opening::Shut {
        call.refuse("Frontend was already shut down.");
        return;
    }
    let worker = call.state;
    frontends::shut(&worker.process, proxy.index);
    let totals = || worker.process.counters.workers.iter().filter_map(|one| one.proxies.get(proxy.index));
    let front = totals().map(|counters| counters.front.connections.get()).fold(0, u64::wrapping_add);
    let back =
        totals().filter_map(|one| one.known_back()).map(|counters| counters.sessions.get()).fold(0, u64::wrapping_add);
    worker.stopped(proxy, front, back);
}
