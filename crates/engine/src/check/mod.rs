//! Health checks: each server that wants it has a task, which checks it again and again and tells the balance and the
//! log what that says (configuration manual, section 5.2, "check"). Must never carry a request.

mod http;
mod run;
mod words;

use std::rc::Rc;
use std::time::Duration;

use config::spec::LogLevel;
use policy::check::{Report, Turn, Verdict};
use policy::live::{Admin, ServerStatus};
use policy::program::{Proxy, Server};

use crate::facts::Cause as Why;
use crate::service::shutting;
use crate::service::transitions::{self, Cause, Online};
use crate::service::warm_up;
use crate::worker::Worker;
use run::Course;

/// Starts the checks of the servers that are this worker's to check.
pub fn start(worker: &Rc<Worker>) {
    let (workers, most) = (worker.shared.workers(), worker.shared.program.global.max_spread_checks);
    for proxy in worker.shared.program.proxies.iter().filter(|proxy| !proxy.disabled) {
        let servers = proxy.backend.as_ref().map_or(&[][..], |backend| &backend.servers);
        let checked: Vec<_> = servers.iter().filter_map(|server| Some((server, server.check.as_ref()?))).collect();
        let Some(shortest) = checked.iter().map(|(_, check)| check.pace.fast.min(check.pace.steady)).min() else {
            continue;
        };
        let span = most.map_or(shortest, |most| shortest.min(most));
        for (place, (server, _)) in checked.iter().enumerate() {
            if server.serial % workers != worker.id {
                continue;
            }
            // So that they do not all come at once.
            let offset = span.mul_f64(place as f64 / checked.len() as f64);
            let (worker, proxy, server) = (Rc::clone(worker), proxy.index, server.index);
            rt::spawn(rt::Class::Normal, rt::NO_TAG, watch(worker, proxy, server, offset));
        }
    }
}

/// Checks a server until the process stops.
async fn watch(worker: Rc<Worker>, proxy: usize, server: usize, offset: Duration) {
    rt::sleep(offset).await;
    let proxy = std::sync::Arc::clone(&worker.shared.program.proxies[proxy]);
    let Some(server) = proxy.backend.as_ref().and_then(|backend| backend.servers.get(server)) else { return };
    let Some(check) = &server.check else { return };
    let state = &worker.shared.live.proxies[proxy.index];
    let interval = || state.health(server.index).map(|health| health.interval(&check.pace));
    while !worker.shared.is_stopping() {
        let (begun, Some(bound)) = (rt::now(), interval()) else { return };
        if state.begin_check(server.index)
            && let Some(course) = Course::new(&worker, &proxy, server, bound)
        {
            let report = course.run().await;
            conclude(&worker, &proxy, server, report);
        }
        // What the result says of the pace counts at once.
        let Some(pause) = interval() else { return };
        rt::sleep_until(begun + spread(&worker, pause)).await;
    }
}

/// `spread-checks`: some per cent more or less.
fn spread(worker: &Worker, interval: Duration) -> Duration {
    let most = worker.shared.program.global.spread_checks;
    if most == 0 {
        return interval;
    }
    let share = (rt::random() % u64::from(2 * most + 1)) as f64 - f64::from(most);
    interval.mul_f64((100.0 + share) / 100.0)
}

/// Tells everybody what a check found.
fn conclude(worker: &Rc<Worker>, proxy: &Proxy, server: &Server, report: Report) {
    let state = &worker.shared.live.proxies[proxy.index];
    let Some(before) = state.status(server.index) else { return };
    let online = Online::of(proxy, state);
    let (turn, changed) = state.end_check(server.index, report.clone(), rt::now());
    let logs = proxy.backend.as_ref().is_some_and(|backend| backend.check.log);
    if logs && changed {
        tell(worker, proxy, server, &report);
    }
    if turn == Turn::None {
        return;
    }
    let cause = if logs { Cause::Told } else { Cause::Check(&report) };
    transitions::tell_of_check(worker, proxy, server, (before, online), (turn, cause));
    if turn == Turn::Up {
        warm_up::watch(std::sync::Arc::clone(state));
    }
    shut_sessions(worker, proxy, server, turn);
}

/// `on-marked-down shutdown-sessions` and `on-marked-up shutdown-backup-sessions`.
fn shut_sessions(worker: &Rc<Worker>, proxy: &Proxy, server: &Server, turn: Turn) {
    let (Some(check), Some(backend)) = (&server.check, &proxy.backend) else { return };
    let (why, at): (Why, Vec<usize>) = match turn {
        Turn::Down if check.down_shuts_sessions => (Why::Down, vec![server.index]),
        Turn::Up if check.up_shuts_backups && !server.backup && is_balanced(worker, proxy, server) => {
            let backups = backend.servers.iter().filter(|server| server.backup);
            (Why::Up, backups.map(|server| server.index).collect())
        }
        _ => return,
    };
    let (worker, proxy) = (Rc::clone(worker), proxy.index);
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        for server in at {
            shutting::shut_sessions(&worker.shared, (proxy, server), why).await;
        }
    });
}

fn is_balanced(worker: &Worker, proxy: &Proxy, server: &Server) -> bool {
    let status = worker.shared.live.proxies[proxy.index].status(server.index);
    status.is_some_and(|status| status.admin == Admin::Ready && status.weight > 0)
}

/// `option log-health-checks`.
fn tell(worker: &Worker, proxy: &Proxy, server: &Server, report: &Report) {
    let state = &worker.shared.live.proxies[proxy.index];
    let (Some(health), Some(status)) = (state.health(server.index), state.status(server.index)) else { return };
    let (now, of, word) = health.progress();
    let (verb, level) = match report.status.verdict() {
        Some(Verdict::Passed) => ("succeeded", LogLevel::Notice),
        Some(Verdict::Conditional) => ("conditionally succeeded", LogLevel::Notice),
        _ => ("failed", LogLevel::Notice),
    };
    let text = format!(
        "Health check for {}server {}/{} {verb}, {}, status: {now}/{of} {word}.",
        kind(&status),
        proxy.name,
        server.name,
        reason(report)
    );
    worker.logger.message(Some(proxy.index), level, &text);
}

fn kind(status: &ServerStatus) -> &'static str {
    if status.backup { "backup " } else { "" }
}

/// `reason: Layer7 wrong status, code: 500, info: "Bad", check duration: 1ms`.
pub(crate) fn reason(report: &Report) -> String {
    let mut text = format!("reason: {}", report.status.description());
    if let Some(code) = report.code.filter(|_| report.status.is_application()) {
        text.push_str(&format!(", code: {code}"));
    }
    if !report.info.is_empty() {
        text.push_str(&format!(", info: \"{}\"", report.info));
    }
    text.push_str(&format!(", check duration: {}ms", report.took.as_millis()));
    text
}
