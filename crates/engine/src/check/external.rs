//! External checks (configuration manual, "option external-check"): a program is run with a description of the server, and its
//! exit status is the result. Must never run one if the configuration does not allow that, nor start one on a worker thread.

use std::future::poll_fn;
use std::io;
use std::process::ExitStatus;
use std::task::Poll;
use std::time::Duration;

use base::moment::Moment;
use config::diagnostic::Severity;
use config::spec::{LogLevel, Mode};
use live::Checker;
use live::health::{CheckStatus, Report};
use policy::check::External;
use policy::program::{BindAddress, Proxy, Server, ServerAddress};
use rt::Signal;
use rt::program::{Invocation, Running};

use super::programs::Room;
use crate::worker::Worker;

/// Time between SIGTERM and SIGKILL for a program that exceeded its timeout.
const GRACE: Duration = Duration::from_secs(1);
/// Argument for a missing port or address.
const NONE: &str = "NOT_USED";

/// Runs the program for a server; it has to exit within `bound`.
pub(super) async fn check(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    external: &External,
    bound: Duration,
) -> Report {
    let begun = rt::now();
    let found = run(worker, proxy, server, external, begun + bound).await;
    let took = rt::now().saturating_since(begun);
    let (failed, error) = match found {
        Ok((status, code)) => return Report { status, code: Some(code), took, info: String::new() },
        Err(Failure::Fork(error)) => (FORK, error),
        Err(Failure::Execute(error)) => ("exec process for external health check", error),
    };
    let why = reason(&error);
    let report = match failed == FORK {
        true => Report { status: CheckStatus::SocketError, code: None, took, info: why.clone() },
        false => Report { status: CheckStatus::ProgramError, code: Some(255), took, info: String::new() },
    };
    // Logged once, not for each check that fails in the same way.
    let last = worker.process.live.proxies[proxy.index].health(server.index, Checker::Health);
    if last.is_none_or(|health| (health.last().status, health.last().code) != (report.status, report.code)) {
        let text = format!("Failed to {failed}: {why}. Aborting.");
        worker.logger.message(Some(proxy.index), LogLevel::Alert, &text);
        worker.process.host.say(Severity::Alert, &text);
    }
    report
}

/// Result of a check, and the exit status of its program.
type Finding = (CheckStatus, i64);

/// Result if the program did not exit in time.
const LATE: Finding = (CheckStatus::ProgramTimeout, 0);

/// `EAGAIN`, as if the system could not create a process.
const NO_PROCESS: i32 = 11;

/// The failed operation, in HAProxy's words.
const FORK: &str = "fork process for external health check (likely caused by missing 'insecure-fork-wanted')";

/// Why no program ran.
enum Failure {
    /// The process could not be created.
    Fork(io::Error),
    /// The program could not be executed.
    Execute(io::Error),
}

async fn run(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    external: &External,
    deadline: Moment,
) -> Result<Finding, Failure> {
    if !external.allowed {
        return Err(Failure::Fork(io::Error::from_raw_os_error(NO_PROCESS)));
    }
    let programs = &worker.process.checks.programs;
    let Some(room) = programs.room(deadline).await else { return Ok(LATE) };
    let invocation = invocation(worker, proxy, server, external);
    let started = programs.starters.run(move || invocation.start()).await;
    let started = started.unwrap_or_else(|| Err(io::Error::from_raw_os_error(NO_PROCESS)));
    let launched = started.map_err(|error| match error.raw_os_error() {
        Some(NO_PROCESS) => Failure::Fork(error),
        _ if rt::net::is_exhaustion(&error) => Failure::Fork(error),
        _ => Failure::Execute(error),
    })?;
    let mut running = launched.follow().map_err(Failure::Fork)?;
    match end(&mut running, deadline).await {
        Some(ended) => ended.map(finding_of).map_err(Failure::Fork),
        None => {
            rt::spawn(rt::Class::Normal, rt::NO_TAG, see_off(running, room));
            Ok(LATE)
        }
    }
}

/// Waits for the exit of a program; `None`: it did not exit before the deadline.
async fn end(running: &mut Running, deadline: Moment) -> Option<io::Result<ExitStatus>> {
    let mut timer = rt::Timer::new();
    timer.arm(Some(deadline));
    poll_fn(|cx| match running.poll_end(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => timer.poll_expired(cx).map(|()| None),
    })
    .await
}

/// Ends a program that exceeded its timeout, with its children. It occupies its slot until it has exited.
async fn see_off(mut running: Running, room: Room) {
    running.signal(Signal::Terminate);
    if end(&mut running, rt::now() + GRACE).await.is_none() {
        running.signal(Signal::Kill);
        let _ = poll_fn(|cx| running.poll_end(cx)).await;
    }
    // Dropping it ends its remaining children.
    drop((running, room));
}

fn finding_of(status: ExitStatus) -> Finding {
    match status.code() {
        Some(0) => (CheckStatus::ProgramOk, 0),
        Some(code) => (CheckStatus::ProgramError, i64::from(code)),
        // It was ended by a signal.
        None => (CheckStatus::ProgramError, -1),
    }
}

/// The error text without its number, as HAProxy logs it.
fn reason(error: &io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}

fn invocation(worker: &Worker, proxy: &Proxy, server: &Server, external: &External) -> Invocation {
    let (at, of_proxy) = listener(proxy);
    let (address, port) = place(&worker.process.outgoing.address(server));
    let load = worker.process.live.proxies[proxy.index].status(server.index).map(|status| status.load);
    let or_none = |written: &Option<String>| written.clone().unwrap_or_else(|| NONE.to_owned());
    let arguments = vec![or_none(&at), or_none(&of_proxy), address.clone(), or_none(&port)];
    let protocol = match proxy.mode {
        Mode::Http => "h1",
        Mode::Log => "syslog",
        Mode::Spop => "spop",
        Mode::Udp => "udp",
        _ => "tcp",
    };
    let own = [
        ("HAPROXY_PROXY_ADDR", at.unwrap_or_default()),
        ("HAPROXY_PROXY_ID", proxy.id.to_string()),
        ("HAPROXY_PROXY_NAME", proxy.name.to_string()),
        ("HAPROXY_PROXY_PORT", of_proxy.unwrap_or_default()),
        ("HAPROXY_SERVER_ADDR", address),
        ("HAPROXY_SERVER_CURCONN", load.as_ref().map_or(0, |load| load.served).to_string()),
        ("HAPROXY_SERVER_ID", server.id.to_string()),
        ("HAPROXY_SERVER_MAXCONN", server.maxconn.unwrap_or(0).to_string()),
        ("HAPROXY_SERVER_NAME", server.name.to_string()),
        ("HAPROXY_SERVER_PORT", port.unwrap_or_default()),
        ("HAPROXY_SERVER_PROTO", protocol.to_owned()),
        ("HAPROXY_SERVER_SSL", "0".to_owned()),
    ];
    let kept = worker.process.host.environment.iter().filter(|_| external.preserve_environment);
    let kept = kept.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = kept.chain(own.map(|(name, value)| (name.to_owned(), value))).collect();
    Invocation { program: external.command.to_string(), path: external.path.to_string(), arguments, environment }
}

/// Returns address and port of the first listener that has an address; a UNIX path has no port, and a backend has neither.
fn listener(proxy: &Proxy) -> (Option<String>, Option<String>) {
    let binds = proxy.frontend.iter().flat_map(|frontend| &frontend.binds).filter(|bind| !bind.is_removed);
    let mut places = binds.filter_map(|bind| match &bind.address {
        BindAddress::Inet(address) | BindAddress::Quic(address) | BindAddress::Udp(address) => {
            Some((address.ip().to_string(), Some(address.port().to_string())))
        }
        BindAddress::Unix(path) => Some((path.display().to_string(), None)),
        _ => None,
    });
    places.next().map_or((None, None), |(address, port)| (Some(address), port))
}

/// Returns address and port of a server; a UNIX path has no port.
fn place(address: &ServerAddress) -> (String, Option<String>) {
    match address {
        ServerAddress::Inet { ip, port } => (ip.to_string(), Some(port.resolve(0).to_string())),
        ServerAddress::Unix(path) => (path.display().to_string(), None),
        _ => (NONE.to_owned(), None),
    }
}
