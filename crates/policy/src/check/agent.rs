//! Parses an agent's response about its server (configuration manual, section 5.2, "agent-check"): one line of words.
//! Must never change a server.

use live::Admin;
use live::health::Operation;

/// A parsed response; of several words of one kind the last one applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentAnswer {
    /// The requested administrative state.
    pub admin: Option<Admin>,
    /// The health of the server, with the word that states it.
    pub health: Option<Word>,
    /// The weight: a number or a percentage.
    pub weight: Option<String>,
    /// The connection limit.
    pub maxconn: Option<String>,
    /// The text after a `#`.
    description: String,
    /// The first unknown word.
    unknown: Option<String>,
}

/// A word that states the server's health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The state that it states.
    pub operation: Operation,
    /// The word as received.
    pub text: String,
}

/// Maximum length of a description in characters.
const SHOWN: usize = 100;

impl AgentAnswer {
    /// Parses the line, without its line end.
    pub fn parse(line: &[u8]) -> Self {
        let mut answer = Self::default();
        let (words, description) = match line.iter().position(|byte| *byte == b'#') {
            Some(sharp) => (&line[..sharp], &line[sharp + 1..]),
            None => (line, &[][..]),
        };
        answer.description = printable(description.trim_ascii());
        let separates = |byte: &u8| matches!(byte, b' ' | b'\t' | b',');
        for word in words.split(separates).filter(|word| !word.is_empty()) {
            answer.read(&printable(word));
        }
        answer
    }

    fn read(&mut self, word: &str) {
        let lower = word.to_ascii_lowercase();
        let health = |operation| Some(Word { operation, text: word.to_owned() });
        match lower.as_str() {
            "up" => self.health = health(Operation::Up),
            // Weir's own.
            "nolb" => self.health = health(Operation::Stopping),
            "down" | "fail" | "stopped" => self.health = health(Operation::Down),
            "ready" => self.admin = Some(Admin::Ready),
            "drain" => self.admin = Some(Admin::Drain),
            "maint" => self.admin = Some(Admin::Maintenance),
            _ => {
                if let Some(weight) = lower.strip_prefix("weight:") {
                    self.weight = Some(weight.to_owned());
                } else if let Some(most) = lower.strip_prefix("maxconn:") {
                    self.maxconn = Some(most.to_owned());
                } else if lower.ends_with('%') && lower.starts_with(|first: char| first.is_ascii_digit()) {
                    self.weight = Some(lower);
                } else if self.unknown.is_none() {
                    self.unknown = Some(word.to_owned());
                }
            }
        }
    }

    /// Returns the text shown for the response; `warning` is an error about one of its numbers.
    pub fn info(&self, warning: Option<&str>) -> String {
        let reason = if self.description.is_empty() { self.unknown.as_deref() } else { Some(&*self.description) };
        match (&self.health, warning, reason) {
            (Some(word), _, None) => format!("via agent : {}", word.text),
            (Some(word), _, Some(reason)) => format!("via agent : {} ({reason})", word.text),
            (None, Some(warning), _) => format!("agent warns : {warning}"),
            (None, None, _) => {
                self.unknown.as_ref().map_or_else(String::new, |word| format!("agent reports an error : {word}"))
            }
        }
    }
}

fn printable(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(SHOWN);
    shown.map(|byte| if (0x20..0x7f).contains(byte) && *byte != b'"' { char::from(*byte) } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_haproxy_reads_them() {
        use Admin::{Drain, Maintenance, Ready};
        use Operation::{Down, Stopping, Up};
        type Row<'a> = (&'a str, Option<Admin>, Option<Operation>, Option<&'a str>, Option<&'a str>, &'a str);
        let rows: &[Row<'_>] = &[
            ("75%", None, None, Some("75%"), None, ""),
            ("down", None, Some(Down), None, None, "via agent : down"),
            ("down #because", None, Some(Down), None, None, "via agent : down (because)"),
            ("stopped #sad day, yes", None, Some(Down), None, None, "via agent : stopped (sad day, yes)"),
            ("fail", None, Some(Down), None, None, "via agent : fail"),
            ("UP", None, Some(Up), None, None, "via agent : UP"),
            ("x up", None, Some(Up), None, None, "via agent : up (x)"),
            ("NOLB #update", None, Some(Stopping), None, None, "via agent : NOLB (update)"),
            ("up nolb", None, Some(Stopping), None, None, "via agent : nolb"),
            ("Drain", Some(Drain), None, None, None, ""),
            ("drain #foo", Some(Drain), None, None, None, ""),
            ("maint", Some(Maintenance), None, None, None, ""),
            ("up ready 100%", Some(Ready), Some(Up), Some("100%"), None, "via agent : up"),
            ("down 20% drain,maxconn:7", Some(Drain), Some(Down), Some("20%"), Some("7"), "via agent : down"),
            ("weight:50%\tmaxconn:30", None, None, Some("50%"), Some("30"), ""),
            ("nonsense", None, None, None, None, "agent reports an error : nonsense"),
            ("failed", None, None, None, None, "agent reports an error : failed"),
            ("# only", None, None, None, None, ""),
            ("", None, None, None, None, ""),
        ];
        for (line, admin, up, weight, maxconn, info) in rows {
            let answer = AgentAnswer::parse(line.as_bytes());
            assert_eq!(answer.admin, *admin, "{line}");
            assert_eq!(answer.health.as_ref().map(|word| word.operation), *up, "{line}");
            assert_eq!((answer.weight.as_deref(), answer.maxconn.as_deref()), (*weight, *maxconn), "{line}");
            assert_eq!(answer.info(None), *info, "{line}");
        }
        assert_eq!(AgentAnswer::parse(b"maxconn:x").info(Some("no number")), "agent warns : no number");
    }
}
