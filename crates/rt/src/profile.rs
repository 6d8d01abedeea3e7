//! What the tasks of a worker cost, by kind, while that is measured. Must never read a clock.

use std::time::Duration;

use base::Moment;

/// Kinds of tasks, by their place in [`Profile::kinds`].
pub const KINDS: usize = 4;

/// What the tasks of one kind have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCost {
    /// Their calls.
    pub calls: u64,
    /// How long those took.
    pub busy: Duration,
    /// Time between their wakings and the calls that followed.
    pub late: Duration,
}

/// What tasks have cost since their times were measured first ([`crate::measure_tasks`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Tasks with a tag (sessions and streams), other normal tasks, heavy ones, background ones.
    pub kinds: [KindCost; KINDS],
    /// Tasks of each kind that are queued now.
    pub queued: [usize; KINDS],
    /// When measuring began, and when it ended; `None`: it was never measured, or still is.
    pub since: Option<Moment>,
    /// See [`Profile::since`].
    pub until: Option<Moment>,
}

/// Adds a call.
pub(crate) fn add(profile: &mut Profile, kind: usize, busy: Duration, late: Duration) {
    let cost = &mut profile.kinds[kind];
    cost.calls += 1;
    cost.busy += busy;
    cost.late += late;
}
