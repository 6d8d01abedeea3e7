//! Ranges of integers (section 7.1.2): `5`, `5:7`, `5-7`, `:7`, `5:`, and operators before a number; protocol versions
//! as dotted numbers. Must never accept a number that HAProxy rejects.

use std::ops::RangeInclusive;

/// The comparison operator before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    GreaterOrEqual,
    Greater,
    LessOrEqual,
    Less,
}

impl Operator {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "eq" => Self::Equal,
            "ge" => Self::GreaterOrEqual,
            "gt" => Self::Greater,
            "le" => Self::LessOrEqual,
            "lt" => Self::Less,
            _ => return None,
        })
    }
}

/// The notation of the numbers of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `5`.
    Plain,
    /// `3.1`, which is 0x30001, as in protocol versions; `3` is `3.0`.
    Dotted,
}

impl Notation {
    /// Parses a number of digits only.
    fn number(self, text: &str) -> Option<i64> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self {
            Self::Plain => text.parse().ok().filter(|_| digits(text)),
            Self::Dotted => {
                let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
                let (major, minor) = (Self::Plain.number(major)?, Self::Plain.number(minor)?);
                let fits = major <= i64::from(u16::MAX) && minor <= i64::from(u16::MAX);
                fits.then_some((major << 16) + minor)
            }
        }
    }

    /// Parses the end of a range: a dash before it makes it negative; a lone dash is 0.
    fn end(self, text: &str) -> Option<i64> {
        match text.strip_prefix('-').filter(|_| self == Self::Plain) {
            Some("") => Some(0),
            Some(digits) => self.number(digits).map(i64::wrapping_neg),
            None => self.number(text),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "number",
            Self::Dotted => "dotted number",
        }
    }

    fn written(self, value: i64) -> String {
        match self {
            Self::Plain => value.to_string(),
            Self::Dotted => format!("{}.{}", value.max(0) >> 16, value.max(0) & 0xffff),
        }
    }
}

/// Splits a range at the first colon or dash, which may be the first character. So `-5` is everything up to 5.
fn cut(text: &str) -> Option<(&str, &str)> {
    text.split_once([':', '-'])
}

/// Parses a number or a range.
///
/// # Errors
/// HAProxy's message.
pub fn range(text: &str, notation: Notation) -> Result<RangeInclusive<i64>, String> {
    let Some((low, high)) = cut(text) else {
        let value = notation.number(text).ok_or_else(|| format!("'{text}' is not a {}", notation.name()))?;
        return Ok(value..=value);
    };
    let wrong = || format!("'{text}' is not a valid {} range", notation.name());
    let range = match (low, high) {
        ("", "") => return Err(wrong()),
        (low, "") => notation.number(low).ok_or_else(wrong)?..=i64::MAX,
        ("", high) => i64::MIN..=notation.end(high).ok_or_else(wrong)?,
        (low, high) => notation.number(low).ok_or_else(wrong)?..=notation.end(high).ok_or_else(wrong)?,
    };
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

/// Converts the patterns of a configuration line with operators to ranges: `gt 3` is `4:`. Operators do not affect
/// ranges. An error includes the index of the word.
///
/// # Errors
/// HAProxy's message.
pub fn written(words: &[&str], notation: Notation) -> Result<Vec<String>, (usize, String)> {
    let (mut operator, mut found) = (Operator::Equal, Vec::new());
    for (at, word) in words.iter().enumerate() {
        if let Some(named) = Operator::named(word) {
            operator = named;
            continue;
        }
        // A fraction after these operators is ignored.
        let compares = !matches!(operator, Operator::Equal) && notation == Notation::Plain;
        let whole =
            word.split_once('.').map_or(*word, |(whole, _)| if compares && !whole.is_empty() { whole } else { word });
        let range = range(whole, notation).map_err(|why| (at, why.replace(whole, word)))?;
        let (value, of) = (*range.start(), |value: i64| notation.written(value));
        found.push(match operator {
            _ if cut(word).is_some() => (*word).to_owned(),
            Operator::Equal => (*word).to_owned(),
            Operator::GreaterOrEqual => format!("{}:", of(value)),
            Operator::Greater => format!("{}:", of(value.saturating_add(1))),
            Operator::LessOrEqual => format!(":{}", of(value)),
            Operator::Less => format!(":{}", of(value - 1)),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_haproxy_reads_them() {
        let rows = [
            ("5", 5..=5),
            ("5:7", 5..=7),
            ("5-7", 5..=7),
            (":7", i64::MIN..=7),
            ("5:", 5..=i64::MAX),
            ("5-", 5..=i64::MAX),
            ("-5", i64::MIN..=5),
            ("--5", i64::MIN..=-5),
            (":-5", i64::MIN..=-5),
            ("--", i64::MIN..=0),
        ];
        for (text, expected) in rows {
            assert_eq!(range(text, Notation::Plain), Ok(expected), "{text}");
        }
        for text in ["a", "", "+5", "0x5", "5x", " 5", "5 ", "3.1", "9223372036854775808"] {
            assert_eq!(range(text, Notation::Plain), Err(format!("'{text}' is not a number")));
        }
        let ranges = [
            "5:3",
            "5-3",
            ":",
            "-",
            "-:3",
            "-5:",
            "-5-3",
            "5:-3",
            "5::6",
            "5-6-7",
            "5:x",
            "x-6",
            "3.0-3.1",
            "5:+6",
            "---5",
            "1:9223372036854775808",
        ];
        for text in ranges {
            assert_eq!(range(text, Notation::Plain), Err(format!("'{text}' is not a valid number range")));
        }
    }

    #[test]
    fn versions_are_dotted() {
        let rows = [("3", 0x30000..=0x30000), ("3.1", 0x30001..=0x30001), ("3.0-3.1", 0x30000..=0x30001)];
        for (text, expected) in rows {
            assert_eq!(range(text, Notation::Dotted), Ok(expected), "{text}");
        }
        for text in ["3.", ".1", "3.1.1", "3.1x"] {
            assert_eq!(range(text, Notation::Dotted), Err(format!("'{text}' is not a dotted number")));
        }
        for text in ["3.3:3.1", "3.99999:4", "3.-1"] {
            assert_eq!(range(text, Notation::Dotted), Err(format!("'{text}' is not a valid dotted number range")));
        }
        let found = written(&["gt", "3.65535", "lt", "3", "4-5"], Notation::Dotted);
        assert_eq!(found, Ok(vec!["4.0:".to_owned(), ":2.65535".to_owned(), "4-5".to_owned()]));
    }

    #[test]
    fn fractions_are_no_numbers() {
        for words in [&["3.1"][..], &["eq", "3.1"], &["gt", ".5"], &["gt", "3x.1"]] {
            let (at, why) = written(words, Notation::Plain).expect_err("no number");
            assert_eq!((at, why), (words.len() - 1, format!("'{}' is not a number", words[words.len() - 1])));
        }
    }

    #[test]
    fn operators_change_numbers_alone() {
        let rows = [
            ("5", "5"),
            ("eq 5", "5"),
            ("gt 5", "6:"),
            ("ge 5", "5:"),
            ("lt 5", ":4"),
            ("lt 0", ":-1"),
            ("le 5", ":5"),
            ("gt 5:7", "5:7"),
            ("lt 5-", "5-"),
            ("eq -- 80", "-- 80"),
            ("5 gt 7", "5 8:"),
            ("ge 3.5", "3:"),
            ("lt 3.5.1", ":2"),
        ];
        for (words, expected) in rows {
            let words: Vec<&str> = words.split(' ').collect();
            let expected = expected.split(' ').map(str::to_owned).collect();
            assert_eq!(written(&words, Notation::Plain), Ok(expected), "{words:?}");
        }
    }
}
