//! Outcome of a tool. Owns the exit statuses and the format of the last line; must never print anything but that line.

use std::io::Write;
use std::process::ExitCode;

/// Outcome of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Success: status 0.
    Done,
    /// Failure, possibly after a part of the work: status 1, and one line with the reason.
    Failed(String),
    /// The command line or a file was not understood: status 2, and one line with the place.
    Misused(String),
    /// A process cannot be asked: status 2, and one line with the reason.
    Unreachable(String),
    /// That status. The reason was printed.
    Reported(u8),
}

impl Outcome {
    /// Writes the line, if there is one, to standard error as `weir TOOL: …`, and returns the status.
    #[must_use]
    pub fn finish(&self, tool: &str) -> ExitCode {
        let (line, status) = match self {
            Self::Done => return ExitCode::SUCCESS,
            Self::Reported(status) => return ExitCode::from(*status),
            Self::Failed(why) => (why.clone(), 1),
            Self::Unreachable(why) => (why.clone(), 2),
            Self::Misused(why) => (format!("{why}. Run 'weir {tool} --help' for the list of options."), 2),
        };
        // There is no reader if standard error is closed.
        let _ = writeln!(std::io::stderr().lock(), "weir {tool}: {}", on_one_line(&line));
        ExitCode::from(status)
    }
}

/// Escapes control characters, so that quoted text stays on its line and cannot control a terminal.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_stays_on_its_line() {
        assert_eq!(on_one_line("no 'a\nb' \x1b[31mé"), "no 'a\\nb' \\u{1b}[31mé");
    }
}
