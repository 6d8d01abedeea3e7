//! How a tool ends. Owns the exit statuses and the form of the last line; must never print anything but that line.

use std::io::Write;
use std::process::ExitCode;

/// How a tool ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was asked: status 0.
    Done,
    /// It could not be done, or not to its end: status 1, and one line that says why.
    Failed(String),
    /// The command line or a file was not understood: status 2, and one line that says where.
    Misused(String),
}

impl Outcome {
    /// Writes the line, if there is one, to standard error as `weir TOOL: …`, and gives the status.
    #[must_use]
    pub fn finish(&self, tool: &str) -> ExitCode {
        let (line, status) = match self {
            Self::Done => return ExitCode::SUCCESS,
            Self::Failed(why) => (why.clone(), 1),
            Self::Misused(why) => (format!("{why}. Run 'weir {tool} --help' for the list of options."), 2),
        };
        // There is no reader when standard error is closed.
        let _ = writeln!(std::io::stderr().lock(), "weir {tool}: {}", on_one_line(&line));
        ExitCode::from(status)
    }
}

/// What is quoted from a command line or a file stays within its line, and orders nothing from a terminal.
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
