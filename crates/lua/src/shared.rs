//! What a state of Lua keeps beside its scripts, for those who run them. Must never run one.

use std::collections::HashMap;
use std::time::Duration;

use base::moment::Moment;
use mlua::{Function, Table, Thread};

use crate::lent::Lent;

/// How tracebacks name the classes; HAProxy has them in C.
pub(crate) const CLASSES: &str = "[haproxy]";

/// Why a run was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// `tune.lua.burst-timeout`.
    Burst,
    /// The other timeouts.
    Execution,
}

/// What runs at the moment, for the hook.
pub(crate) struct Burst {
    /// When it is cut, and why.
    pub(crate) deadline: Option<(Moment, Cut)>,
    /// The coroutine that may pause.
    pub(crate) thread: Option<Thread>,
    /// It may take its time: it may pause, or the process starts.
    pub(crate) may_block: bool,
    /// It was cut.
    pub(crate) cut: Option<Cut>,
}

scoped_tls_hkt::scoped_thread_local!(
    /// The stream that is at hand while a function runs on this thread.
    pub(crate) static LENT: for<'a> &'a dyn Lent
);

/// What was registered in a state.
#[derive(Default)]
pub(crate) struct Functions(pub(crate) HashMap<String, Function>);

/// The mark of what a script asks of its driver by a pause.
pub(crate) struct Mark(pub(crate) Table);

/// What an action that returns `act.YIELD` wants to be woken after.
pub(crate) struct WakeTime(pub(crate) Duration);
