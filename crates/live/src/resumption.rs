//! Restores a server's state from the previous process. Must never be called for a server that has served requests.

use super::server::ServerState;
use super::servers::Servers;
use super::{Admin, ServerPlan, Transition};
use crate::health::{CheckStatus, Health, Operation, Report};
use crate::saved_state::{FormerOperation, SavedState};
use base::moment::Moment;
use std::time::Duration;

/// The configuration of a server that determines how its saved state is applied.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerConfiguration {
    disabled: bool,
    weight: u32,
    rise: u32,
    fall: u32,
    slowstart: Option<Duration>,
}

impl ServerConfiguration {
    pub(super) fn of(server: &ServerPlan) -> Self {
        // The values reported for servers without checks.
        const UNCHECKED: (u32, u32) = (2, 3);
        let (rise, fall) = server.check.as_ref().map_or(UNCHECKED, |check| (check.rise.max(1), check.fall.max(1)));
        Self { disabled: server.disabled, weight: server.weight, rise, fall, slowstart: server.slowstart }
    }

    /// Returns its administrative state. A maintenance by the configuration remains unless a command had ended it.
    fn admin(&self, saved: &SavedState) -> Admin {
        let admin = saved.admin;
        let ordered = admin.maintenance && (self.disabled || !admin.configured);
        match (ordered, admin.drain) {
            _ if self.disabled && !admin.configured => Admin::Maintenance,
            (true, _) => Admin::Maintenance,
            (false, true) => Admin::Drain,
            (false, false) => Admin::Ready,
        }
    }

    /// Returns its health level.
    fn level(&self, saved: &SavedState) -> u32 {
        let (rise, full) = (self.rise, self.rise + self.fall - 1);
        match (saved.operation, saved.level) {
            (FormerOperation::Stopped, _) => 0,
            (FormerOperation::Starting, level) if level > 0 && level < rise => level,
            (FormerOperation::Starting, _) => rise - 1,
            (FormerOperation::Running, _) => full,
            (FormerOperation::Stopping, level) if level >= rise && level < full => level,
            (FormerOperation::Stopping, _) => rise,
        }
    }
}

impl ServerState {
    fn resume(&mut self, written: ServerConfiguration, saved: &SavedState, heeds_weights: bool, now: Moment) {
        if saved.initial_weight == written.weight {
            let counts = heeds_weights || saved.weight == 0;
            self.weight = if counts { saved.weight } else { self.initial_weight };
        }
        let was_disabled = self.forced == Admin::Maintenance;
        self.forced = written.admin(saved);
        self.changed = Some(Moment::from_nanos(
            now.as_nanos().saturating_sub(u64::try_from(saved.since.as_nanos()).unwrap_or(u64::MAX)),
        ));
        let level = written.level(saved);
        // An unchecked server that was down because of a past maintenance would remain down forever.
        let maintained = saved.admin.maintenance || saved.admin.configured || saved.admin.passing;
        let is_checked = self.health.is_some() || self.agent.is_some();
        let revives = was_disabled || (maintained && !is_checked);
        if !self.follows {
            self.operation = match saved.operation {
                FormerOperation::Stopped if revives && self.forced != Admin::Maintenance => Operation::Up,
                FormerOperation::Stopped => Operation::Down,
                FormerOperation::Starting | FormerOperation::Running => Operation::Up,
                FormerOperation::Stopping => Operation::Stopping,
            };
        }
        if let Some(health) = &mut self.health {
            health.resume(level, saved.status, saved.checked);
        }
        if let (Some(agent), Some(enabled)) = (&mut self.agent, saved.asked) {
            agent.enable(enabled);
        }
        if self.admin() == Admin::Maintenance {
            self.pause();
        }
        self.former_level = if self.admin() == Admin::Maintenance { 0 } else { level };
        let slow = written.slowstart.is_some_and(|slowstart| saved.since < slowstart);
        if saved.operation == FormerOperation::Starting && slow {
            self.warming.start(now);
            self.changed = Some(now);
        }
    }
}

impl Health {
    /// Restores the level, the last status, and whether checks are enabled.
    fn resume(&mut self, level: u32, status: CheckStatus, enabled: Option<bool>) {
        self.set_level(level);
        self.set_last(Report { status, ..Report::default() });
        if let Some(enabled) = enabled {
            self.enable(enabled);
        }
    }
}

impl Servers {
    /// Sets a column of the statistics that is stored here, of a server, or of all servers.
    pub(super) fn preset(&mut self, server: Option<usize>, column: &str, value: u64, now: Moment) {
        let nanos = value.saturating_mul(1_000_000_000);
        let changed = Moment::from_nanos(now.as_nanos().saturating_sub(nanos));
        let Some(server) = server else { return self.preset_outages(column, value, changed) };
        let Some(state) = self.servers.get_mut(server) else { return };
        match (column, &mut state.health) {
            ("chkfail", Some(health)) => health.preset(Some(value), None),
            ("hanafail", Some(health)) => health.preset(None, Some(value)),
            ("chkdown", _) => state.downs = value,
            // A state file takes precedence.
            ("lastchg", _) if state.changed.is_none() => state.changed = Some(changed),
            _ => {}
        }
    }

    /// Restores a server's state.
    pub(super) fn resume(
        &mut self,
        server: usize,
        written: ServerConfiguration,
        saved: &SavedState,
        now: Moment,
    ) -> Option<Transition> {
        let before = self.status(server)?;
        let heeds_weights = self.heeds_weights();
        self.servers.get_mut(server)?.resume(written, saved, heeds_weights, now);
        self.settle(server, now);
        let after = self.status(server)?;
        Some(Transition { before, after })
    }
}
