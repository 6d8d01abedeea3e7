//! Times, sizes and numbers (configuration manual, sections 2.5 and 2.6). Owns HAProxy's sentences about them; must
//! never name a keyword.

use std::fmt;
use std::ops::RangeInclusive;

/// Maximum of a time: HAProxy's timers are signed 32-bit numbers, in the unit of the keyword.
pub const MAX_TIME: u64 = i32::MAX as u64;

/// A number without a unit below this is most likely not meant as milliseconds.
const SUSPICIOUS: u64 = 100;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Days,
}

impl TimeUnit {
    /// Returns the length in microseconds.
    const fn microseconds(self) -> u128 {
        match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 1_000,
            Self::Seconds => 1_000_000,
            Self::Minutes => 60_000_000,
            Self::Hours => 3_600_000_000,
            Self::Days => 86_400_000_000,
        }
    }
}

/// A parsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// Number of the requested units, rounded up: a positive time never becomes 0.
    pub value: u64,
    /// First character after the unit. HAProxy accepts the value, with a warning: see
    /// [`Time::leftover_warning`].
    pub leftover: Option<char>,
}

impl Time {
    /// Returns HAProxy's warning about text after the unit; HAProxy prints it without a place.
    pub fn leftover_warning(&self, text: &str) -> Option<String> {
        self.leftover.map(|found| {
            format!(
                "unexpected character '{found}' after the timer value '{text}', only \
                 (us=microseconds,ms=milliseconds,s=seconds,m=minutes,h=hours,d=days) are supported. This will be \
                 reported as an error in next versions."
            )
        })
    }
}

/// Error in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeError {
    /// The text is empty.
    Empty,
    /// A character that is neither digit nor unit.
    Unexpected(char),
    /// More than [`MAX_TIME`].
    Overflow,
}

impl TimeError {
    /// Returns HAProxy's sentence for `timeout client` and most other keywords.
    pub fn message(&self, text: &str, keyword: &str) -> String {
        match self {
            Self::Empty => format!("'{keyword}' expects an integer value (in milliseconds)"),
            Self::Unexpected(found) => format!("unexpected character '{found}' in '{keyword}'"),
            Self::Overflow => format!(
                "timer overflow in argument '{text}' to '{keyword}' (maximum value is 2147483647 ms or ~24.8 days)"
            ),
        }
    }

    /// Returns a hint that may help.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::Unexpected(_) => {
                "a time is a whole number and one of the units us, ms, s, m, h and d, like 500ms or 5s"
            }
            Self::Overflow => "leave the keyword out if there shall be no limit",
        }
    }
}

/// Parses a time. A number without a unit is in the `default` unit; the result is always in that unit.
///
/// # Errors
/// No digits, an unknown unit, or a value above [`MAX_TIME`].
pub fn time(text: &str, default: TimeUnit) -> Result<Time, TimeError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return Err(rest.chars().next().map_or(TimeError::Empty, TimeError::Unexpected));
    }
    let (unit, rest) = time_unit(rest, default)?;
    let value: u128 = match number.trim_start_matches('0') {
        "" => 0,
        significant if significant.len() <= 30 => significant.parse().unwrap_or(u128::MAX),
        _ => return Err(TimeError::Overflow),
    };
    let scaled = value.saturating_mul(unit.microseconds()).div_ceil(default.microseconds());
    let value = u64::try_from(scaled).ok().filter(|&value| value <= MAX_TIME).ok_or(TimeError::Overflow)?;
    Ok(Time { value, leftover: rest.chars().next() })
}

/// Whether a number of milliseconds was most likely not meant as such: a small number without a unit.
pub fn lacks_unit(text: &str, milliseconds: u64) -> bool {
    (1..SUSPICIOUS).contains(&milliseconds) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a time in milliseconds, the default of most keywords.
///
/// # Errors
/// As for [`time`].
pub fn milliseconds(text: &str) -> Result<Time, TimeError> {
    time(text, TimeUnit::Milliseconds)
}

fn time_unit(text: &str, default: TimeUnit) -> Result<(TimeUnit, &str), TimeError> {
    const UNITS: &[(&str, TimeUnit)] = &[
        ("us", TimeUnit::Microseconds),
        ("ms", TimeUnit::Milliseconds),
        ("s", TimeUnit::Seconds),
        ("m", TimeUnit::Minutes),
        ("h", TimeUnit::Hours),
        ("d", TimeUnit::Days),
    ];
    let Some(first) = text.chars().next() else { return Ok((default, text)) };
    UNITS
        .iter()
        .find_map(|&(name, unit)| text.strip_prefix(name).map(|rest| (unit, rest)))
        .ok_or(TimeError::Unexpected(first))
}

/// Error in a size: everything from the first byte that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeError {
    /// The rest of the word. If it starts with a digit or a unit, the size is too large.
    pub rest: String,
}

impl SizeError {
    /// Returns HAProxy's sentence.
    pub fn message(&self, keyword: &str) -> String {
        format!("unexpected '{}' after size passed to '{keyword}'", self.rest)
    }

    /// Returns a hint that may help.
    pub fn hint(&self, max: u64) -> String {
        match self.rest.chars().next() {
            Some('0'..='9' | 'k' | 'K' | 'm' | 'M' | 'g' | 'G') => format!("the largest size here is {max} bytes"),
            _ => "a size is a whole number of bytes and maybe one of the units k, m and g, like 16384 or 16k".into(),
        }
    }
}

/// Parses a size in bytes, at most `max`. The units `k`, `m` and `g` are powers of 1024, in upper or lower case.
///
/// # Errors
/// No digits, an unknown unit, or more than `max`.
pub fn size(text: &str, max: u64) -> Result<u64, SizeError> {
    let error = |at: usize| SizeError { rest: text.get(at..).unwrap_or_default().to_owned() };
    let mut value = 0_u64;
    let mut end = 0;
    for digit in text.bytes().take_while(u8::is_ascii_digit) {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
            .filter(|&value| value <= max)
            .ok_or_else(|| error(end))?;
        end += 1;
    }
    let shift = match text.as_bytes().get(end) {
        _ if end == 0 => return Err(error(0)),
        None => return Ok(value),
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        Some(_) => return Err(error(end)),
    };
    let value = value.checked_mul(1 << shift).filter(|&value| value <= max).ok_or_else(|| error(end))?;
    if text.len() > end + 1 { Err(error(end + 1)) } else { Ok(value) }
}

/// Error in a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumberError {
    /// Not a decimal integer.
    NotANumber,
    /// Outside of the range.
    OutOfRange(RangeInclusive<i64>),
}

impl fmt::Display for NumberError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => write!(formatter, "an integer is expected"),
            Self::OutOfRange(range) => {
                write!(formatter, "a number between {} and {} is expected", range.start(), range.end())
            }
        }
    }
}

/// Parses a decimal integer with an optional sign.
///
/// # Errors
/// Anything but digits after the sign, or a number outside the range.
pub fn number(text: &str, range: RangeInclusive<i64>) -> Result<i64, NumberError> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberError::NotANumber);
    }
    text.parse().ok().filter(|value| range.contains(value)).ok_or(NumberError::OutOfRange(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let rows: &[(&str, Result<u64, TimeError>)] = &[
            ("0", Ok(0)),
            ("5", Ok(5)),
            ("5ms", Ok(5)),
            ("5s", Ok(5_000)),
            ("5m", Ok(300_000)),
            ("1h", Ok(3_600_000)),
            ("2d", Ok(172_800_000)),
            ("0us", Ok(0)),
            ("1us", Ok(1)),
            ("1000us", Ok(1)),
            ("1001us", Ok(2)),
            ("0000000000000000000000000000000000000000005s", Ok(5_000)),
            ("2147483647", Ok(2_147_483_647)),
            ("2147483647000us", Ok(2_147_483_647)),
            ("24d", Ok(2_073_600_000)),
            ("2147483648", Err(TimeError::Overflow)),
            ("2147483647001us", Err(TimeError::Overflow)),
            ("25d", Err(TimeError::Overflow)),
            ("18446744073709551617us", Err(TimeError::Overflow)),
            ("99999999999999999999999999999999999999999999s", Err(TimeError::Overflow)),
            ("", Err(TimeError::Empty)),
            ("s", Err(TimeError::Unexpected('s'))),
            ("10y", Err(TimeError::Unexpected('y'))),
            ("-1", Err(TimeError::Unexpected('-'))),
            ("+1", Err(TimeError::Unexpected('+'))),
            ("1.5s", Err(TimeError::Unexpected('.'))),
            ("5S", Err(TimeError::Unexpected('S'))),
            ("1u", Err(TimeError::Unexpected('u'))),
            (" 5s", Err(TimeError::Unexpected(' '))),
            ("5 s", Err(TimeError::Unexpected(' '))),
            ("5é", Err(TimeError::Unexpected('é'))),
        ];
        for (text, expected) in rows {
            assert_eq!(milliseconds(text).map(|time| time.value), *expected, "{text}");
        }
    }

    #[test]
    fn times_in_other_units() {
        assert_eq!(time("90", TimeUnit::Seconds).unwrap().value, 90);
        assert_eq!(time("1500ms", TimeUnit::Seconds).unwrap().value, 2);
        assert_eq!(time("1us", TimeUnit::Days).unwrap().value, 1);
        assert_eq!(time("2s", TimeUnit::Microseconds).unwrap().value, 2_000_000);
    }

    #[test]
    fn what_stands_behind_the_unit_is_told() {
        let time = milliseconds("24d20h").unwrap();
        assert_eq!(time, Time { value: 2_073_600_000, leftover: Some('2') });
        assert_eq!(
            time.leftover_warning("24d20h").unwrap(),
            "unexpected character '2' after the timer value '24d20h', only (us=microseconds,ms=milliseconds,s=seconds,\
             m=minutes,h=hours,d=days) are supported. This will be reported as an error in next versions."
        );
        assert_eq!(milliseconds("1msx").unwrap(), Time { value: 1, leftover: Some('x') });
        assert_eq!(milliseconds("1s").unwrap().leftover_warning("1s"), None);
    }

    #[test]
    fn sentences_about_times() {
        assert_eq!(
            TimeError::Unexpected('y').message("10y", "timeout client"),
            "unexpected character 'y' in 'timeout client'"
        );
        assert_eq!(
            TimeError::Overflow.message("25d", "timeout client"),
            "timer overflow in argument '25d' to 'timeout client' (maximum value is 2147483647 ms or ~24.8 days)"
        );
    }

    #[test]
    fn sizes() {
        let rows: &[(&str, Result<u64, &str>)] = &[
            ("0", Ok(0)),
            ("1", Ok(1)),
            ("1k", Ok(1 << 10)),
            ("1K", Ok(1 << 10)),
            ("1m", Ok(1 << 20)),
            ("1G", Ok(1 << 30)),
            ("010", Ok(10)),
            ("4294967295", Ok(4_294_967_295)),
            ("8g", Err("g")),
            ("1t", Err("t")),
            ("1kb", Err("b")),
            ("1.5k", Err(".5k")),
            ("-1k", Err("-1k")),
            ("+5", Err("+5")),
            ("0x10", Err("x10")),
            ("99999999999", Err("99")),
            ("18446744073709551616", Err("3709551616")),
            ("", Err("")),
            ("k", Err("k")),
            ("5é", Err("é")),
        ];
        for (text, expected) in rows {
            let expected = expected.map_err(|rest| SizeError { rest: rest.into() });
            assert_eq!(size(text, u64::from(u32::MAX)), expected, "{text}");
        }
        assert_eq!(size("8g", u64::MAX), Ok(8 << 30));
        assert_eq!(
            size("1x", 9).unwrap_err().message("tune.bufsize"),
            "unexpected 'x' after size passed to 'tune.bufsize'"
        );
    }

    #[test]
    fn numbers() {
        let rows: &[(&str, Result<i64, NumberError>)] = &[
            ("0", Ok(0)),
            ("+5", Ok(5)),
            ("-1", Ok(-1)),
            ("010", Ok(10)),
            ("100", Ok(100)),
            ("101", Err(NumberError::OutOfRange(-1..=100))),
            ("-2", Err(NumberError::OutOfRange(-1..=100))),
            ("99999999999999999999", Err(NumberError::OutOfRange(-1..=100))),
            ("", Err(NumberError::NotANumber)),
            ("-", Err(NumberError::NotANumber)),
            ("--1", Err(NumberError::NotANumber)),
            ("1k", Err(NumberError::NotANumber)),
            ("0x10", Err(NumberError::NotANumber)),
            (" 1", Err(NumberError::NotANumber)),
        ];
        for (text, expected) in rows {
            assert_eq!(number(text, -1..=100), *expected, "{text}");
        }
    }
}
