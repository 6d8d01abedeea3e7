//! The older processes that the command line names (`-sf`, `-st`): signalled to release their addresses, to resume, and
//! finally to leave (management guide, section 4). Must never signal any other process.

use crate::arguments::StopMode;
use rt::Signal;

/// The older processes, unless dismissed. If dropped before that, they resume listening.
#[derive(Debug, Default)]
pub struct Predecessors {
    processes: Vec<(u32, StopMode)>,
    paused: bool,
}

impl Predecessors {
    /// Creates it for the processes that the command line names.
    #[must_use]
    pub fn new(processes: &[(u32, StopMode)]) -> Self {
        Self { processes: processes.to_vec(), paused: false }
    }

    /// Signals them to stop listening temporarily. True if at least one was signalled.
    pub fn pause(&mut self) -> bool {
        self.paused = true;
        self.send(Signal::TerminalOutput)
    }

    /// Called when this process serves: signals them to leave.
    pub fn dismiss(mut self) {
        for (pid, wish) in std::mem::take(&mut self.processes) {
            let signal = match wish {
                StopMode::Finish => Signal::User1,
                StopMode::Terminate => Signal::Terminate,
            };
            // A process may have exited already.
            let _ = rt::process::kill(pid, signal);
        }
    }

    fn send(&self, signal: Signal) -> bool {
        self.processes.iter().filter(|(pid, _)| rt::process::kill(*pid, signal).is_ok()).count() > 0
    }
}

impl Drop for Predecessors {
    fn drop(&mut self) {
        if self.paused {
            self.send(Signal::TerminalInput);
        }
    }
}
