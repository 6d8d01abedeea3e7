//! Ranges of integers (section 7.1.2): `5`, `5:7`, `:7`, `5:`, and operators before a number.

use std::ops::RangeInclusive;

/// How a number in front of which an operator stands is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `eq`.
    Equal,
    /// `ge`.
    GreaterOrEqual,
    /// `gt`.
    Greater,
    /// `le`.
    LessOrEqual,
    /// `lt`.
    Less,
}

impl Operator {
    /// By its name.
    pub fn named(word: &str) -> Option<Self> {
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

/// Digits of the fraction that a number with a dot is compared by: `3.1` is 0x30001, as in versions of protocols.
fn number(text: &str) -> Option<i64> {
    match text.split_once('.') {
        None => text.parse().ok(),
        Some((major, minor)) => {
            let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u16>().ok()?);
            Some((i64::from(major) << 16) + i64::from(minor))
        }
    }
}

/// Reads a range.
///
/// # Errors
/// HAProxy's sentence.
pub fn range(text: &str, operator: Operator) -> Result<RangeInclusive<i64>, String> {
    let wrong = || format!("'{text}' is not a number");
    let wrong_range = || format!("'{text}' is not a valid number range");
    let (low, high) = match text.split_once(':') {
        None => {
            let value = number(text).ok_or_else(wrong)?;
            (value, value)
        }
        Some(("", "")) => return Err(wrong()),
        Some((low, "")) => (number(low).ok_or_else(wrong)?, i64::MAX),
        Some(("", high)) => (i64::MIN, number(high).ok_or_else(wrong)?),
        Some((low, high)) => (number(low).ok_or_else(wrong)?, number(high).ok_or_else(wrong_range)?),
    };
    if low > high {
        return Err(wrong_range());
    }
    Ok(match operator {
        Operator::Equal => low..=high,
        Operator::GreaterOrEqual => low..=i64::MAX,
        Operator::Greater => high.saturating_add(1)..=i64::MAX,
        Operator::LessOrEqual => i64::MIN..=high,
        Operator::Less => i64::MIN..=low.saturating_sub(1),
    })
}

/// The patterns of a configuration line, operators before numbers worked in: `gt 3` is `4:`. What is wrong comes with
/// its place among the words.
///
/// # Errors
/// HAProxy's sentence.
pub fn written(words: &[&str]) -> Result<Vec<String>, (usize, String)> {
    let (mut operator, mut found) = (Operator::Equal, Vec::new());
    for (at, word) in words.iter().enumerate() {
        if let Some(named) = Operator::named(word) {
            operator = named;
            continue;
        }
        let range = range(word, operator).map_err(|why| (at, why))?;
        found.push(match (operator, *range.start(), *range.end()) {
            (Operator::Equal, ..) => (*word).to_owned(),
            (_, low, i64::MAX) => format!("{low}:"),
            (_, _, high) => format!(":{high}"),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let rows = [
            ("5", Operator::Equal, 5..=5),
            ("5:7", Operator::Equal, 5..=7),
            (":7", Operator::Equal, i64::MIN..=7),
            ("-3:", Operator::Equal, -3..=i64::MAX),
            ("5", Operator::Greater, 6..=i64::MAX),
            ("5", Operator::LessOrEqual, i64::MIN..=5),
            ("5", Operator::Less, i64::MIN..=4),
            ("3.1", Operator::Equal, 0x30001..=0x30001),
        ];
        for (text, operator, expected) in rows {
            assert_eq!(range(text, operator), Ok(expected), "{text}");
        }
        assert_eq!(range("5:3", Operator::Equal), Err("'5:3' is not a valid number range".to_owned()));
        assert!(range("a", Operator::Equal).is_err() && range(":", Operator::Equal).is_err());
    }
}
