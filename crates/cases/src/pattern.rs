//! The notation of log lines in cases: literal text, `#` for digits, `{…}` for a regular expression. It must never read
//! a socket.

use regex_lite::Regex;

use crate::failure::{Failure, Result};

/// A log line that a case expects.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    regex: Regex,
    whole: bool,
    priority: Option<u32>,
}

/// A received log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// Facility and level, as in `<134>`.
    pub(crate) priority: u32,
    /// Everything after the syslog header.
    pub(crate) text: String,
}

impl Pattern {
    /// Parses a pattern. The prefix `<134>` requires this priority; with the prefix `whole `, client address and date
    /// are part of the pattern.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut rest = text;
        let mut priority = None;
        if let Some((number, tail)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            priority = Some(number.parse().map_err(|_| Failure::new(format!("not a priority: {number}")))?);
            rest = tail.trim_start();
        }
        let whole = rest.strip_prefix("whole ");
        let regex = Regex::new(&source(whole.unwrap_or(rest))).map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self { text: text.to_owned(), regex, whole: whole.is_some(), priority })
    }

    /// Whether a line matches.
    pub(crate) fn matches(&self, line: &LogLine) -> bool {
        let text = if self.whole { &line.text } else { line.without_origin() };
        self.priority.is_none_or(|priority| priority == line.priority) && self.regex.is_match(text)
    }

    /// Replaces the connection counts by patterns for any numbers (`1/1/0/0/` before the retries): with several threads
    /// they vary.
    pub(crate) fn with_any_connections(&self) -> Result<Self> {
        let counts = Regex::new(" [0-9]+/[0-9]+/[0-9]+/[0-9]+/").map_err(|error| Failure::new(error.to_string()))?;
        Self::parse(&counts.replace(&self.text, " #/#/#/#/"))
    }

    /// Returns the text from the case.
    pub(crate) fn as_written(&self) -> &str {
        &self.text
    }
}

impl LogLine {
    /// Reads a datagram in HAProxy's default format (RFC 3164): `<134>Nov 20 13:56:35 haproxy[123]: text`.
    pub(crate) fn read(datagram: &str) -> Self {
        let trimmed = datagram.trim_end_matches(['\n', '\0']);
        let priority =
            trimmed.strip_prefix('<').and_then(|rest| rest.split_once('>')).and_then(|(number, _)| number.parse().ok());
        let text = trimmed.split_once("]: ").map_or(trimmed, |(_, text)| text);
        Self { priority: priority.unwrap_or(0), text: text.to_owned() }
    }

    /// Returns the line without `127.0.0.1:4711 [20/Nov/2026:13:56:35.305] `, which differs from run to run.
    fn without_origin(&self) -> &str {
        let origin = self.text.split_once(" [").and_then(|(address, rest)| {
            let (date, rest) = rest.split_once("] ")?;
            (!address.contains(' ') && date.len() == 24).then_some(rest)
        });
        origin.unwrap_or(&self.text)
    }

    /// Whether the line is about the process itself: every case would have to list these.
    pub(crate) fn is_about_the_process(&self) -> bool {
        let mut words = self.text.split(' ');
        let first = words.next().unwrap_or("");
        let third = words.nth(1).unwrap_or("");
        first == "Stopping" || first == "Proxy" && (third.starts_with("started") || third.starts_with("stopped"))
    }
}

/// Returns the regular expression of a pattern.
fn source(pattern: &str) -> String {
    let mut out = String::from("^(?:");
    let mut rest = pattern;
    while let Some(at) = rest.find(['#', '{', '\\']) {
        out.push_str(&escape(&rest[..at]));
        let special = &rest[at..];
        if let Some(tail) = special.strip_prefix('#') {
            out.push_str("[0-9]+");
            rest = tail;
        } else if let Some((raw, tail)) = special.strip_prefix('{').and_then(|special| special.split_once('}')) {
            out.push_str(&format!("(?:{raw})"));
            rest = tail;
        } else {
            let mut characters = special.chars();
            let escaped = if special.starts_with('\\') { characters.nth(1) } else { characters.next() };
            out.push_str(&escape(&escaped.map(String::from).unwrap_or_default()));
            rest = characters.as_str();
        }
    }
    out.push_str(&escape(rest));
    out.push_str(")$");
    out
}

fn escape(text: &str) -> String {
    regex_lite::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "<134>Nov 20 13:56:35 haproxy[12]: 127.0.0.1:40152 [20/Nov/2026:13:56:35.306] l l/s1 0/0/0/0/12 200 56 - - ---- 1/1/0/0/0 0/0 \"GET /x HTTP/1.1\"\n";

    #[test]
    fn digits_alternatives_and_origin() {
        let line = LogLine::read(LINE);
        let rows = [
            ("l l/s1 #/#/#/#/# 200 56 - - ---- 1/1/0/0/0 0/0 \"GET /x HTTP/1.1\"", true),
            ("<134>l l/s1 #/#/#/#/# {200|400} # - - ---- 1/1/0/0/0 0/0 {.*}", true),
            ("<135>l l/s1 #/#/#/#/# {200|400} # - - ---- 1/1/0/0/0 0/0 {.*}", false),
            ("whole 127.0.0.1:# [{.*}] l l/s1{.*}", true),
            ("l l/s1 #/#/-#/#/# 200 56 - - ---- 1/1/0/0/0 0/0 \"GET /x HTTP/1.1\"", false),
            ("l l/s1", false),
        ];
        for (pattern, expected) in rows {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(&line), expected, "{pattern}");
        }
    }

    #[test]
    fn any_connections() {
        let pattern = Pattern::parse("l l/s1 #/#/#/#/# 200 # - - ---- 3/1/0/0/0 0/0 {.*}").unwrap();
        let line = LogLine::read(LINE);
        assert!(!pattern.matches(&line));
        assert!(pattern.with_any_connections().unwrap().matches(&line));
    }

    #[test]
    fn backslash_takes_the_meaning_away() {
        let line = LogLine { priority: 0, text: "a#{b}".to_owned() };
        assert!(Pattern::parse(r"a\#\{b\}").unwrap().matches(&line));
        assert!(!Pattern::parse("a#").unwrap().matches(&line));
    }

    #[test]
    fn lines_about_the_process() {
        let about = |text: &str| LogLine { priority: 0, text: text.to_owned() }.is_about_the_process();
        assert!(about("Proxy l started."));
        assert!(about("Proxy l stopped (cumulated conns: FE: 1, BE: 0)."));
        assert!(!about("Connect from 127.0.0.1:1 to 127.0.0.1:2 (l/HTTP)"));
    }
}
