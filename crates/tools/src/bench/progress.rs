//! What the user sees while a benchmark runs: a line a step, and on a terminal the one that is under way. Must never be
//! read by a program: results are.

use std::io::{IsTerminal, Write};

/// Writes to standard output.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    terminal: bool,
}

impl Progress {
    /// For whatever standard output is.
    #[must_use]
    pub fn of_standard_output() -> Self {
        Self { terminal: std::io::stdout().is_terminal() }
    }

    /// Writes lines that stay.
    pub fn line(self, text: &str) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        write(&format!("{clear}{text}\n"));
    }

    /// Shows what is under way, until the next line; nothing without a terminal.
    pub fn under_way(self, text: &str) {
        if self.terminal {
            write(&format!("\r\x1b[K{text}"));
        }
    }

    /// Takes away what is under way.
    pub fn clear(self) {
        if self.terminal {
            write("\r\x1b[K");
        }
    }
}

/// Writes to standard output; a reader that has left is no error.
pub fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
