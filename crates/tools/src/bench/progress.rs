//! Output for the user while a benchmark runs: a line per step, and on a terminal the current step. Must never be
//! parsed by a program: the results are.

use std::io::{IsTerminal, Write};

/// Writes to standard output.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    terminal: bool,
}

impl Progress {
    /// Detects whether standard output is a terminal.
    #[must_use]
    pub fn of_standard_output() -> Self {
        Self { terminal: std::io::stdout().is_terminal() }
    }

    /// Writes permanent lines.
    pub fn line(self, text: &str) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        write(&format!("{clear}{text}\n"));
    }

    /// Shows the current step until the next line; nothing without a terminal.
    pub fn under_way(self, text: &str) {
        if self.terminal {
            write(&format!("\r\x1b[K{text}"));
        }
    }

    /// Removes the current step.
    pub fn clear(self) {
        if self.terminal {
            write("\r\x1b[K");
        }
    }
}

/// Writes to standard output; a closed pipe is not an error.
pub fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
