//! Records changes of servers' states in the timeline of the dashboard. Must never change one.

use live::health::{CheckStatus, Operation};
use live::timeline::{Author, Timeline, TimelineEvent, TimelineKind};
use live::{Admin, Checker, ServerStatus, Transition};
use policy::program::{Proxy, Server};

use super::cause::{Cause, Orderer};
use crate::worker::Worker;

/// A change of a server's state, and what was logged about it.
pub(super) struct ServerChange<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) server: &'a Server,
    pub(super) transition: Transition,
    pub(super) cause: Cause<'a>,
    /// The sentences of the log.
    pub(super) sentences: &'a [String],
    /// Whether its backend had a server, and has one.
    pub(super) had_servers: bool,
    pub(super) has_servers: bool,
}

/// Records a change of a server's state.
pub(super) fn changed(worker: &Worker, change: &ServerChange<'_>) {
    let timeline = worker.process.service::<Timeline>();
    if !timeline.is_on() {
        return;
    }
    let Transition { before, after } = &change.transition;
    let (proxy, server) = (&*change.proxy.name, &*change.server.name);
    let who = author(change.cause);
    let (reason, detail) = reason(change.cause);
    let note = |kind, server: &str, text: String| {
        let event = TimelineEvent::of_server(kind, who, proxy, server, text);
        timeline.record(rt::wall(), TimelineEvent { reason: reason.clone(), detail: detail.clone(), ..event });
    };
    for (at, kind) in kinds(before, after).into_iter().flatten().enumerate() {
        // Each kind has its sentence; a check may have been logged without one.
        let sentence = change.sentences.get(at).or(change.sentences.last()).cloned();
        note(kind, server, sentence.unwrap_or_else(|| format!("Server {proxy}/{server}: {}.", kind.name())));
    }
    if before.weight != after.weight {
        let text = format!("Server {proxy}/{server} has weight {}, it had {}.", after.weight, before.weight);
        note(TimelineKind::ServerWeight, server, text);
    }
    match (change.had_servers, change.has_servers) {
        (true, false) => note(TimelineKind::BackendDown, "", format!("Backend {proxy} has no server available.")),
        (false, true) => note(TimelineKind::BackendUp, "", format!("Backend {proxy} has a server available.")),
        _ => {}
    }
}

/// Returns the kinds of a change: of the administrative state, and of the operational one.
fn kinds(before: &ServerStatus, after: &ServerStatus) -> [Option<TimelineKind>; 2] {
    let is_out = |status: &ServerStatus| status.admin == Admin::Maintenance;
    let admin = match (is_out(before), is_out(after)) {
        (false, true) => return [Some(TimelineKind::ServerMaintenance), None],
        (true, true) => return [None; 2],
        (true, false) if after.is_drained() => return [Some(TimelineKind::ServerDrain), None],
        (true, false) => return [Some(TimelineKind::ServerReady), None],
        (false, false) => match (before.is_drained(), after.is_drained()) {
            (false, true) => Some(TimelineKind::ServerDrain),
            (true, false) => Some(TimelineKind::ServerReady),
            _ => None,
        },
    };
    let operation = (before.operation() != after.operation()).then(|| match after.operation() {
        Operation::Up => TimelineKind::ServerUp,
        Operation::Stopping => TimelineKind::ServerStopping,
        Operation::Down => TimelineKind::ServerDown,
    });
    [admin, operation]
}

fn author(cause: Cause<'_>) -> Author {
    match cause {
        Cause::Check { report, .. } if report.status == CheckStatus::Analyzed => Author::Traffic,
        Cause::Check { checker: Checker::Health, .. } => Author::Check,
        Cause::Check { checker: Checker::Agent, .. } | Cause::Order(Orderer::Agent) => Author::Agent,
        Cause::Order(Orderer::Cli) => Author::Cli,
        Cause::Order(Orderer::Page) => Author::Page,
        Cause::Order(Orderer::Dashboard) => Author::Dashboard,
        Cause::Order(Orderer::Script) => Author::Script,
        Cause::Leader(_) => Author::Leader,
        Cause::Name(_) => Author::Resolver,
        Cause::SavedServer => Author::StateFile,
    }
}

/// Returns the reason of a change, and the text of the check.
fn reason(cause: Cause<'_>) -> (String, String) {
    match cause {
        Cause::Check { report, .. } => {
            let name = report.status.name();
            let code = report.code.filter(|_| report.status.is_application());
            let reason = code.map_or_else(|| name.to_owned(), |code| format!("{name}/{code}"));
            (reason, report.info.replace(char::is_control, " "))
        }
        Cause::Leader(leader) => (format!("via {leader}"), String::new()),
        Cause::Name(reason) => (reason.to_owned(), String::new()),
        Cause::Order(_) | Cause::SavedServer => Default::default(),
    }
}
