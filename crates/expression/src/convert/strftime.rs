//! strftime(3) in the C locale, with the flags of glibc and `%N` of date(1). Must never read a clock or the local time
//! zone.

use crate::sample::Text;
use base::moment::ZoneName;
use wire::date::{Date, days_since_epoch};

/// A time to be formatted.
#[derive(Debug, Clone, Copy)]
pub(super) struct FormattedTime {
    pub seconds: i64,
    /// Nanoseconds within the second; `None`: `%N` is not supported.
    pub nanos: Option<u32>,
    /// UTC offset in seconds.
    pub offset: i32,
    /// Abbreviation of the time zone.
    pub zone: ZoneName,
}

const DAYS: [&[u8]; 7] = [b"Sunday", b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday"];
const MONTHS: [&[u8]; 12] = [
    b"January",
    b"February",
    b"March",
    b"April",
    b"May",
    b"June",
    b"July",
    b"August",
    b"September",
    b"October",
    b"November",
    b"December",
];

/// The flags and the width between `%` and the letter.
#[derive(Debug, Clone, Copy, Default)]
struct Style {
    /// `_`, `-` or `0`.
    padding: Option<u8>,
    /// `^`.
    upper: bool,
    /// `#`.
    swap: bool,
    width: Option<usize>,
}

/// A time with the values derived from its date.
struct Clock {
    when: FormattedTime,
    date: Date,
    /// Days since Sunday.
    weekday: u32,
    /// Days since the first of January.
    day_of_year: i64,
}

/// Appends the time in that format.
pub(super) fn format(text: &mut Text<'_>, format: &[u8], when: FormattedTime) {
    let local = when.seconds.saturating_add(i64::from(when.offset));
    let date = Date::since_epoch(local);
    let days = local.div_euclid(86_400);
    let weekday = (days + 4).rem_euclid(7) as u32;
    let day_of_year = days - days_since_epoch(date.year, 1, 1);
    Clock { when, date, weekday, day_of_year }.format(text, format, 0);
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Clock {
    /// `depth`: nesting of formats that expand to other formats; at most one.
    fn format(&self, text: &mut Text<'_>, format: &[u8], depth: u32) {
        let mut rest = format;
        while let Some(at) = memchr::memchr(b'%', rest) {
            text.extend(&rest[..at]);
            let (style, letter, length) = read_style(&rest[at..]);
            let directive = &rest[at..at + length];
            rest = &rest[at + length..];
            if text.overflowed() || !letter.is_some_and(|letter| self.put(text, letter, style, depth)) {
                text.extend(directive);
            }
        }
        text.extend(rest);
    }

    /// Appends the expansion of one letter; false if the letter is unknown.
    fn put(&self, text: &mut Text<'_>, letter: u8, style: Style, depth: u32) -> bool {
        let Date { year, month, day, hour, minute, second } = self.date;
        let hour_of_twelve = (hour + 11) % 12 + 1;
        match letter {
            b'%' => text.push(b'%'),
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'a' => name(text, &DAYS[self.weekday as usize][..3], style),
            b'A' => name(text, DAYS[self.weekday as usize], style),
            b'b' | b'h' => name(text, &MONTHS[month as usize - 1][..3], style),
            b'B' => name(text, MONTHS[month as usize - 1], style),
            b'C' => number(text, year.div_euclid(100), 2, b'0', style),
            b'd' => number(text, i64::from(day), 2, b'0', style),
            b'e' => number(text, i64::from(day), 2, b' ', style),
            b'g' => number(text, self.week_of_iso().0.rem_euclid(100), 2, b'0', style),
            b'G' => number(text, self.week_of_iso().0, 1, b'0', style),
            b'H' => number(text, i64::from(hour), 2, b'0', style),
            b'I' => number(text, i64::from(hour_of_twelve), 2, b'0', style),
            b'j' => number(text, self.day_of_year + 1, 3, b'0', style),
            b'k' => number(text, i64::from(hour), 2, b' ', style),
            b'l' => number(text, i64::from(hour_of_twelve), 2, b' ', style),
            b'm' => number(text, i64::from(month), 2, b'0', style),
            b'M' => number(text, i64::from(minute), 2, b'0', style),
            b'p' if !style.swap => name(text, if hour < 12 { b"AM" } else { b"PM" }, style),
            b'p' => name(text, if hour < 12 { b"am" } else { b"pm" }, Style { swap: false, ..style }),
            b'P' => name(text, if hour < 12 { b"am" } else { b"pm" }, style),
            b's' => number(text, self.when.seconds, 1, b'0', style),
            b'S' => number(text, i64::from(second), 2, b'0', style),
            b'u' => number(text, i64::from((self.weekday + 6) % 7 + 1), 1, b'0', style),
            b'U' => number(text, (self.day_of_year + 7 - i64::from(self.weekday)) / 7, 2, b'0', style),
            b'V' => number(text, self.week_of_iso().1, 2, b'0', style),
            b'w' => number(text, i64::from(self.weekday), 1, b'0', style),
            b'W' => number(text, (self.day_of_year + 7 - i64::from((self.weekday + 6) % 7)) / 7, 2, b'0', style),
            b'y' => number(text, year.rem_euclid(100), 2, b'0', style),
            b'Y' => number(text, year, 1, b'0', style),
            b'z' => self.offset(text),
            b'Z' if style.swap => {
                self.when.zone.as_bytes().iter().for_each(|byte| text.push(byte.to_ascii_lowercase()))
            }
            b'Z' => text.extend(self.when.zone.as_bytes()),
            _ => return self.put_compound(text, letter, style, depth),
        }
        true
    }

    fn put_compound(&self, text: &mut Text<'_>, letter: u8, style: Style, depth: u32) -> bool {
        let format: &[u8] = match letter {
            b'c' => b"%a %b %e %H:%M:%S %Y",
            b'D' | b'x' => b"%m/%d/%y",
            b'F' => b"%Y-%m-%d",
            b'r' => b"%I:%M:%S %p",
            b'R' => b"%H:%M",
            b'T' | b'X' => b"%H:%M:%S",
            b'N' => return self.nanos(text, style),
            _ => return false,
        };
        if depth == 0 {
            self.format(text, format, 1);
        }
        depth == 0
    }

    /// `%N`: the first digits of the fraction, as many as the width, 9 without one.
    fn nanos(&self, text: &mut Text<'_>, style: Style) -> bool {
        let width = style.width.unwrap_or(9);
        let Some(nanos) = self.when.nanos.filter(|_| (1..=9).contains(&width)) else {
            return false;
        };
        let divisor = 10_u32.pow(9 - width as u32);
        number(text, i64::from(nanos / divisor), width, b'0', Style::default());
        true
    }

    fn offset(&self, text: &mut Text<'_>) {
        let minutes = i64::from(self.when.offset.unsigned_abs() / 60);
        text.push(if self.when.offset < 0 { b'-' } else { b'+' });
        number(text, minutes / 60 * 100 + minutes % 60, 4, b'0', Style::default());
    }

    /// Year and week of ISO 8601: a week belongs to the year of its Thursday.
    fn week_of_iso(&self) -> (i64, i64) {
        let monday_first = i64::from((self.weekday + 6) % 7);
        let (mut year, mut thursday) = (self.date.year, self.day_of_year - monday_first + 3);
        if thursday < 0 {
            year -= 1;
            thursday += 365 + i64::from(is_leap(year));
        } else if thursday >= 365 + i64::from(is_leap(year)) {
            thursday -= 365 + i64::from(is_leap(year));
            year += 1;
        }
        (year, thursday / 7 + 1)
    }
}

/// Parses `%`, flags, width, `E` or `O`, and the letter; returns the number of bytes read as well. Without a letter the
/// directive is copied literally.
fn read_style(directive: &[u8]) -> (Style, Option<u8>, usize) {
    let mut style = Style::default();
    let mut at = 1;
    while let Some(flag @ (b'_' | b'-' | b'0' | b'^' | b'#')) = directive.get(at) {
        match flag {
            b'^' => style.upper = true,
            b'#' => style.swap = true,
            padding => style.padding = Some(*padding),
        }
        at += 1;
    }
    while let Some(digit @ b'0'..=b'9') = directive.get(at) {
        let width = style.width.unwrap_or(0).saturating_mul(10).saturating_add(usize::from(digit - b'0'));
        style.width = Some(width.min(1024));
        at += 1;
    }
    if matches!(directive.get(at), Some(b'E' | b'O')) && directive.get(at + 1).is_some_and(u8::is_ascii_alphabetic) {
        at += 1;
    }
    match directive.get(at) {
        Some(letter) => (style, Some(*letter), at + 1),
        None => (style, None, directive.len()),
    }
}

fn name(text: &mut Text<'_>, name: &[u8], style: Style) {
    let padding = if style.padding == Some(b'0') { b'0' } else { b' ' };
    (name.len()..style.width.unwrap_or(0)).for_each(|_| text.push(padding));
    let upper = style.upper || style.swap;
    name.iter().for_each(|byte| text.push(if upper { byte.to_ascii_uppercase() } else { *byte }));
}

fn number(text: &mut Text<'_>, number: i64, width: usize, padding: u8, style: Style) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = number.unsigned_abs();
    while left > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let padding = match style.padding {
        Some(b'_') => Some(b' '),
        Some(b'-') => None,
        Some(_) => Some(b'0'),
        None => Some(padding),
    };
    if number < 0 {
        text.push(b'-');
    }
    if let Some(padding) = padding {
        (digits.len() - at..style.width.unwrap_or(width)).for_each(|_| text.push(padding));
    }
    text.extend(&digits[at..]);
}
