//! The status of a frontend, backend, listener or server, in the words of HAProxy's statistics (management manual, "9.1. CSV
//! format"). Must never change one.

use super::object::{Kind, Object};
use engine::frontends::Opening;
use live::health::Operation;
use live::{Admin, Checker};
use policy::program::Server;

impl<'a> Object<'a> {
    /// Returns the text of the column `status`.
    pub(crate) fn status(&self) -> String {
        match self.kind {
            Kind::Frontend | Kind::Listener(_) => self.opening().to_owned(),
            Kind::Server(server) => self.server_status(server),
            Kind::Backend => {
                let up = self.servers().next().is_none() || self.weight(|one| one.weight) > 0;
                let word = if up { "UP" } else { "DOWN" };
                let word = match self.state().is_published() {
                    true => word.to_owned(),
                    false => format!("{word} (UNPUB)"),
                };
                if !self.counts_servers {
                    return word;
                }
                let statuses = self.servers().filter_map(|server| self.state().status(server.index));
                let running = statuses.filter(|one| one.admin != Admin::Maintenance && one.up && one.resolved).count();
                format!("{word} ({running}/{})", self.servers().count())
            }
        }
    }

    /// Returns the status as in HAProxy's table. A server that tracks another one shows the checks of the tracked
    /// server.
    fn server_status(&self, server: &'a Server) -> String {
        let Some(status) = self.state().status(server.index) else { return "MAINT".to_owned() };
        if !status.resolved {
            return "MAINT (resolution)".to_owned();
        }
        if status.admin == Admin::Maintenance {
            let leader = self.leader(server).filter(|_| status.inherited.maintenance);
            return leader.map_or_else(|| "MAINT".to_owned(), |leader| format!("MAINT (via {leader})"));
        }
        if status.ejected {
            return "EJECTED".to_owned();
        }
        let checked = self.checked(server);
        let (health, agent) = (self.enabled(checked, Checker::Health), self.enabled(checked, Checker::Agent));
        let word = match status.operation() {
            Operation::Up if status.admin == Admin::Drain => match agent {
                Some(_) => return "DRAIN (agent)".to_owned(),
                None => "DRAIN",
            },
            Operation::Up if health.is_none() => return "no check".to_owned(),
            Operation::Up => "UP",
            Operation::Stopping => "NOLB",
            Operation::Down if agent.as_ref().is_some_and(|agent| !agent.is_up()) => return "DOWN (agent)".to_owned(),
            Operation::Down if health.is_none() && agent.is_some() => {
                let checks = self.checks_of(checked, Checker::Health);
                // Defaults of `rise` and the check counter for a server without checks.
                let (level, rise) = checks.map_or((0, 2), |checks| (checks.level(), checks.thresholds().0));
                return format!("DOWN {level}/{rise}");
            }
            Operation::Down => "DOWN",
        };
        let serves = status.operation() != Operation::Down;
        // A stopping server that tracks another one shows the progress of the other's checks, enabled or not.
        let shown =
            (checked.serial != server.serial && status.stopping).then(|| self.checks_of(checked, Checker::Health));
        shown.flatten().or(health).map_or_else(|| word.to_owned(), |health| health.standing(word, serves))
    }

    fn opening(&self) -> &'static str {
        match self.worker.process.opening(self.proxy.index) {
            _ if self.proxy.disabled => return "STOP",
            Opening::Shut => return "STOP",
            Opening::Paused => return "PAUSED",
            Opening::Open => {}
        }
        match self.kind {
            Kind::Listener(bind) if bind.maxconn.is_some_and(|most| self.current() >= most) => "FULL",
            Kind::Listener(_) if self.state().feconn() >= self.state().frontend_gate().bound() => "WAITING",
            _ => "OPEN",
        }
    }
}
