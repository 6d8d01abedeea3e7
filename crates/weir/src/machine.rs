//! Machine settings of the workers: processors, priority, descriptors, and the watchdog that reports a blocked worker.
//! Must never access a connection.

use crate::files::reason;
use crate::messages::Messages;
use base::ProcessorSet;
use config::spec::MachineSpec;
use rt::Watchdog;
use rt::watchdog::{Stage, Stall};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Default of `warn-blocked-traffic-after`.
const WARN_AFTER: Duration = Duration::from_millis(100);

/// Processor time after which the connection of a blocked task is closed once the task returns; after twice as much the
/// process is aborted. The manual: "a runaway task that fails to respond twice for one second".
const GIVE_UP_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// The processors of each worker; see [`rt::Config::processors`].
    pub processors: Vec<Option<ProcessorSet>>,
    /// Other configured settings.
    pub written: MachineSpec,
}

impl Machine {
    /// Applies the settings to the configuration of the runtime.
    pub fn apply(self, config: &mut rt::Config) {
        config.processors = self.processors;
        config.spin = self.written.busy_polling;
        if let Some(depth) = self.written.run_queue_depth {
            config.run_queue_depth = usize::try_from(depth).unwrap_or(usize::MAX);
        }
        let warn_after = self.written.warn_blocked_after.map_or(WARN_AFTER, Duration::from_millis);
        config.watchdog = Some(Watchdog {
            warn_after,
            give_up_after: GIVE_UP_AFTER,
            report: Arc::new(report),
            afterwards: Some(after_stall),
        });
    }
}

/// Applies settings that need privileges. Missing permissions are reported, but do not prevent the start.
pub fn prepare(written: &MachineSpec, messages: &mut Messages) {
    if let Some(nice) = written.nice
        && let Err(error) = rt::process::set_priority(nice)
    {
        messages.warning(&format!("Cannot change the scheduling priority to {nice} : {}", reason(&error)));
    }
    if written.prealloc_fd
        && let Err(error) = rt::process::preallocate_descriptors()
    {
        messages.warning(&format!("Cannot open the highest descriptor in advance : {}", reason(&error)));
    }
}

/// Reports a blocked worker. A task that is not expected to return leaves its worker's memory and locks in an unknown
/// state: only then the process is aborted, so that a master or a service manager can start another one.
fn report(stall: &Stall<'_>) {
    let mut messages = Messages::while_serving(false);
    match stall.stage {
        Stage::Slow => messages.warning(&sentence(stall)),
        Stage::Overdue => messages.alert(&format!("{} Its connection is closed once it returns.", sentence(stall))),
        Stage::Stuck => {
            messages.alert(&format!("Thread {} is about to kill the process. {}", number(stall), sentence(stall)));
            std::process::abort();
        }
    }
}

/// Called when the task that blocked its worker has returned: reports its session, which could not be read before, and
/// closes its connection if it took too long.
fn after_stall(tag: u64, stage: Stage) {
    let found = if stage == Stage::Slow { engine::describe_session(tag) } else { engine::end_session(tag) };
    let (whose, closed) = match found {
        Some(whose) if stage == Stage::Slow => (whose, ""),
        Some(whose) => (whose, " Its connection is closed."),
        None => ("it has ended".to_owned(), ""),
    };
    Messages::while_serving(false).warning(&format!("the task of session {tag:#x} has returned: {whose}.{closed}"));
}

/// Returns the thread number, counted from 1 as in HAProxy's configuration.
fn number(stall: &Stall<'_>) -> u32 {
    u32::from(stall.worker) + 1
}

fn sentence(stall: &Stall<'_>) -> String {
    let (elapsed, busy) = (stall.elapsed.as_millis(), stall.busy.as_millis());
    let task = match stall.tag {
        Some(session) => format!("the task of session {session:#x}"),
        None => "a task of Weir's own".to_owned(),
    };
    let mut text = format!(
        "thread {} (system thread {}) has stopped processing traffic for {elapsed} milliseconds, of which it used the \
         processor for {busy}: {task} does not return.",
        number(stall),
        stall.thread
    );
    if !stall.frames.is_empty() {
        // Tools like addr2line translate these addresses to source lines.
        text.push_str("\n  called from");
        for frame in stall.frames {
            let _ = write!(text, " {frame:#x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_which_thread_which_session_how_long_and_where() {
        let stall = Stall {
            worker: 2,
            thread: 4711,
            tag: Some(0x10),
            elapsed: Duration::from_millis(120),
            busy: Duration::from_millis(110),
            stage: Stage::Slow,
            frames: &[0xabc, 0xdef],
        };
        assert_eq!(
            sentence(&stall),
            "thread 3 (system thread 4711) has stopped processing traffic for 120 milliseconds, of which it used the \
             processor for 110: the task of session 0x10 does not return.\n  called from 0xabc 0xdef"
        );
        let own = Stall { tag: None, frames: &[], ..stall };
        assert!(sentence(&own).ends_with("a task of Weir's own does not return."));
    }

    #[test]
    fn what_is_written_reaches_the_runtime() {
        let written = MachineSpec { warn_blocked_after: Some(7), run_queue_depth: Some(9), ..MachineSpec::default() };
        let mut config = rt::Config::default();
        Machine { written, ..Machine::default() }.apply(&mut config);
        assert_eq!(config.run_queue_depth, 9);
        assert_eq!(config.watchdog.map(|watchdog| watchdog.warn_after), Some(Duration::from_millis(7)));
        let mut config = rt::Config::default();
        let depth = config.run_queue_depth;
        Machine::default().apply(&mut config);
        assert_eq!((config.run_queue_depth, config.watchdog.map(|dog| dog.warn_after)), (depth, Some(WARN_AFTER)));
    }
}
