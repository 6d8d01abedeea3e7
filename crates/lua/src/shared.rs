//! Data of a Lua state for the code that runs its functions. Must never run a script.

use std::collections::HashMap;
use std::time::Duration;

use base::moment::Moment;
use mlua::{Function, Table, Thread};

use crate::stream_handle::StreamHandle;

/// The name of the classes in tracebacks; HAProxy implements them in C.
pub(crate) const CLASSES: &str = "[haproxy]";

/// The timeout that aborted a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeoutKind {
    /// `tune.lua.burst-timeout`.
    Burst,
    /// Other timeouts.
    Execution,
}

/// The current run, as seen by the hook.
pub(crate) struct Burst {
    /// Its deadline, and the timeout that it stems from.
    pub(crate) deadline: Option<(Moment, TimeoutKind)>,
    /// The coroutine that may yield.
    pub(crate) thread: Option<Thread>,
    /// It may block: it may yield, or the process is starting.
    pub(crate) may_block: bool,
    /// The timeout that aborted it.
    pub(crate) cut: Option<TimeoutKind>,
}

scoped_tls_hkt::scoped_thread_local!(
    /// The stream of the function that runs on this thread.
    pub(crate) static LENT: for<'a> &'a dyn StreamHandle
);

/// Functions registered in a state.
#[derive(Default)]
pub(crate) struct Functions(pub(crate) HashMap<String, Function>);

/// The first value of a yield that is a request to the driver.
pub(crate) struct Mark(pub(crate) Table);

/// The waiting time of an action that returns `act.YIELD`.
pub(crate) struct WakeTime(pub(crate) Duration);
