//! Health checks: each checked server has a task that runs its checks periodically and reports the results to load balancing and
//! the log (configuration manual, section 5.2, "check"). Must never carry a request.

mod address;
mod agent;
mod agent_http;
mod application;
mod attached;
mod connect;
mod external;
mod grpc;
mod header;
mod http;
mod http2;
mod messages;
mod outcome;
mod pooling;
mod programs;
mod quic;
mod run;
mod running;
mod sni;
mod state;
mod targets;
mod tick;
mod udp;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use base::moment::Moment;
use config::spec::LogLevel;
use live::health::{CheckStatus, Report, Symptom, Verdict};
use live::trace::{Event, Level, Subject, events};
use live::{Checker, ServerPlace, ServerStatus, Transition};
use policy::check::Check;
use policy::program::{Proxy, Server};

use crate::service::events as script_events;
use crate::service::transitions::{self, Cause, Online};
use crate::service::{mail, slow_start};
use crate::worker::{Process, Worker};
pub(crate) use messages::reason;
pub use state::Checks;
pub use targets::{Orders, Targets};

/// Starts the checks that are assigned to this worker. The first checks of all servers are spread evenly over the shortest
/// interval of any server, so that they are never all sent at once.
pub fn start(worker: &Rc<Worker>) {
    let generation = worker.generation();
    let program = &generation.program;
    let workers = worker.process.workers();
    let proxies = || program.proxies.iter().filter(|proxy| !proxy.disabled);
    for proxy in proxies().filter(|proxy| proxy.index % workers == worker.id) {
        // Some servers may have been in slow start in the previous process.
        slow_start::watch(std::sync::Arc::clone(&worker.process.live.proxies[proxy.index]));
    }
    let checked = || {
        let servers = proxies().flat_map(|proxy| proxy.servers().map(|server| (proxy.index, server)));
        servers.filter_map(|(proxy, server)| Some((proxy, server, server.check.as_ref()?)))
    };
    let count = checked().count();
    if let Some(shortest) = checked().map(|(_, _, check)| check.pace.fast.min(check.pace.steady)).min() {
        let span = program.global.max_spread_checks.map_or(shortest, |most| shortest.min(most));
        for (place, (proxy, server, _)) in checked().enumerate() {
            if server.serial % workers == worker.id {
                let offset = span.mul_f64(place as f64 / count as f64);
                let task = watch(Rc::clone(worker), ServerPlace { proxy, server: server.index }, 0, offset);
                rt::spawn(rt::Class::Background, rt::NO_TAG, task);
            }
        }
    }
    agent::start(worker);
}

/// Starts the checks of an added server, if configured, on the worker that is assigned to it.
pub fn add(shared: &Process, proxy: usize, server: &Server) {
    let place = ServerPlace { proxy, server: server.index };
    let (has_check, has_agent) = (server.check.is_some(), server.agent.is_some());
    if !has_check && !has_agent {
        return;
    }
    let occupant = shared.live.proxies[proxy].occupant(place.server);
    let job = move |worker: &Rc<Worker>| {
        if has_check {
            let task = watch(Rc::clone(worker), place, occupant, Duration::ZERO);
            rt::spawn(rt::Class::Background, rt::NO_TAG, task);
        }
        if has_agent {
            agent::add(worker, place, occupant);
        }
    };
    rt::post((server.serial % shared.workers()) as rt::WorkerId, Box::new(move || crate::on_worker(job)));
}

/// Checks a server until the process stops, the server is removed, or another one (`occupant`) has its slot.
async fn watch(worker: Rc<Worker>, place: ServerPlace, occupant: u32, offset: Duration) {
    rt::sleep(offset).await;
    while !worker.process.is_stopping() {
        let Some((next, hurried)) = check_once(&worker, place, occupant).await else { return };
        pause_until(&worker, place, next, hurried).await;
    }
}

/// Runs one check with the current configuration. Returns the time of the next check, and with `observe` the `fastinter` that
/// applies from an error in traffic. `None`: the server is no longer checked.
async fn check_once(worker: &Worker, place: ServerPlace, occupant: u32) -> Option<(Moment, Option<Duration>)> {
    let generation = worker.generation();
    let proxy = generation.proxy(place.proxy);
    let server = proxy.server(place.server)?;
    let check = server.check.as_ref()?;
    let state = &worker.process.live.proxies[proxy.index];
    if state.occupant(server.index) != occupant {
        return None;
    }
    // The interval bounds the check, however early the next one is due.
    let (begun, bound) = (rt::now(), check.pace.steady);
    if state.begin_check(server.index, Checker::Health) {
        let running = worker.activity.begin_check();
        trace(worker, proxy, server, &events::CHECK_START, String::new);
        let script = script(proxy, server);
        let special = script.map(|script| (script.program.as_deref(), script.datagram.as_deref()));
        let report = match special {
            Some((Some(program), _)) => Box::pin(external::check(worker, proxy, server, program, bound)).await,
            Some((_, Some(contents))) => Box::pin(udp::check(worker, proxy, server, contents, bound)).await,
            _ => run::check(worker, &generation, proxy, server, bound)?.await,
        };
        drop(running);
        if state.occupant(server.index) != occupant {
            return None;
        }
        conclude(worker, proxy, server, Checker::Health, report);
    }
    // The result can change the interval (`fastinter`, `downinter`) at once.
    let pause = state.interval(server.index, Checker::Health, &check.pace)?;
    Some((next_after(worker, begun, pause), check.observed.is_some().then_some(check.pace.fast)))
}

/// Returns the check steps of a server: its own, else those of its backend.
fn script<'a>(proxy: &'a Proxy, server: &'a Server) -> Option<&'a Check> {
    let own = server.check.as_ref()?;
    own.script.as_deref().or_else(|| proxy.backend.as_ref().map(|backend| &backend.check))
}

/// Waits for the next check, due at `regular`; after an error in traffic it is due `fast` from then, if that is earlier.
async fn pause_until(worker: &Worker, place: ServerPlace, regular: Moment, fast: Option<Duration>) {
    let Some(fast) = fast else { return rt::sleep_until(regular).await };
    let state = &worker.process.live.proxies[place.proxy];
    let mut timer = rt::Timer::new();
    timer.arm(Some(regular));
    let hurried = poll_fn(|cx| match state.poll_hurry(place.server, cx) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending => timer.poll_expired(cx).map(|()| false),
    });
    if hurried.await {
        rt::sleep_until((rt::now() + fast).min(regular)).await;
    }
}

/// Returns the start of the next check, from that of the previous one.
fn next_after(worker: &Worker, begun: Moment, interval: Duration) -> Moment {
    tick::nearest(begun + spread(worker, interval), interval)
}

/// Applies `spread-checks`: changes the interval at random by up to that many per cent.
fn spread(worker: &Worker, interval: Duration) -> Duration {
    let most = worker.generation().program.global.spread_checks;
    if most == 0 {
        return interval;
    }
    let share = (rt::random() % u64::from(2 * most + 1)) as f64 - f64::from(most);
    interval.mul_f64((100.0 + share) / 100.0)
}

/// Traces an event of a server's check or connection.
#[inline]
pub(crate) fn trace(worker: &Worker, proxy: &Proxy, server: &Server, event: &Event, what: impl FnOnce() -> String) {
    let (backend, own) = (proxy.index as u64 + 1, server.index as u64 + 1);
    let subject = || Subject { backend, server: backend << 32 | own, ..Subject::default() };
    let text =
        || (format!("{} {}", event.doc, what()).trim_end().to_owned(), format!("srv={}/{}", proxy.name, server.name));
    worker.trace(event, Level::User, subject, text);
}

/// Applies the result of a check to the server's state, and reports it.
fn conclude(worker: &Worker, proxy: &Proxy, server: &Server, checker: Checker, mut report: Report) {
    report.info = messages::shortened(report.info);
    let passed = matches!(report.status.verdict(), Some(Verdict::Passed | Verdict::Conditional));
    let result = if passed { &events::CHECK_SUCCESS } else { &events::CHECK_FAILURE };
    trace(worker, proxy, server, result, || report.status.name().to_owned());
    trace(worker, proxy, server, &events::CHECK_END, String::new);
    let state = &worker.process.live.proxies[proxy.index];
    if report.status == CheckStatus::L4Timeout {
        // The server's address may have changed.
        crate::resolve::resolve_again(worker, server);
    }
    let (notable, transition) = state.end_check(server.index, checker, report.clone(), rt::now());
    announce(worker, proxy, server, checker, &report, notable, transition);
}

/// Logs the result of a check, and applies the state transition that it caused.
fn announce(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    checker: Checker,
    report: &Report,
    notable: bool,
    transition: Option<Transition>,
) {
    let logs = proxy.backend.as_ref().is_some_and(|backend| backend.check.log);
    if logs && notable {
        log_result(worker, proxy, server, checker, report);
    }
    if notable {
        script_events::checked(worker, proxy, server, checker);
    }
    let cause = Cause::Check { report, checker, is_logged: logs };
    if let Some(transition) = transition {
        // Computed only after a transition: it iterates over all servers.
        let online = Online::before(proxy, &worker.process.live.proxies[proxy.index], &transition);
        transitions::apply_consequences(worker, proxy, server, transition, online, cause);
    }
}

/// A passive health event seen in traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A connection was established.
    Connected,
    /// A valid response was received.
    Answered,
    /// An error.
    Ill(Symptom),
}

/// Applies a passive health event to a server, if `observe` is configured.
pub(crate) fn observe(worker: &Worker, proxy: &Proxy, server: &Server, sign: Sign) {
    let Some(observed) = server.check.as_ref().and_then(|check| check.observed) else { return };
    let symptom = match (sign, observed.answers) {
        (Sign::Connected, false) | (Sign::Answered, true) => None,
        (Sign::Ill(symptom), answers) if answers || symptom == Symptom::Connection => Some(symptom),
        _ => return,
    };
    let state = &worker.process.live.proxies[proxy.index];
    let Some((notable, transition)) = state.observe(server.index, &observed, symptom, rt::now()) else { return };
    let Some(health) = state.health(server.index, Checker::Health) else { return };
    announce(worker, proxy, server, Checker::Health, health.last(), notable, transition);
}

/// Logs a check result (`option log-health-checks`).
fn log_result(worker: &Worker, proxy: &Proxy, server: &Server, checker: Checker, report: &Report) {
    let state = &worker.process.live.proxies[proxy.index];
    let (Some(health), Some(status)) = (state.health(server.index, checker), state.status(server.index)) else {
        return;
    };
    let which = if checker == Checker::Agent { "Agent" } else { "Health" };
    let (now, of, word) = match health.progress() {
        // It is up, and gets no new sessions.
        (now, of, "UP") if status.weight == 0 => (now, of, "DRAIN"),
        progress => progress,
    };
    let (verb, level) = match report.status.verdict() {
        Some(Verdict::Passed) => ("succeeded", LogLevel::Notice),
        Some(Verdict::Conditional) => ("conditionally succeeded", LogLevel::Notice),
        _ => ("failed", LogLevel::Notice),
    };
    let text = format!(
        "{which} check for {}server {}/{} {verb}, {}, status: {now}/{of} {word}.",
        kind(&status),
        proxy.name,
        server.name,
        reason(report)
    );
    worker.announce(proxy.index, level, &text);
    mail::alert(worker, proxy, LogLevel::Info, &text);
}

fn kind(status: &ServerStatus) -> &'static str {
    if status.backup { "backup " } else { "" }
}
