//! Log lines received by a simulated log server, and patterns to compare them with.

use std::cell::RefCell;
use std::rc::Rc;

use rt::net::Address;

use crate::time::LATE_AT_MOST;

/// The log server's lines, in order of arrival, without the part before the frontend's name. Clones refer to the same
/// journal.
#[derive(Clone, Debug)]
pub struct Journal {
    address: Address,
    lines: Rc<RefCell<Vec<String>>>,
}

impl Journal {
    /// Collects the datagrams to `IP:PORT`.
    ///
    /// # Panics
    /// If the text is not an address.
    #[track_caller]
    pub fn of(text: &str) -> Journal {
        let address = Address::Inet(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")));
        Journal { address, lines: Rc::default() }
    }

    /// Takes the lines received so far.
    pub fn take(&self) -> Vec<String> {
        self.collect();
        std::mem::take(&mut self.lines.borrow_mut())
    }

    /// Returns the number of lines received and not taken.
    pub fn len(&self) -> usize {
        self.collect();
        self.lines.borrow().len()
    }

    /// Whether all received lines were taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn collect(&self) {
        let datagrams = rt::sim::network().take_datagrams();
        let ours = datagrams.into_iter().filter(|datagram| datagram.to == self.address);
        self.lines.borrow_mut().extend(ours.map(|datagram| shorten(&String::from_utf8_lossy(&datagram.bytes))));
    }
}

/// Returns a traffic line from the frontend's name on: the date in brackets is the last item before it.
fn shorten(line: &str) -> String {
    let line = line.trim_end();
    match line.match_indices("] ").map(|(at, _)| at).find(|at| line[..*at].ends_with(|c: char| c.is_ascii_digit())) {
        Some(at) if line[..at].contains('[') => line[at + 2..].to_owned(),
        _ => line.to_owned(),
    }
}

/// Whether a line matches a pattern. Words are compared one by one. In a word with slashes each part is compared: `#`
/// matches any non-negative number; a number in the third word, which contains the times, matches that many
/// milliseconds, plus the tolerance of a timer; anything else matches itself. `*` alone matches any word or part.
pub fn line_matches(line: &str, pattern: &str) -> bool {
    let (mut words, mut patterns) = (line.splitn(20, ' '), pattern.splitn(20, ' '));
    let mut number = 0;
    loop {
        match (words.next(), patterns.next()) {
            (None, None) => return true,
            (Some(word), Some(pattern)) => {
                if pattern != "*" && !word_matches(word, pattern, number == 2) {
                    return false;
                }
            }
            _ => return false,
        }
        number += 1;
    }
}

fn word_matches(word: &str, pattern: &str, is_times: bool) -> bool {
    if !is_times && pattern != "#" {
        return word == pattern || (pattern.contains(['#', '*']) && parts_match(word, pattern, false));
    }
    parts_match(word, pattern, is_times)
}

fn parts_match(word: &str, pattern: &str, is_times: bool) -> bool {
    let (parts, patterns): (Vec<_>, Vec<_>) = (word.split('/').collect(), pattern.split('/').collect());
    parts.len() == patterns.len()
        && parts.iter().zip(patterns).all(|(part, pattern)| part_matches(part, pattern, is_times))
}

fn part_matches(part: &str, pattern: &str, is_time: bool) -> bool {
    match (part.parse::<u64>(), pattern.parse::<u64>()) {
        _ if pattern == "*" => true,
        (Ok(_), _) if pattern == "#" => true,
        (Ok(got), Ok(expected)) if is_time => (expected..=expected + LATE_AT_MOST.as_millis() as u64).contains(&got),
        _ => part == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_match_word_by_word() {
        let line = r#"l l/s1 0/0/1/202/203 504 194 - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
        let rows = [
            (r#"l l/s1 0/0/0/200/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#, true),
            (r#"l l/s1 #/#/#/#/# 504 194 - - sH-- #/#/0/0/0 0/0 "GET / HTTP/1.1""#, true),
            (r#"l l/s1 0/0/0/200/200 504 * - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#, true),
            (r#"l l/s1 0/0/0/-1/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#, false),
            (r#"l l/s1 0/0/0/204/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#, false),
            (r#"l l/s1 0/0/0/190/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#, false),
            (r#"l l/s1 0/0/0/200/200 504 # - - SH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#, false),
            (r#"l l/s1 0/0/0/200/200 504 # - - sH-- 1/1/0/0/1 0/0 "GET / HTTP/1.1""#, false),
            (r#"l l/s1 0/0/0/200/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.0""#, false),
            (r#"l l/s1 0/0/0/200/200 504 # - - sH-- 1/1/0/0/0 0/0"#, false),
        ];
        for (pattern, expected) in rows {
            assert_eq!(line_matches(line, pattern), expected, "{pattern}");
        }
        assert!(!line_matches("l l/s1 0/0/-1/-1/5 -1 0", "l l/s1 0/0/#/-1/5 -1 0"));
    }

    #[test]
    fn headers_are_cut_off() {
        let line =
            "<134>Jan  1 00:00:00 haproxy[77]: 10.0.0.9:32768 [01/Jan/2026:00:00:00.001] l l/s1 0/0 \"GET /] \"\n";
        assert_eq!(shorten(line), "l l/s1 0/0 \"GET /] \"");
        assert_eq!(
            shorten("<134>Jan  1 00:00:00 haproxy[77]: Connect from a"),
            "<134>Jan  1 00:00:00 haproxy[77]: Connect from a"
        );
    }
}
