//! Numbers and times as HAProxy's oldest keywords parse them, and helpers that these keywords share. Owns no keyword.

use super::report::Report;
use crate::document::{Line, Word};
use crate::units::{self, TimeError};

/// Number of words that follow an option of a `bind` or `server` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    None,
    One,
    /// `source`: an address, then `usesrc` and `interface` with one each.
    Source,
    /// `maxconn-store`: a name, then `lost` with one.
    Store,
    /// `agent-check`: nothing, or `http` with one.
    Agent,
}

impl Arity {
    /// Returns the first argument of an option, and the number of words of its arguments.
    pub(crate) fn take(self, words: &[Word]) -> (Option<&Word>, usize) {
        let first = words.first();
        let mut length = usize::from(first.is_some());
        match self {
            Self::None => return (None, 0),
            Self::One => {}
            Self::Agent if first.is_none_or(|word| word.text != "http") => return (None, 0),
            Self::Agent => length = words.len().min(2),
            Self::Source => {
                while matches!(words.get(length).map(|word| word.text.as_str()), Some("usesrc" | "interface")) {
                    length = (length + 2).min(words.len());
                }
            }
            Self::Store => {
                if words.get(length).is_some_and(|word| word.text == "lost") {
                    length = (length + 2).min(words.len());
                }
            }
        }
        (first, length)
    }
}

/// Parses a number as `atol` does: sign and digits as far as they go, 0 for anything else. Reports a diagnostic with
/// `-dD` for anything else, which HAProxy accepts silently.
pub(crate) fn lenient(word: &Word, name: &str, report: &mut Report<'_>) -> i64 {
    let (value, clean) = leading_number(&word.text);
    if !clean {
        report.diag(word.span, format!("'{name}' takes a number; '{}' is read as {value}.", word.text));
    }
    value
}

/// Returns the number at the start of a text, and whether the text contains nothing else.
pub(crate) fn leading_number(text: &str) -> (i64, bool) {
    let trimmed = text.trim_start();
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    let mut value = 0_i64;
    for digit in digits.bytes().take(end) {
        value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    }
    let clean = end > 0 && end == digits.len() && trimmed.len() == text.len();
    (if negative { -value } else { value }, clean)
}

/// Returns a limit; 0 and negative values mean no limit.
pub(crate) fn limit(value: i64) -> Option<u32> {
    (value > 0).then(|| u32::try_from(value).unwrap_or(u32::MAX))
}

/// Returns the only argument of a line of two words, or reports HAProxy's sentence about its absence.
pub(crate) fn only<'a>(line: &'a Line, missing: &str, report: &mut Report<'_>) -> Option<&'a Word> {
    if report.too_many(line, 2, line.keyword()) {
        return None;
    }
    let word = line.words.get(1);
    if word.is_none() {
        report.alert(line.span(1), missing);
    }
    word
}

/// Parses a time in milliseconds. `unexpected` is HAProxy's sentence about a bad character, containing `%c`; `missing`
/// is the one about a missing argument.
pub(crate) fn milliseconds(
    word: Option<&Word>,
    line: &Line,
    name: &str,
    missing: &str,
    unexpected: &str,
    report: &mut Report<'_>,
) -> Option<u64> {
    let Some(word) = word else {
        report.alert(line.span(line.words.len()), missing);
        return None;
    };
    match units::milliseconds(&word.text) {
        Ok(time) => {
            if let Some(warning) = time.leftover_warning(&word.text) {
                report.leftover(word.span, warning);
            }
            Some(time.value)
        }
        Err(error) => {
            let message = match error {
                TimeError::Empty => missing.to_owned(),
                TimeError::Unexpected(found) => unexpected.replace("%c", &found.to_string()),
                TimeError::Overflow => error.message(&word.text, name),
            };
            report.push(crate::diagnostic::Diagnostic::alert(word.span, message).with_hint(error.hint()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        let rows = [
            ("10", 10, true),
            ("-3", -3, true),
            ("+7", 7, true),
            ("10x", 10, false),
            ("x", 0, false),
            ("", 0, false),
            ("-", 0, false),
            (" 5", 5, false),
            ("99999999999999999999", i64::MAX, true),
        ];
        for (text, value, clean) in rows {
            assert_eq!(leading_number(text), (value, clean), "{text}");
        }
    }

    #[test]
    fn nothing_and_less_is_no_limit() {
        assert_eq!([limit(-1), limit(0), limit(5), limit(1 << 40)], [None, None, Some(5), Some(u32::MAX)]);
    }
}
