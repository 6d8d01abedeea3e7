//! The older processes that the command line names (`-sf`, `-st`): asked to let go of their addresses, to go on, and at
//! last to leave (management guide, section 4). Must never signal anybody else.

use crate::arguments::Farewell;
use rt::Signal;

/// The older processes, as far as they have not been dismissed. Dropped before that, they get their addresses back.
#[derive(Debug, Default)]
pub struct Predecessors {
    processes: Vec<(u32, Farewell)>,
    paused: bool,
}

impl Predecessors {
    /// Those that the command line names.
    #[must_use]
    pub fn new(processes: &[(u32, Farewell)]) -> Self {
        Self { processes: processes.to_vec(), paused: false }
    }

    /// Asks them to stop listening for a while. True if there is anybody to be asked.
    pub fn pause(&mut self) -> bool {
        self.paused = true;
        self.send(Signal::TerminalOutput)
    }

    /// This process serves: tells them to leave.
    pub fn dismiss(mut self) {
        for (pid, wish) in std::mem::take(&mut self.processes) {
            let signal = match wish {
                Farewell::Finish => Signal::User1,
                Farewell::Terminate => Signal::Terminate,
            };
            // One that has gone already needs no telling.
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
