//! `mirror` (an extension of Weir): sends a copy of the request to another backend. Must never know how a copy is sent.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, SideRequests, Words};

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("mirror", mirror)];

/// The parameters of `mirror`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mirror {
    /// Index of the backend that receives the copies.
    pub backend: usize,
    /// Number of requests out of [`Mirror::WHOLE`] that are copied.
    pub share: u32,
}

impl Mirror {
    /// The number of requests that `share` refers to.
    pub const WHOLE: u32 = 1_000_000;
}

fn mirror(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let name = words.expect("expects a backend name")?;
    let backend = parsing
        .names
        .side_backend(&name.text, SideRequests::Copies)
        .map_err(|message| RuleError::at(Some(name), message))?;
    let mut share = Mirror::WHOLE;
    if words.peek_text() == "sample" {
        words.take();
        let word = words.expect("'sample' expects a percentage")?;
        let wrong = || RuleError::at(Some(word), "'sample' expects a percentage above 0 and up to 100");
        share = percentage(&word.text).ok_or_else(wrong)?;
    }
    Ok(Action::Mirror(Mirror { backend, share }))
}

/// Parses a percentage with at most four decimal places, as a part of [`Mirror::WHOLE`]: `10`, `10%`, `0.25%`.
fn percentage(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(decimals) || decimals.len() > 4 || whole.len() > 3 {
        return None;
    }
    let parts = whole.parse::<u32>().ok()? * 10_000 + format!("{decimals:0<4}").parse::<u32>().ok()?;
    (1..=Mirror::WHOLE).contains(&parts).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::percentage;

    #[test]
    fn percentages_have_four_decimals_at_most() {
        let rows = [
            ("100", Some(1_000_000)),
            ("10%", Some(100_000)),
            ("0.25", Some(2_500)),
            ("0.0001%", Some(1)),
            ("99.5", Some(995_000)),
            ("0", None),
            ("100.1", None),
            ("0.00001", None),
            ("-1", None),
            ("", None),
            ("%", None),
            ("1.", None),
            (".5", None),
            ("1000", None),
        ];
        for (text, expected) in rows {
            assert_eq!(percentage(text), expected, "{text}");
        }
    }
}
