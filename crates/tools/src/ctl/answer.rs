//! The answer to a command: which lines are its own, and whether it is an error. Must never hold more of it than a line.
//!
//! A client that has sent `set severity-output number` gets messages with a severity in front, as numbered by syslog:
//! `[3]: No such server.` Those up to 3 are errors. An unknown command is answered with severity 6, and a few sentences
//! have none: they are known by their text.

/// Beginnings of errors that have no severity, or a harmless one.
const SENTENCES: [&str; 8] = [
    "Unknown command",
    "The command line is too big",
    "The payload is too big",
    "Can't find the target PID",
    "Can't reach the process",
    "Session not found",
    "Success=0",
    "Failed!",
];

/// Beginnings of errors in answers without severities, of masters older than HAProxy 3.2.
const WITHOUT_SEVERITY: [&str; 15] = [
    "Permission denied",
    "No such ",
    "No ongoing transaction",
    "Can't ",
    "Cannot ",
    "Unable to ",
    "Unknown ",
    "Invalid ",
    "Missing ",
    "Require",
    "Expects ",
    "Malformed ",
    "This command is restricted",
    "This command expects",
    "'set server ",
];

/// Longest line that is judged and held, in bytes. A longer one is passed on in pieces.
const MOST_HELD: usize = 64 * 1024;

/// The last severity of syslog that is an error.
const ERROR: u8 = b'3';

/// Judgement about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Refused,
}

/// Receives the lines of an answer.
pub trait AnswerSink {
    /// Takes a piece of the answer. `verdict` is that of the answer so far, and final for an answer of one message.
    fn take(&mut self, verdict: Verdict, bytes: &[u8]);
}

/// Reads an answer piece by piece. An empty line ends the answer to a command.
#[derive(Debug)]
pub struct AnswerReader {
    /// Number of leading answers to leave out: those to the client's own settings.
    settings: usize,
    /// Whether messages have severities.
    has_severities: bool,
    line: Vec<u8>,
    /// Whether `line` continues a line of which a piece was passed on.
    is_continued: bool,
    /// The next line is the first of an answer.
    is_first: bool,
    /// The current answer is a message with a severity.
    is_message: bool,
    /// Empty lines that belong to the answer only if another line follows.
    empty: usize,
    verdict: Verdict,
    /// The first line of a setting's answer; empty if all were accepted.
    refused_setting: Vec<u8>,
    /// Whether the end of the first command's answer was read.
    ended: bool,
    first: Vec<u8>,
}

impl AnswerReader {
    /// Creates a reader for an answer after that number of settings. Without any, messages have no severity.
    pub fn new(settings: usize) -> Self {
        Self {
            settings,
            has_severities: settings > 0,
            line: Vec::new(),
            is_continued: false,
            is_first: true,
            is_message: false,
            empty: 0,
            verdict: Verdict::Accepted,
            refused_setting: Vec::new(),
            ended: false,
            first: Vec::new(),
        }
    }

    /// Takes received bytes and passes on the lines of the answer.
    pub fn take(&mut self, mut bytes: &[u8], sink: &mut dyn AnswerSink) {
        while !bytes.is_empty() {
            match memchr::memchr(b'\n', bytes) {
                Some(end) => {
                    self.line.extend_from_slice(&bytes[..end]);
                    self.end_line(sink);
                    bytes = &bytes[end + 1..];
                }
                None => {
                    self.line.extend_from_slice(bytes);
                    bytes = &[];
                }
            }
            if self.line.len() >= MOST_HELD {
                self.pass(sink);
                self.is_continued = true;
            }
        }
    }

    /// Takes the end of the connection. Returns the judgement; `None`: the connection was closed without an answer.
    pub fn finish(&mut self, sink: &mut dyn AnswerSink) -> Option<Verdict> {
        if !self.line.is_empty() {
            self.end_line(sink);
        }
        if self.settings > 0 && !self.refused_setting.is_empty() {
            // The line was refused as a whole, by the process that should pass it on.
            self.first.clone_from(&self.refused_setting);
            sink.take(Verdict::Refused, &[&*self.refused_setting, b"\n"].concat());
            return Some(Verdict::Refused);
        }
        (self.settings == 0 && (self.ended || !self.is_first || self.verdict == Verdict::Refused))
            .then_some(self.verdict)
    }

    /// Whether the whole answer to one command was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the first line of the answer to a setting that was refused; empty if none was.
    pub fn refused_setting(&self) -> &[u8] {
        &self.refused_setting
    }

    /// Returns the first line of the answer, without its severity.
    pub fn first_line(&self) -> &[u8] {
        &self.first
    }

    fn end_line(&mut self, sink: &mut dyn AnswerSink) {
        if self.line.is_empty() && !self.is_continued {
            self.end_answer();
            return;
        }
        if self.settings == 0 {
            self.line.push(b'\n');
        }
        self.pass(sink);
        self.is_continued = false;
    }

    fn end_answer(&mut self) {
        if self.settings > 0 {
            self.settings -= 1;
        } else {
            self.ended = true;
            self.empty += 1;
        }
        (self.is_first, self.is_message) = (true, false);
    }

    /// Passes on the held piece of a line, or leaves it out with the answer to a setting.
    fn pass(&mut self, sink: &mut dyn AnswerSink) {
        let line = std::mem::take(&mut self.line);
        if self.settings > 0 {
            if self.is_first && self.refused_setting.is_empty() {
                self.refused_setting = line.clone();
                // A process that does not know the setting writes no severities.
                self.has_severities &= !is_unknown(&line);
            }
            self.is_first = false;
            return;
        }
        let mut text = line.as_slice();
        if !self.is_continued {
            text = self.judge(text);
        }
        for _ in 0..std::mem::take(&mut self.empty) {
            sink.take(self.verdict, b"\n");
        }
        sink.take(self.verdict, text);
    }

    /// Judges a line by its severity or its text, and returns it without the severity.
    fn judge<'a>(&mut self, line: &'a [u8]) -> &'a [u8] {
        let is_first = std::mem::take(&mut self.is_first);
        let mut text = line;
        if let (true, Some((severity, rest))) = (self.has_severities && (is_first || self.is_message), severity(line)) {
            self.is_message = true;
            text = rest;
            if severity <= ERROR {
                self.verdict = Verdict::Refused;
            }
        }
        let begins_with = |sentences: &[&str]| sentences.iter().any(|start| text.starts_with(start.as_bytes()));
        if is_first {
            if self.first.is_empty() {
                self.first = text.trim_ascii_end().to_vec();
            }
            if begins_with(&SENTENCES) || (!self.has_severities && begins_with(&WITHOUT_SEVERITY)) {
                self.verdict = Verdict::Refused;
            }
        } else if text.trim_ascii_end() == b"Failed!" {
            self.verdict = Verdict::Refused;
        }
        text
    }
}

fn is_unknown(line: &[u8]) -> bool {
    let text = severity(line).map_or(line, |(_, rest)| rest);
    text.starts_with(b"Unknown command")
}

/// Splits `[3]: text` into the digit and the text.
fn severity(line: &[u8]) -> Option<(u8, &[u8])> {
    match line {
        [b'[', digit @ b'0'..=b'7', b']', b':', b' ', rest @ ..] => Some((*digit, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Vec<u8>);

    impl AnswerSink for Kept {
        fn take(&mut self, _: Verdict, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
    }

    /// Reads an answer in pieces of every size.
    fn read(settings: usize, text: &str) -> (Option<Verdict>, String) {
        let mut results = (1..=text.len().max(1)).map(|size| {
            let (mut reader, mut kept) = (AnswerReader::new(settings), Kept::default());
            text.as_bytes().chunks(size).for_each(|piece| reader.take(piece, &mut kept));
            (reader.finish(&mut kept), String::from_utf8(kept.0).expect("text"))
        });
        let first = results.next().expect("a result");
        assert!(results.all(|other| other == first), "{text:?}");
        first
    }

    #[test]
    fn answers_are_judged_by_severity() {
        use Verdict::{Accepted, Refused};
        let rows = [
            (1, "\n\n", Some(Accepted), ""),
            (1, "\nName: Weir\nVersion: 1\n\n", Some(Accepted), "Name: Weir\nVersion: 1\n"),
            (1, "\n[3]: No such server.\n\n", Some(Refused), "No such server.\n"),
            (1, "\n[4]: IP changed\n\n", Some(Accepted), "IP changed\n"),
            (
                1,
                "\n[6]: Unknown command: 'x', but\n  show info\n\n",
                Some(Refused),
                "Unknown command: 'x', but\n  show info\n",
            ),
            (1, "\n[6]: The following\n[3]: bad\n\n", Some(Refused), "The following\nbad\n"),
            // Data that looks like a severity is data.
            (1, "\nx\n[3]: y\n\n", Some(Accepted), "x\n[3]: y\n"),
            (1, "\nNo such thing\n\n", Some(Accepted), "No such thing\n"),
            (1, "\nCommitting a\nbad key\nFailed!\n\n", Some(Refused), "Committing a\nbad key\nFailed!\n"),
            // The answers to several commands, each with an end.
            (1, "\na\n\n[3]: b\n\n", Some(Refused), "a\n\nb\n"),
            (2, "\n\nSession not found.\n\n", Some(Refused), "Session not found.\n"),
            (2, "\nPermission denied\n\na\n\n", Some(Accepted), "a\n"),
            // A master does not know the setting.
            (1, "Unknown command: 'set'\n  show proc\n\nNo such process\n\n", Some(Refused), "No such process\n"),
            (0, "Permission denied\n\n", Some(Refused), "Permission denied\n"),
            (0, "Success=0\n--\nx\n\n", Some(Refused), "Success=0\n--\nx\n"),
            (
                0,
                "Can't find the target PID matching the prefix '@2'\n",
                Some(Refused),
                "Can't find the target PID matching the prefix '@2'\n",
            ),
            (0, "Success=1\n--\nx", Some(Accepted), "Success=1\n--\nx\n"),
            (
                1,
                "Can't find the target PID matching the prefix '@@2'\n",
                Some(Refused),
                "Can't find the target PID matching the prefix '@@2'\n",
            ),
            (1, "", None, ""),
            (1, "\n", None, ""),
            (0, "", None, ""),
        ];
        for (settings, text, verdict, wanted) in rows {
            assert_eq!(read(settings, text), (verdict, wanted.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_not_held() {
        let (mut reader, mut kept) = (AnswerReader::new(0), Kept::default());
        let text = vec![b'x'; 3 * MOST_HELD];
        text.chunks(1000).for_each(|piece| reader.take(piece, &mut kept));
        assert!(kept.0.len() > MOST_HELD && reader.line.len() < MOST_HELD);
        reader.take(b"\n\n", &mut kept);
        assert_eq!(reader.finish(&mut kept), Some(Verdict::Accepted));
        assert_eq!(kept.0.len(), 3 * MOST_HELD + 1);
    }
}
