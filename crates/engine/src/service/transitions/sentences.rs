//! Log messages about a server's state change, in HAProxy's words. Must never look anything up.

use config::spec::{LogLevel, ProxyKind};
use live::health::Operation;
use live::{Admin, ServerStatus, Transition};
use policy::program::Proxy;

use super::{Cause, Online};

/// State change and context of a message.
pub(super) struct Scene<'a> {
    pub(super) transition: Transition,
    pub(super) online: Online,
    /// Requests in the backend's queue.
    pub(super) waiting: u32,
    /// Name of the server that this one tracks.
    pub(super) leader: Option<&'a str>,
    pub(super) cause: Cause<'a>,
}

/// A message without the server's name, and its level.
pub(super) struct Sentence {
    pub(super) level: LogLevel,
    pub(super) text: String,
    /// It is sent by mail too ("email-alert level").
    pub(super) mailed: bool,
}

/// Creates a message for the log only.
fn logged(level: LogLevel, text: String) -> Sentence {
    Sentence { level, text, mailed: false }
}

/// Creates a message for log and mail.
fn mailed(level: LogLevel, text: String) -> Sentence {
    Sentence { level, text, mailed: true }
}

/// HAProxy's word for a proxy that has no server left.
pub(super) fn kind(proxy: &Proxy) -> &'static str {
    if proxy.kind == ProxyKind::Backend { "backend" } else { "proxy" }
}

impl Scene<'_> {
    /// Returns the messages of a state change.
    pub(super) fn sentences(&self) -> Vec<Sentence> {
        let Transition { before, after } = &self.transition;
        let was_out = before.admin == Admin::Maintenance;
        match (was_out, after.admin == Admin::Maintenance) {
            (false, true) => vec![self.entering()],
            (true, false) => self.leaving(),
            (true, true) => self.remaining(),
            (false, false) => self.draining().into_iter().chain(self.operating()).collect(),
        }
    }

    /// Returns the message about a server whose state was restored at the start of a process.
    pub(super) fn resumed(&self) -> Option<String> {
        let Transition { before, after } = &self.transition;
        let served = |status: &ServerStatus| status.up && status.admin != Admin::Maintenance;
        let reason = match self.cause {
            Cause::Leader(_) => self.via(),
            _ => ", changed from server-state after a reload".to_owned(),
        };
        let was_written = before.forced == Admin::Maintenance;
        match after.operation() {
            _ if was_written && after.forced != Admin::Maintenance => {
                Some("is UP/READY (leaving forced maintenance).".to_owned())
            }
            _ if was_written => None,
            Operation::Down => before.up.then(|| format!("is DOWN{reason}. {}", self.left())),
            _ if served(before) && !served(after) && matches!(self.cause, Cause::Leader(_)) => {
                Some(format!("is DOWN{reason}. {}", self.left()))
            }
            Operation::Stopping if !before.stopping => Some(format!("is stopping{reason}. {}", self.online())),
            Operation::Up if after.throttle < before.throttle => Some(format!("is UP. {}", self.online())),
            _ => None,
        }
    }

    /// Returns ` via b/s` if the tracked server is the cause.
    fn via(&self) -> String {
        match self.cause {
            Cause::Leader(leader) => format!(" via {leader}"),
            Cause::Name(reason) => format!(" ({reason})"),
            _ => String::new(),
        }
    }

    /// Returns ` via b/s`, regardless of the cause.
    fn of_leader(&self) -> String {
        self.leader.map_or_else(String::new, |leader| format!(" via {leader}"))
    }

    fn on_backup(&self) -> &'static str {
        if self.online.active == 0 && self.online.backup > 0 { " Running on backup." } else { "" }
    }

    fn left(&self) -> String {
        let (Online { active, backup }, Transition { before, after }) = (self.online, &self.transition);
        let (running, requeued, waiting) = (after.load.served, before.load.queued, self.waiting);
        let on_backup = self.on_backup();
        format!(
            "{active} active and {backup} backup servers left.{on_backup} {running} sessions active, {requeued} \
             requeued, {waiting} remaining in queue."
        )
    }

    fn online(&self) -> String {
        let (Online { active, backup }, requeued) = (self.online, self.transition.before.load.queued);
        let (on_backup, waiting) = (self.on_backup(), self.waiting);
        format!(
            "{active} active and {backup} backup servers online.{on_backup} {requeued} sessions requeued, {waiting} \
             total in queue."
        )
    }

    fn entering(&self) -> Sentence {
        let (before, via) = (&self.transition.before, self.via());
        if !before.up {
            return logged(LogLevel::Notice, format!("was DOWN and now enters maintenance{via}."));
        }
        let served = before.admin == Admin::Ready && !before.stopping;
        let level = if served { LogLevel::Alert } else { LogLevel::Notice };
        logged(level, format!("is going DOWN for maintenance{via}. {}", self.left()))
    }

    fn leaving(&self) -> Vec<Sentence> {
        let Transition { before, after } = &self.transition;
        let forced = if before.forced == Admin::Maintenance { "forced " } else { "" };
        let doing = if after.up { "UP" } else { "DOWN" };
        let ready = if after.admin == Admin::Drain { "DRAIN" } else { "READY" };
        let text = match self.cause {
            Cause::Name(host) => format!("('{host}') is {doing}/{ready} (resolves again)."),
            _ => format!("is {doing}/{ready} (leaving {forced}maintenance)."),
        };
        let mut told = vec![logged(LogLevel::Notice, text)];
        told.extend(self.still_draining());
        told
    }

    /// The message that a server remains in drain mode, following another message.
    fn still_draining(&self) -> Option<Sentence> {
        let after = &self.transition.after;
        let text = match (after.forced, after.inherited.drain) {
            (Admin::Drain, _) => "remains in forced drain mode.".to_owned(),
            (_, true) => format!("remains in drain mode{}.", self.of_leader()),
            _ => return None,
        };
        Some(logged(LogLevel::Notice, text))
    }

    /// The message that a server remains in maintenance for another reason.
    fn remaining(&self) -> Vec<Sentence> {
        let Transition { before, after } = &self.transition;
        let left = |own: bool| match own {
            true => before.forced == Admin::Maintenance && after.forced != Admin::Maintenance,
            false => before.inherited.maintenance && !after.inherited.maintenance,
        };
        let text = match (left(true), left(false)) {
            (true, _) => format!("is leaving forced maintenance but remains in maintenance{}.", self.of_leader()),
            (_, true) => "remains in forced maintenance.".to_owned(),
            (false, false) => return Vec::new(),
        };
        vec![logged(LogLevel::Notice, text)]
    }

    fn draining(&self) -> Option<Sentence> {
        let Transition { before, after } = &self.transition;
        let reasons = |status: &ServerStatus| (status.forced == Admin::Drain, status.inherited.drain);
        match (before.is_drained(), after.is_drained()) {
            (false, true) => {
                let rest = if before.up { self.online() } else { self.left() };
                Some(mailed(LogLevel::Notice, format!("enters drain state{}. {rest}", self.via())))
            }
            (true, false) => {
                let doing = if after.up { "UP" } else { "DOWN" };
                let forced = if before.forced == Admin::Drain { "forced " } else { "" };
                Some(logged(LogLevel::Notice, format!("is {doing} (leaving {forced}drain){}.", self.via())))
            }
            (true, true) if reasons(before) != reasons(after) => self.still_draining(),
            _ => None,
        }
    }

    fn operating(&self) -> Option<Sentence> {
        let Transition { before, after } = &self.transition;
        let (was, now) = (before.operation(), after.operation());
        if was == now {
            return None;
        }
        let reason = match self.cause {
            Cause::Check { is_logged: true, .. } => String::new(),
            Cause::Check { report, .. } => format!(", {}", crate::check::reason(report)),
            Cause::Order(orderer) => format!(", {}", orderer.sentence()),
            Cause::SavedServer => ", changed from server-state after a reload".to_owned(),
            Cause::Leader(_) | Cause::Name(_) => self.via(),
        };
        Some(match now {
            Operation::Down => {
                // A server that got no new requests anyway causes no alert.
                let quiet = was == Operation::Stopping || before.admin == Admin::Drain;
                let level = if quiet { LogLevel::Notice } else { LogLevel::Alert };
                mailed(level, format!("is DOWN{reason}. {}", self.left()))
            }
            Operation::Stopping => mailed(LogLevel::Notice, format!("is stopping{reason}. {}", self.online())),
            Operation::Up => mailed(LogLevel::Notice, format!("is UP{reason}. {}", self.online())),
        })
    }
}
