//! The Gregorian calendar: conversion of seconds since the UNIX epoch to a date and time. Must never read a clock or
//! know a time zone: the caller adds the offset for local time first.

/// English abbreviations of the months, as used in the dates of protocols.
pub const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// A date and time with a resolution of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// Year; may be negative.
    pub year: i64,
    /// Month, from 1.
    pub month: u32,
    /// Day of the month, from 1.
    pub day: u32,
    /// Hour, from 0.
    pub hour: u32,
    /// Minute, from 0.
    pub minute: u32,
    /// Second, from 0.
    pub second: u32,
}

impl Date {
    /// Converts seconds since the start of 1970 to a date.
    ///
    /// Years are counted from the first of March, so that the leap day is the last day of a year, in eras of 400 years,
    /// which all have the same length.
    pub const fn since_epoch(seconds: i64) -> Self {
        let time = seconds.rem_euclid(86_400) as u32;
        let days = seconds.div_euclid(86_400) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
        let month = (if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 }) as u32;
        let year = year_of_era + era * 400 + (month <= 2) as i64;
        Self { year, month, day, hour: time / 3_600, minute: time / 60 % 60, second: time % 60 }
    }

    /// The English abbreviation: "Jan" to "Dec".
    pub const fn month_name(&self) -> &'static [u8; 3] {
        MONTHS[(self.month as usize + 11) % 12]
    }
}

/// Returns the days from the start of 1970 to a date; negative before it. `month`: from 1 to 12. A `day` beyond the month carries
/// over to the following one.
pub const fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // As in `Date::since_epoch`, years begin in March.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Formats a time as an HTTP date in the preferred format (RFC 9110, section 5.6.7). Of years outside of 0 to 9999 the
/// last four digits are written.
pub fn format_http_date(seconds: i64) -> [u8; 29] {
    const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
    let date = Date::since_epoch(seconds);
    let mut text = *b"Day, 00 Mon 0000 00:00:00 GMT";
    text[..3].copy_from_slice(DAYS[seconds.div_euclid(86_400).rem_euclid(7) as usize]);
    text[8..11].copy_from_slice(date.month_name());
    let year = date.year.rem_euclid(10_000) as u32;
    let pairs = [(5, date.day), (12, year / 100), (14, year), (17, date.hour), (20, date.minute), (23, date.second)];
    for (at, number) in pairs {
        text[at] = b'0' + (number / 10 % 10) as u8;
        text[at + 1] = b'0' + (number % 10) as u8;
    }
    text
}

/// Parses an HTTP date in any of its three formats and returns seconds since the UNIX epoch (RFC 9110, section 5.6.7).
/// Two-digit years are in the range 1970 to 2069.
pub fn parse_http_date(text: &[u8]) -> Option<i64> {
    let words: Vec<&[u8]> =
        text.split(|byte| matches!(byte, b' ' | b',' | b'-')).filter(|word| !word.is_empty()).take(7).collect();
    let (day, month, year, time) = match *words.as_slice() {
        [_, day, month, year, time, b"GMT"] => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let number = |text: &[u8], most: u32| {
        let is_number = matches!(text.len(), 1..=4) && text.iter().all(u8::is_ascii_digit);
        let value = text.iter().fold(0, |sum: u32, digit| sum * 10 + u32::from(digit.wrapping_sub(b'0')));
        (is_number && value <= most).then_some(i64::from(value))
    };
    let month = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(month))? as i64 + 1;
    let (day, mut whole_year) = (number(day, 31).filter(|day| *day > 0)?, number(year, 9_999)?);
    if year.len() == 2 {
        whole_year += if whole_year < 70 { 2_000 } else { 1_900 };
    }
    let mut parts = time.split(|byte| *byte == b':');
    let mut next = |most| number(parts.next()?, most);
    let (hour, minute, second) = (next(23)?, next(59)?, next(60)?);
    if parts.next().is_some() {
        return None;
    }
    Some(days_since_epoch(whole_year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_the_calendar() {
        for (seconds, year, month, day, time) in [
            (0, 1970, 1, 1, (0, 0, 0)),
            (-1, 1969, 12, 31, (23, 59, 59)),
            (951_782_400, 2000, 2, 29, (0, 0, 0)),
            (951_868_800, 2000, 3, 1, (0, 0, 0)),
            (1_233_922_454, 2009, 2, 6, (12, 14, 14)),
            (1_709_164_799, 2024, 2, 28, (23, 59, 59)),
            (4_107_542_400, 2100, 3, 1, (0, 0, 0)),
            (253_402_300_799, 9999, 12, 31, (23, 59, 59)),
        ] {
            let (hour, minute, second) = time;
            assert_eq!(Date::since_epoch(seconds), Date { year, month, day, hour, minute, second });
            assert_eq!(days_since_epoch(year, month.into(), day.into()), seconds.div_euclid(86_400));
        }
        assert_eq!(days_since_epoch(2001, 2, 31), days_since_epoch(2001, 3, 3));
        assert_eq!(Date::since_epoch(0).month_name(), b"Jan");
        assert_eq!(Date::since_epoch(-1).month_name(), b"Dec");
    }

    #[test]
    fn days_follow_each_other_for_four_centuries() {
        let mut before = Date::since_epoch(-86_400);
        for day in 0..146_097 {
            let date = Date::since_epoch(day * 86_400);
            let next = date.day == before.day + 1 && (date.month, date.year) == (before.month, before.year);
            let first = date.day == 1 && before.day >= 28 && date.month == before.month % 12 + 1;
            assert!(next || first, "{before:?} {date:?}");
            assert_eq!(days_since_epoch(date.year, date.month.into(), date.day.into()), day);
            before = date;
        }
    }

    #[test]
    fn no_number_is_out_of_range() {
        for seconds in [i64::MIN, i64::MAX] {
            Date::since_epoch(seconds).month_name();
        }
    }

    #[test]
    fn dates_of_http_are_read() {
        let rows: &[(&str, Option<i64>)] = &[
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 23:59:59 GMT", Some(951_868_799)),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("Sun, 00 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 24:49:37 GMT", None),
            ("Sun, 06 Nox 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49 GMT", None),
            ("0", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(super::parse_http_date(text.as_bytes()), *expected, "{text}");
        }
        for seconds in (0..8_000_000_000).step_by(98_765_432) {
            let date = super::Date::since_epoch(seconds);
            let month = std::str::from_utf8(super::MONTHS[date.month as usize - 1]).unwrap();
            let (hour, minute, second) = (date.hour, date.minute, date.second);
            let text = format!("Sun, {:02} {month} {:04} {hour:02}:{minute:02}:{second:02} GMT", date.day, date.year);
            assert_eq!(super::parse_http_date(text.as_bytes()), Some(seconds), "{text}");
        }
    }

    #[test]
    fn dates_of_http_are_written_as_they_are_read() {
        let rows = [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (253_402_300_800, "Sat, 01 Jan 0000 00:00:00 GMT"),
        ];
        for (seconds, text) in rows {
            assert_eq!(std::str::from_utf8(&super::format_http_date(seconds)).unwrap(), text);
        }
        for seconds in (0..250_000_000_000).step_by(987_654_321) {
            assert_eq!(super::parse_http_date(&super::format_http_date(seconds)), Some(seconds));
        }
        for seconds in [i64::MIN, i64::MAX] {
            assert!(super::format_http_date(seconds).is_ascii());
        }
    }
}
