//! State changes of servers: logs them in the backend's log in HAProxy's words, and applies the consequences: tracking servers,
//! ended sessions, slow start. Must never decide a state.

mod cause;
mod record;
mod sentences;

pub use cause::{Cause, Orderer};

use std::sync::Arc;

use config::diagnostic::Severity;
use config::spec::LogLevel;
use live::ServerPlace;
use live::health::Operation;
use live::{Admin, Checker, Live, ProxyState, ServerStatus, Transition};
use policy::program::{Program, Proxy, Server};

use super::{events, mail, session_shutdown, slow_start};
use crate::health_watch;
use crate::stream_state::Cause as Ending;
use crate::worker::Worker;
use record::ServerChange;
use sentences::{Scene, Sentence};

/// Number of servers that load balancing can choose: active ones, and backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Online {
    active: usize,
    backup: usize,
}

impl Online {
    /// Counts the current servers.
    pub fn of(proxy: &Proxy, state: &ProxyState) -> Self {
        let mut online = Self { active: 0, backup: 0 };
        for one in proxy.servers().filter_map(|server| state.status(server.index)).filter(is_online) {
            *online.place(&one) += 1;
        }
        online
    }

    /// Returns the counts before a transition that has just been applied.
    pub fn before(proxy: &Proxy, state: &ProxyState, transition: &Transition) -> Self {
        let Transition { before, after } = transition;
        let mut online = Self::of(proxy, state);
        let place = online.place(after);
        *place = place.saturating_sub(usize::from(is_online(after))) + usize::from(is_online(before));
        online
    }

    fn place(&mut self, server: &ServerStatus) -> &mut usize {
        if server.backup { &mut self.backup } else { &mut self.active }
    }

    const fn is_empty(self) -> bool {
        self.active == 0 && self.backup == 0
    }
}

/// Whether load balancing can choose a server.
fn is_online(one: &ServerStatus) -> bool {
    one.up && !one.stopping && one.admin == Admin::Ready && one.weight > 0
}

/// Changes the state of a server, and applies the consequences. `change` returns the transition, if there is one.
pub fn change(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    change: impl FnOnce(&ProxyState) -> Option<Transition>,
    cause: Cause<'_>,
) {
    let state = &worker.process.live.proxies[proxy.index];
    let online = Online::of(proxy, state);
    if let Some(transition) = change(state) {
        apply_consequences(worker, proxy, server, transition, online, cause);
    }
}

/// Applies the consequences of a transition that has been made; `before`: the counts before it.
pub fn apply_consequences(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    transition: Transition,
    before: Online,
    cause: Cause<'_>,
) {
    settle_one(worker, proxy, server, transition, before, cause);
    if !server.tracking.has_followers() {
        return;
    }
    let generation = worker.generation();
    generation.program.followers(server, |leader, follower| follow(worker, leader, follower).unwrap_or(false));
}

/// Applies the state of a tracked server to one that tracks it. Returns whether that changed.
fn follow(worker: &Worker, leader: ServerPlace, follower: ServerPlace) -> Option<bool> {
    let generation = worker.generation();
    let (program, live) = (&generation.program, &worker.process.live);
    let (proxy, server) = (program.proxies.get(follower.proxy)?, program.server_at(follower)?);
    let name = format!("{}/{}", program.proxies.get(leader.proxy)?.name, program.server_at(leader)?.name);
    let online = Online::of(proxy, &live.proxies[proxy.index]);
    let transition = live.follow(leader, follower, rt::now())?;
    settle_one(worker, proxy, server, transition, online, Cause::Leader(&name));
    let Transition { before, after } = transition;
    let standing = |status: &ServerStatus| (status.operation(), status.admin, status.is_drained());
    Some(standing(&before) != standing(&after))
}

/// Returns the message about a server whose state, or the state of the server it tracks, was restored from the previous process.
pub fn resumed(
    program: &Program,
    live: &Live,
    proxy: &Proxy,
    server: &Server,
    transition: Transition,
    leader: Option<&str>,
) -> Option<String> {
    let state = &live.proxies[proxy.index];
    let cause = leader.map_or(Cause::SavedServer, Cause::Leader);
    let online = Online::of(proxy, state);
    let followed = name_of_leader(program, server);
    let scene = Scene { transition, online, waiting: 0, leader: followed.as_deref(), cause };
    scene.resumed().map(|text| format!("{} {text}", full_name(proxy, server)))
}

fn full_name(proxy: &Proxy, server: &Server) -> String {
    format!("{}erver {}/{}", if server.backup { "Backup S" } else { "S" }, proxy.name, server.name)
}

/// Returns the name of the server that this one tracks.
fn name_of_leader(program: &Program, server: &Server) -> Option<String> {
    let leader = server.tracking.leader?;
    Some(format!("{}/{}", program.proxies.get(leader.proxy)?.name, program.server_at(leader)?.name))
}

fn settle_one(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    transition: Transition,
    before: Online,
    cause: Cause<'_>,
) {
    let state = &worker.process.live.proxies[proxy.index];
    let online = Online::of(proxy, state);
    let leader = name_of_leader(&worker.generation().program, server);
    let scene = Scene { transition, online, waiting: state.queued(None).0, leader: leader.as_deref(), cause };
    let name = full_name(proxy, server);
    let mut sentences = Vec::new();
    for Sentence { level, text, mailed } in scene.sentences() {
        let text = format!("{name} {text}");
        worker.announce(proxy.index, level, &text);
        if mailed {
            mail::alert(worker, proxy, level, &text);
        }
        sentences.push(text);
    }
    let (had_servers, has_servers) = (!before.is_empty(), !online.is_empty());
    let sentences = &sentences;
    record::changed(worker, &ServerChange { proxy, server, transition, cause, sentences, had_servers, has_servers });
    let why = match cause {
        Cause::Check { .. } => None,
        Cause::Order(orderer) => Some(orderer.sentence()),
        _ => Some(""),
    };
    events::changed(worker, proxy, server, transition, why);
    health_watch::changed(&worker.process);
    if had_servers && !has_servers {
        let (kind, name) = (sentences::kind(proxy), &proxy.name);
        let text = format!("{kind} {name} has no server available!");
        worker.logger.message(Some(proxy.index), LogLevel::Emerg, &text);
        worker.process.host.say(Severity::Alert, &format!("{kind} '{name}' has no server available!"));
    }
    let Transition { before, after } = transition;
    let serves = |status: &ServerStatus| status.up && status.admin != Admin::Maintenance;
    if !serves(&before) && serves(&after) {
        slow_start::watch(Arc::clone(state));
    }
    shut_sessions(worker, proxy, server, &transition);
}

/// Applies `on-marked-down shutdown-sessions` and `on-marked-up shutdown-backup-sessions`.
fn shut_sessions(worker: &Worker, proxy: &Proxy, server: &Server, transition: &Transition) {
    let Some(backend) = &proxy.backend else { return };
    // A server in maintenance counts as down, regardless of its checks.
    let standing = |status: &ServerStatus| match status.admin {
        Admin::Maintenance => Operation::Down,
        _ => status.operation(),
    };
    let (before, after) = (standing(&transition.before), standing(&transition.after));
    let balanced = transition.after.admin == Admin::Ready && transition.after.weight > 0;
    let (why, at): (Ending, Vec<usize>) = match (before, after) {
        (before, Operation::Down) if before != Operation::Down && server.down_shuts_sessions => {
            (Ending::Down, vec![server.index])
        }
        (Operation::Down, Operation::Up) if server.up_shuts_backups && !server.backup && balanced => {
            let backups = backend.servers.iter().filter(|server| server.backup);
            (Ending::Up, backups.map(|server| server.index).collect())
        }
        _ => return,
    };
    let (shared, proxy) = (Arc::clone(&worker.process), proxy.index);
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        for server in at {
            session_shutdown::shut_sessions(&shared, ServerPlace { proxy, server }, why).await;
        }
    });
}

/// Sets the administrative state of a server.
pub fn set_admin(worker: &Worker, proxy: &Proxy, server: &Server, admin: Admin, orderer: Orderer) {
    let was_out = worker.process.live.proxies[proxy.index]
        .status(server.index)
        .is_some_and(|before| before.admin == Admin::Maintenance);
    change(worker, proxy, server, |state| state.set_admin(server.index, admin, rt::now()), Cause::Order(orderer));
    if !was_out && admin == Admin::Maintenance {
        // A server in maintenance gets no connections; those in use are not pooled again.
        worker.process.forget_links(server.serial);
    }
}

/// Forces the result of one of a server's checks, by a command.
pub fn force(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    checker: Checker,
    operation: Operation,
    orderer: Orderer,
) {
    let changes = |state: &ProxyState| state.force(server.index, checker, operation, rt::now());
    change(worker, proxy, server, changes, Cause::Order(orderer));
}
