//! The task of one router: connects when due, and logs what happens. Must never end before the process leaves.

use std::future::{Future as _, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use config::spec::LogLevel;
use conn::dial::{Failure, dial};
use conn::transport::Transport;
use engine::worker::Worker;
use live::bgp::{End, State};
use rt::net::{Address, ConnectOptions};

use super::connection::converse;
use super::error_text::error_text;
use super::speakers::SpeakerTasks;

/// Lets the process end when the task does.
struct Serving(Rc<Worker>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.end_accepting();
    }
}

/// A router as connected to and as named in log lines.
struct Route {
    name: String,
    to: Address,
    options: ConnectOptions,
}

/// Keeps the session with a router until the process leaves.
pub(super) async fn keep(tasks: Rc<SpeakerTasks>, neighbor: usize) {
    let _serving = Serving(Rc::clone(&tasks.worker));
    tasks.worker.watch_stop().await;
    let Some(route) = route(&tasks, neighbor) else { return };
    // The reason of the last failed attempt that was logged.
    let mut logged = None;
    while wait_until_due(&tasks, neighbor).await {
        let end = attempt(&tasks, neighbor, &route, &mut logged).await;
        let text = end.to_string();
        tasks.with_session(neighbor, |session| session.ended(&end, rt::now(), rt::random()));
        if end == End::Stopped || logged.as_ref() != Some(&text) {
            tasks.log(LogLevel::Warning, &format!("neighbor {} is Idle: {text}", route.name));
            logged = Some(text);
        }
    }
}

fn route(tasks: &SpeakerTasks, neighbor: usize) -> Option<Route> {
    let generation = tasks.worker.generation();
    let plan = generation.program.bgp.get(tasks.section)?.neighbors.get(neighbor)?;
    Some(Route {
        name: format!("{} ({})", plan.name, plan.address),
        to: Address::Inet(plan.address),
        options: ConnectOptions {
            source: plan.source.map(|source| Address::Inet((source, 0).into())),
            md5_key: plan.password.clone(),
            hop_limit: plan.hop_limit,
            ..ConnectOptions::default()
        },
    })
}

/// Waits for the next attempt. False: the process leaves.
async fn wait_until_due(tasks: &SpeakerTasks, neighbor: usize) -> bool {
    let mut timer = rt::Timer::new();
    poll_fn(|cx| {
        if tasks.is_over() {
            return Poll::Ready(false);
        }
        timer.arm(tasks.with_session(neighbor, |session| session.connect_at()).flatten());
        timer.poll_expired(cx).map(|()| true)
    })
    .await
}

/// Connects, and exchanges messages until the session ends.
async fn attempt(tasks: &SpeakerTasks, neighbor: usize, route: &Route, logged: &mut Option<String>) -> End {
    tasks.with_session(neighbor, |session| session.connect(rt::now()));
    let stream = match connect(tasks, neighbor, route).await {
        Ok(stream) => stream,
        Err(end) => return end,
    };
    let local = stream.local_address().ok().and_then(|address| address.inet()).map(|address| address.ip());
    tasks.with_session(neighbor, |session| session.connected(local.map(unmapped), rt::now()));
    let established = || {
        let hold_time = tasks.with_session(neighbor, |session| session.status().hold_time).flatten();
        let seconds = hold_time.map_or(0, |time| time.as_secs());
        let text = format!("neighbor {} is {}, hold time {seconds} s", route.name, State::Established.name());
        tasks.log(LogLevel::Notice, &text);
        *logged = None;
    };
    converse(tasks, neighbor, stream, established).await
}

/// Returns an IPv4 address that is written as one of IPv6 in its own form.
fn unmapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

async fn connect(tasks: &SpeakerTasks, neighbor: usize, route: &Route) -> Result<Transport, End> {
    let mut timer = rt::Timer::new();
    let mut dialing = pin!(dial(&route.to, &route.options, None));
    poll_fn(|cx| {
        if tasks.is_over() {
            return Poll::Ready(Err(End::Stopped));
        }
        match dialing.as_mut().poll(cx) {
            Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
            Poll::Ready(Err(failure)) => return Poll::Ready(Err(End::Failed(reason(&failure, route)))),
            Poll::Pending => {}
        }
        let (deadline, now) = (tasks.with_session(neighbor, |session| session.deadline(None)).flatten(), rt::now());
        timer.arm(deadline);
        match timer.poll_expired(cx) {
            Poll::Ready(()) => {
                let end = tasks.with_session(neighbor, |session| session.expire(None, now)).flatten();
                Poll::Ready(Err(end.unwrap_or(End::Unreachable)))
            }
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Returns the reason of a failure.
fn reason(failure: &Failure, route: &Route) -> Box<str> {
    /// The kernel has no such socket option (`ENOPROTOOPT`).
    const NO_OPTION: i32 = 92;
    let Failure::System(error) = failure else { return "connection failed".into() };
    if route.options.md5_key.is_some() && error.raw_os_error() == Some(NO_OPTION) {
        return "the kernel does not support MD5 signatures of TCP, which the password needs".into();
    }
    error_text(error)
}
