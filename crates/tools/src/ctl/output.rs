//! Output of answers: on standard output, errors of the API on standard error. Must never let a process that is asked
//! control the terminal.

use super::answer::{AnswerSink, Verdict};
use super::json;
use std::io::{IsTerminal, Write};

/// Maximum size of an answer that has to be held as a whole, in bytes.
const MOST_HELD: usize = 64 << 20;

/// Destination of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

/// Prints answers.
#[derive(Debug)]
pub struct Output {
    /// Answers are printed as JSON documents.
    pub is_json: bool,
    /// Whether each stream is a terminal: standard output, standard error.
    terminals: [bool; 2],
    /// Standard output was closed by its reader.
    pub is_closed: bool,
    /// An answer of a repeated command was printed.
    has_looked: bool,
}

impl Output {
    pub fn new(is_json: bool) -> Self {
        let terminals = [std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
        Self { is_json, terminals, is_closed: false, has_looked: false }
    }

    /// Begins the next answer of a repeated command: a terminal is cleared, other output is separated by an empty line.
    pub fn begin_look(&mut self) {
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        match (self.terminals[0], is_first) {
            // The text is that of the client, so that it may control the terminal.
            (true, _) if !self.is_json => {
                let mut out = std::io::stdout().lock();
                self.is_closed |= out.write_all(b"\x1b[H\x1b[2J").and_then(|()| out.flush()).is_err();
            }
            (false, false) if !self.is_json => self.write(Stream::Output, b"\n"),
            _ => {}
        }
    }

    /// Prints a line of the client itself.
    pub fn line(&mut self, text: &str) {
        self.write(Stream::Output, format!("{text}\n").as_bytes());
    }

    /// Prints the reason why there is no answer.
    pub fn complain(&mut self, why: &str) {
        let why: String = why.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        self.write(Stream::Error, format!("weir ctl: {why}\n").as_bytes());
    }

    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let text;
        let bytes = if self.terminals[usize::from(stream == Stream::Error)] {
            text = harmless(bytes);
            text.as_bytes()
        } else {
            bytes
        };
        match stream {
            Stream::Output => {
                let mut out = std::io::stdout().lock();
                self.is_closed |= out.write_all(bytes).and_then(|()| out.flush()).is_err();
            }
            // There is no reader if standard error is closed.
            Stream::Error => {
                let _ = std::io::stderr().lock().write_all(bytes);
            }
        }
    }
}

impl AnswerSink for Output {
    fn take(&mut self, verdict: Verdict, bytes: &[u8]) {
        self.write(if verdict == Verdict::Refused { Stream::Error } else { Stream::Output }, bytes);
    }
}

/// Replaces control characters other than the end of a line and a tab.
fn harmless(bytes: &[u8]) -> String {
    let replaced =
        |letter: char| if letter.is_control() && !matches!(letter, '\n' | '\t') { '\u{fffd}' } else { letter };
    String::from_utf8_lossy(bytes).chars().map(replaced).collect()
}

/// An answer that is held until its end.
#[derive(Debug, Default)]
pub struct HeldAnswer {
    pub bytes: Vec<u8>,
    /// A part was dropped.
    pub is_cut: bool,
}

impl AnswerSink for HeldAnswer {
    fn take(&mut self, _: Verdict, bytes: &[u8]) {
        self.is_cut |= self.bytes.len() + bytes.len() > MOST_HELD;
        if !self.is_cut {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

impl HeldAnswer {
    /// Returns the answer to a command as a JSON document.
    pub fn document(&self, words: &[String], verdict: Verdict) -> String {
        json::document(words, verdict, &self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_order_nothing_from_a_terminal() {
        assert_eq!(harmless(b"a\tb\x1b[31m\xff\r\n"), "a\tb\u{fffd}[31m\u{fffd}\u{fffd}\n");
    }

    #[test]
    fn a_held_answer_is_bounded() {
        let mut held = HeldAnswer::default();
        let piece = vec![b'x'; MOST_HELD];
        held.take(Verdict::Accepted, &piece);
        assert!(!held.is_cut);
        held.take(Verdict::Accepted, b"y");
        assert!(held.is_cut && held.bytes.len() == MOST_HELD);
    }
}
