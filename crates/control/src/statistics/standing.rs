//! The state of a server in one word, with its reason and its time (Weir's own, for the JSON API). Must never change one.

use base::WallTime;
use live::health::{Health, Verdict};
use live::{Admin, Availability, Checker, LastChange, ServerCounts, ServerStatus};
use policy::program::Server;

use super::object::{Kind, Object};

/// Maximum length of a check's text, in characters.
const LONGEST_DETAIL: usize = 128;

/// The state of a server with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its name in the API.
    pub(crate) state: &'static str,
    /// The status of its check, such as `L7STS/503`, or the cause of an administrative state; empty: none is known.
    pub(crate) reason: String,
    /// The text of its check or its agent; may be empty.
    pub(crate) detail: String,
    /// When it last became usable or unusable; `None`: `clear counters all` has cleared that.
    pub(crate) since: Option<WallTime>,
}

impl Object<'_> {
    /// Returns the state of a server with its reason; `None` for other objects.
    pub(crate) fn standing(&self) -> Option<Standing> {
        let Kind::Server(server) = self.kind else { return None };
        let status = self.state().status(server.index)?;
        let checked = self.checked(server);
        let (health, agent) = (self.enabled(checked, Checker::Health), self.enabled(checked, Checker::Agent));
        let availability = status.availability();
        let is_unchecked = availability == Availability::Usable && health.is_none() && agent.is_none();
        let (reason, detail) = match availability {
            _ if is_unchecked => Default::default(),
            Availability::Unresolved => ("resolution".to_owned(), String::new()),
            Availability::Ejected => ("eject-outliers".to_owned(), String::new()),
            Availability::Maintenance if status.inherited.maintenance => (self.via(server), String::new()),
            Availability::Maintenance => (maintenance(server, &status).to_owned(), String::new()),
            Availability::Drain if status.inherited.drain && status.forced != Admin::Drain => {
                (self.via(server), String::new())
            }
            Availability::Drain if status.admin == Admin::Drain => match &agent {
                Some(agent) => ("agent".to_owned(), detail(agent)),
                None => ("administrator".to_owned(), String::new()),
            },
            Availability::Drain => ("weight 0".to_owned(), String::new()),
            Availability::Usable | Availability::Stopping | Availability::Down => {
                let (reason, detail) = by_checks(availability, health.as_ref(), agent.as_ref());
                let is_tracking = checked.serial != server.serial;
                (if is_tracking { format!("{reason} {}", self.via(server)) } else { reason }, detail)
            }
        };
        let state = if is_unchecked { "unchecked" } else { name(availability) };
        Some(Standing { state, reason, detail, since: self.time_of(status.changed) })
    }

    /// Returns how many servers of a backend serve; `None` for other objects.
    pub(crate) fn server_counts(&self) -> Option<ServerCounts> {
        let Kind::Backend = self.kind else { return None };
        Some(self.state().server_counts())
    }

    /// Returns `via b/s`: the server that a server tracks.
    fn via(&self, server: &Server) -> String {
        self.leader(server).map_or_else(String::new, |leader| format!("via {leader}"))
    }

    /// Returns the calendar time of a change; without one, the time of the start.
    fn time_of(&self, change: LastChange) -> Option<WallTime> {
        let (start, wall) = self.worker.process.host.started();
        let at = change.at.unwrap_or(start);
        (!change.is_cleared).then(|| wall.saturating_add(at.saturating_since(start)))
    }
}

/// Returns the name of a state in the API.
const fn name(availability: Availability) -> &'static str {
    match availability {
        Availability::Usable => "up",
        Availability::Stopping => "stopping",
        Availability::Drain => "drain",
        Availability::Down => "down",
        Availability::Ejected => "ejected",
        Availability::Maintenance => "maint",
        Availability::Unresolved => "unresolved",
    }
}

/// Returns the cause of a maintenance.
fn maintenance(server: &Server, status: &ServerStatus) -> &'static str {
    let was_ever_usable = status.downs > 0 || status.changed.is_cleared;
    if server.disabled && !was_ever_usable { "configuration" } else { "administrator" }
}

/// Returns the reason and the text of a state that checks determine.
fn by_checks(state: Availability, health: Option<&Health>, agent: Option<&Health>) -> (String, String) {
    if let Some(agent) = agent.filter(|agent| state == Availability::Down && !agent.is_up()) {
        return ("agent".to_owned(), detail(agent));
    }
    // A check that passes raises the level, also if the server is still down.
    let is_forced = |health: &Health| health.level() == 0 && health.last().status.verdict() == Some(Verdict::Passed);
    match health {
        Some(health) if state != Availability::Down || !is_forced(health) => (result(health), detail(health)),
        _ if state == Availability::Down => ("command".to_owned(), String::new()),
        _ => Default::default(),
    }
}

/// Returns the status of the last check, with its code if it has one.
fn result(health: &Health) -> String {
    let last = health.last();
    let name = last.status.name();
    let code = last.code.filter(|_| last.status.is_application());
    code.map_or_else(|| name.to_owned(), |code| format!("{name}/{code}"))
}

fn detail(health: &Health) -> String {
    let text = health.last().info.chars().map(|one| if one.is_control() { ' ' } else { one });
    text.take(LONGEST_DETAIL).collect()
}
