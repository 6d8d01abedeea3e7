//! Formats of values: counts, rates, times. Must never depend on a particular option.

use std::time::Duration;

/// Maximum time of an option.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Parses a whole number, optionally followed by `k`, `m` or `g` for 10^3, 10^6 and 10^9.
///
/// # Errors
/// A description of the expected value.
pub fn count(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let expected = || format!("a whole number from {least} to {most}");
    let (digits, factor) = scaled(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| plain).and_then(|number| number.checked_mul(factor));
    number.filter(|number| (least..=most).contains(number)).ok_or_else(expected)
}

/// Like [`count`]; 0 and -1 mean no limit.
///
/// # Errors
/// A description of the expected value.
pub fn limit(text: &str, most: u64) -> Result<Option<u64>, String> {
    let expected = |_| format!("a whole number up to {most}, or 0 for no limit");
    if text == "-1" {
        return Ok(None);
    }
    Ok(Some(count(text, 0, most).map_err(expected)?).filter(|number| *number > 0))
}

/// Parses a rate per second, which may have a fraction; `k` and `m` as for counts. 0 means no limit.
///
/// # Errors
/// A description of the expected value.
pub fn rate(text: &str, most: f64) -> Result<Option<f64>, String> {
    let expected = || format!("a number up to {most} a second");
    let (digits, factor) = scaled(text);
    let number = fraction(digits).ok_or_else(expected)? * factor as f64;
    if number == 0.0 {
        return Ok(None);
    }
    // A rate so low that nothing happens within the longest run is a mistake.
    let lowest = 1.0 / LONGEST.as_secs_f64();
    (lowest..=most).contains(&number).then_some(Some(number)).ok_or_else(expected)
}

/// Parses a time: a number, which may have a fraction, optionally followed by `us`, `ms`, `s`, `m`, `h` or `d`,
/// otherwise in `unit`.
///
/// # Errors
/// A description of the expected value.
pub fn time(text: &str, unit: Duration) -> Result<Duration, String> {
    const UNITS: &[(&str, f64)] = &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
    let name = if unit.as_millis() == 1 { "milliseconds" } else { "seconds" };
    let expected = || format!("a time of up to 366 days, such as 500ms or 10s ({name} without a unit)");
    let letters = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, written) = text.split_at(letters);
    let factor = match written {
        "" => Some(unit.as_secs_f64()),
        _ => UNITS.iter().find(|(name, _)| *name == written).map(|(_, factor)| *factor),
    };
    let seconds = fraction(digits).zip(factor).map(|(number, factor)| number * factor).ok_or_else(expected)?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= LONGEST).ok_or_else(expected)
}

/// Parses digits with at most one point: no sign, no exponent, no infinity.
fn fraction(digits: &str) -> Option<f64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let some = digits.bytes().any(|byte| byte.is_ascii_digit());
    (plain && some).then(|| digits.parse().ok()).flatten()
}

/// Returns the number and the factor of its suffix.
fn scaled(text: &str) -> (&str, u64) {
    match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_suffixes_and_bounds() {
        for (text, number) in [("1", 1), ("010", 10), ("2k", 2_000), ("3M", 3_000_000), ("4g", 4_000_000_000)] {
            assert_eq!(count(text, 1, u64::MAX), Ok(number), "{text}");
        }
        for text in
            ["", "k", "x", "-1", "+1", "1.5", "1kk", "1 ", " 1", "99999999999999999999", "18446744073709551615k", "é"]
        {
            assert!(count(text, 0, u64::MAX).is_err(), "{text}");
        }
        assert_eq!(count("0", 1, 5), Err("a whole number from 1 to 5".to_owned()));
        assert!(count("6", 1, 5).is_err());
    }

    #[test]
    fn no_limit_is_zero_or_minus_one() {
        assert_eq!(limit("0", 9), Ok(None));
        assert_eq!(limit("-1", 9), Ok(None));
        assert_eq!(limit("9", 9), Ok(Some(9)));
        assert!(limit("10", 9).is_err());
        assert!(limit("-2", 9).is_err());
    }

    #[test]
    fn rates_may_have_a_fraction() {
        assert_eq!(rate("0.5", 10.0), Ok(Some(0.5)));
        assert_eq!(rate("1.5k", 2000.0), Ok(Some(1500.0)));
        assert_eq!(rate("0", 10.0), Ok(None));
        for text in ["", ".", "1.2.3", "-1", "inf", "nan", "1e9", "11", "0.00000000001"] {
            assert!(rate(text, 10.0).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        let second = Duration::from_secs(1);
        for (text, millis) in
            [("3", 3_000), ("0.5", 500), ("10ms", 10), ("1s", 1_000), ("2m", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(time(text, second), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(time("10", Duration::from_millis(1)), Ok(Duration::from_millis(10)));
        assert_eq!(time("20us", second), Ok(Duration::from_micros(20)));
        assert_eq!(time("0", second), Ok(Duration::ZERO));
        for text in ["", "s", "1x", "-1", "1 s", "400d", "1e3", "1sms", "99999999999999999999999999"] {
            assert!(time(text, second).is_err(), "{text}");
        }
    }
}
