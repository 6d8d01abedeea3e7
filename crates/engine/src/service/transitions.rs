//! Says in a backend's log what became of its servers, in HAProxy's words. Must never change a state.

use config::spec::LogLevel;
use policy::check::{Report, Turn};
use policy::live::{Admin, ProxyState, ServerStatus};
use policy::program::{Proxy, Server};

use crate::worker::Worker;

/// Servers that get requests from the balance: those in front, and backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Online {
    active: usize,
    backup: usize,
}

impl Online {
    /// As it is now.
    pub fn of(proxy: &Proxy, state: &ProxyState) -> Self {
        let servers = proxy.backend.as_ref().map_or(&[][..], |backend| &backend.servers);
        let states = servers.iter().filter_map(|server| state.status(server.index));
        let (mut active, mut backup) = (0, 0);
        for one in states.filter(|one| one.up && !one.stopping && one.admin == Admin::Ready && one.weight > 0) {
            *(if one.backup { &mut backup } else { &mut active }) += 1;
        }
        Self { active, backup }
    }

    const fn is_empty(self) -> bool {
        self.active == 0 && self.backup == 0
    }
}

/// An order changed what is wanted of a server.
pub fn tell(worker: &Worker, proxy: &Proxy, server: &Server, before: (ServerStatus, Online)) {
    let state = &worker.shared.live.proxies[proxy.index];
    let Some(now) = state.status(server.index) else { return };
    let online = Online::of(proxy, state);
    let name = format!("{}erver {}/{}", if server.backup { "Backup S" } else { "S" }, proxy.name, server.name);
    let waiting = state.queued(None).0;
    let say = |level, text: &str| worker.logger.message(Some(proxy.index), level, text);
    for (level, sentence) in sentences(before.0, now, online, waiting) {
        say(level, &format!("{name} {sentence}"));
    }
    tell_of_none(worker, proxy, online, before.1);
}

/// Why a check says something.
#[derive(Debug, Clone, Copy)]
pub enum Cause<'a> {
    /// A line of its own has said it.
    Told,
    /// This is what it found.
    Check(&'a Report),
}

/// A check changed the state of a server.
pub fn tell_of_check(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    before: (ServerStatus, Online),
    (turn, cause): (Turn, Cause<'_>),
) {
    let state = &worker.shared.live.proxies[proxy.index];
    let Some(now) = state.status(server.index) else { return };
    let online = Online::of(proxy, state);
    let Online { active, backup } = online;
    let name = format!("{}erver {}/{}", if server.backup { "Backup S" } else { "S" }, proxy.name, server.name);
    let reason = match cause {
        Cause::Told => String::new(),
        Cause::Check(report) => format!(", {}", crate::check::reason(report)),
    };
    let on_backup = if active == 0 && backup > 0 { " Running on backup." } else { "" };
    let (waiting, requeued) = (state.queued(None).0, before.0.load.queued);
    let online_now = format!("{active} active and {backup} backup servers online.{on_backup}");
    let (level, text) = match turn {
        Turn::None => return,
        Turn::Down => {
            // A server that was stopping anyway alarms nobody.
            let level = if before.0.stopping { LogLevel::Notice } else { LogLevel::Alert };
            let running = now.load.served;
            let text = format!(
                "is DOWN{reason}. {active} active and {backup} backup servers left.{on_backup} {running} sessions \
                 active, {requeued} requeued, {waiting} remaining in queue."
            );
            (level, text)
        }
        Turn::Stopping => {
            let text =
                format!("is stopping{reason}. {online_now} {requeued} sessions requeued, {waiting} total in queue.");
            (LogLevel::Notice, text)
        }
        Turn::Up | Turn::Resumed => {
            let text = format!("is UP{reason}. {online_now} {requeued} sessions requeued, {waiting} total in queue.");
            (LogLevel::Notice, text)
        }
    };
    worker.logger.message(Some(proxy.index), level, &format!("{name} {text}"));
    tell_of_none(worker, proxy, online, before.1);
}

/// The last server is gone.
fn tell_of_none(worker: &Worker, proxy: &Proxy, online: Online, before: Online) {
    if online.is_empty() && !before.is_empty() {
        let text = format!("backend {} has no server available!", proxy.name);
        worker.logger.message(Some(proxy.index), LogLevel::Emerg, &text);
    }
}

/// What is said behind the server's name.
fn sentences(before: ServerStatus, now: ServerStatus, online: Online, waiting: u32) -> Vec<(LogLevel, String)> {
    let Online { active, backup } = online;
    let on_backup = if active == 0 && backup > 0 { " Running on backup." } else { "" };
    let notice = |text: &str| (LogLevel::Notice, text.to_owned());
    match (before.admin, now.admin) {
        (Admin::Drain, Admin::Ready) => vec![notice("is UP (leaving forced drain).")],
        (Admin::Maintenance, Admin::Ready) => vec![notice("is UP/READY (leaving forced maintenance).")],
        (Admin::Maintenance, Admin::Drain) => {
            vec![notice("is UP/DRAIN (leaving forced maintenance)."), notice("remains in forced drain mode.")]
        }
        (Admin::Ready, Admin::Drain) => vec![notice(&format!(
            "enters drain state. {active} active and {backup} backup servers online.{on_backup} 0 sessions requeued, \
             {waiting} total in queue."
        ))],
        (Admin::Ready | Admin::Drain, Admin::Maintenance) => {
            let level = if before.admin == Admin::Ready { LogLevel::Alert } else { LogLevel::Notice };
            let (running, requeued) = (now.load.served, before.load.queued);
            let text = format!(
                "is going DOWN for maintenance. {active} active and {backup} backup servers left.{on_backup} {running} \
                 sessions active, {requeued} requeued, {waiting} remaining in queue."
            );
            vec![(level, text)]
        }
        (Admin::Ready, Admin::Ready) | (Admin::Drain, Admin::Drain) | (Admin::Maintenance, Admin::Maintenance) => {
            Vec::new()
        }
    }
}
