//! Converters between dates and seconds.

use super::Converter;
use super::strftime::{self, FormattedTime};
use crate::sample::{Context, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use base::moment::ZoneName;
use std::fmt::Write as _;
use wire::date::{MONTHS, days_since_epoch};

const FORMAT: Signature = Signature::new(1, &[Kind::Str, Kind::Int]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "date",
        Signature::NONE,
        Type::Str,
        Type::Int,
        "Converts an HTTP date in any of its three formats to a UNIX timestamp.",
        date,
    ),
    Converter::new(
        "http_date",
        Signature::new(0, &[Kind::Int, Kind::Str]),
        Type::Int,
        Type::Str,
        "Converts a timestamp in s, ms or us to an HTTP date, plus an offset in the same unit.",
        to_http_date,
    )
    .checked(check_http_date),
    Converter::new(
        "ltime",
        FORMAT,
        Type::Int,
        Type::Str,
        "Formats seconds since the epoch in local time.",
        |c, v, a| shown(c, v, a, 1, true),
    ),
    Converter::new(
        "ms_ltime",
        FORMAT,
        Type::Int,
        Type::Str,
        "Formats milliseconds since the epoch in local time.",
        |c, v, a| shown(c, v, a, 1_000, true),
    ),
    Converter::new(
        "ms_utime",
        FORMAT,
        Type::Int,
        Type::Str,
        "Formats milliseconds since the epoch in UTC.",
        |c, v, a| shown(c, v, a, 1_000, false),
    ),
    Converter::new(
        "us_ltime",
        FORMAT,
        Type::Int,
        Type::Str,
        "Formats microseconds since the epoch in local time.",
        |c, v, a| shown(c, v, a, 1_000_000, true),
    ),
    Converter::new(
        "us_utime",
        FORMAT,
        Type::Int,
        Type::Str,
        "Formats microseconds since the epoch in UTC.",
        |c, v, a| shown(c, v, a, 1_000_000, false),
    ),
    Converter::new("utime", FORMAT, Type::Int, Type::Str, "Formats seconds since the epoch in UTC.", |c, v, a| {
        shown(c, v, a, 1, false)
    }),
];

/// Dates are truncated to these bits, as in HAProxy: none of them is before the epoch.
const MOST_SECONDS: i64 = (1 << 55) - 1;

/// Formats a date. The offset is in seconds, whatever the unit of the sample.
fn shown<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    arguments: &'a Arguments,
    in_second: i64,
    local: bool,
) -> Option<Value<'a>> {
    let number = value.integer()?;
    let seconds = number.div_euclid(in_second).wrapping_add(arguments.int(1).unwrap_or(0)) & MOST_SECONDS;
    let nanos = number.rem_euclid(in_second) * (1_000_000_000 / in_second);
    let (offset, zone) = match local {
        true => (context.probes.local_offset(seconds), context.probes.zone_name(seconds)),
        false => (0, ZoneName::GMT),
    };
    let nanos = (in_second > 1).then_some(nanos as u32);
    let mut text = context.text(64);
    strftime::format(&mut text, arguments.text(0)?, FormattedTime { seconds, nanos, offset, zone });
    text.finish().map(Value::Str)
}

fn check_http_date(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let in_second = match arguments.utf8(1) {
        None | Some("" | "s") => 1,
        Some("ms") => 1_000,
        Some("us") => 1_000_000,
        Some(other) => return Err(format!("expects 's', 'ms' or 'us', got '{other}'")),
    };
    arguments.set(1, Argument::Int(in_second));
    Ok(())
}

fn to_http_date<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let number = value.integer()?.wrapping_add(arguments.int(0).unwrap_or(0));
    let in_second = arguments.int(1).unwrap_or(1);
    let seconds = number.div_euclid(in_second) & MOST_SECONDS;
    let mut text = context.text(40);
    let when = FormattedTime { seconds, nanos: None, offset: 0, zone: ZoneName::GMT };
    strftime::format(&mut text, b"%a, %d %b %Y %H:%M:%S", when);
    let part = number.rem_euclid(in_second);
    match in_second {
        1_000 => write!(text, ".{part:03}"),
        1_000_000 => write!(text, ".{part:06}"),
        _ => Ok(()),
    }
    .ok()?;
    text.extend(b" GMT");
    text.finish().map(Value::Str)
}

fn date<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    http_date(value.bytes()?).map(Value::Int)
}

/// Parses a date in any of the three formats of HTTP (RFC 9110, section 5.6.7) into seconds since 1970; `None`: in none
/// of them.
pub fn http_date(text: &[u8]) -> Option<i64> {
    imf_date(text).or_else(|| rfc850_date(text)).or_else(|| asctime_date(text))
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Parses "Sun, 06 Nov 1994 08:49:37 GMT".
pub fn imf_date(text: &[u8]) -> Option<i64> {
    let rest = after_weekday(text, true)?.strip_prefix(b", ")?;
    let (day, rest) = digits(rest, 2)?;
    let (month, rest) = month(rest.strip_prefix(b" ")?)?;
    let (year, rest) = digits(rest.strip_prefix(b" ")?, 4)?;
    let (time, rest) = time(rest.strip_prefix(b" ")?)?;
    rest.starts_with(b" GMT").then(|| seconds(year, month, day, time))
}

/// Parses "Sunday, 06-Nov-94 08:49:37 GMT": years from 70 on are 19xx.
pub fn rfc850_date(text: &[u8]) -> Option<i64> {
    let rest = after_weekday(text, false)?.strip_prefix(b", ")?;
    let (day, rest) = digits(rest, 2)?;
    let (month, rest) = month(rest.strip_prefix(b"-")?)?;
    let (year, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let (time, rest) = time(rest.strip_prefix(b" ")?)?;
    let century = if year < 70 { 2000 } else { 1900 };
    rest.starts_with(b" GMT").then(|| seconds(century + year, month, day, time))
}

/// Parses "Sun Nov  6 08:49:37 1994".
pub fn asctime_date(text: &[u8]) -> Option<i64> {
    let rest = after_weekday(text, true)?.strip_prefix(b" ")?;
    let (month, rest) = month(rest)?;
    let rest = rest.strip_prefix(b" ")?;
    let (day, rest) = match rest.strip_prefix(b" ") {
        Some(rest) => digits(rest, 1)?,
        None => digits(rest, 2)?,
    };
    let (time, rest) = time(rest.strip_prefix(b" ")?)?;
    let (year, _) = digits(rest.strip_prefix(b" ")?, 4)?;
    Some(seconds(year, month, day, time))
}

fn after_weekday(text: &[u8], short: bool) -> Option<&[u8]> {
    WEEKDAYS.iter().find_map(|name| text.strip_prefix(if short { &name.as_bytes()[..3] } else { name.as_bytes() }))
}

/// Parses a number of exactly `count` digits; returns the rest as well.
fn digits(text: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(count)?;
    let number = digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))?;
    Some((number, rest))
}

fn month(text: &[u8]) -> Option<(i64, &[u8])> {
    let (name, rest) = text.split_at_checked(3)?;
    let index = MONTHS.iter().position(|month| *month == name)?;
    Some((index as i64 + 1, rest))
}

fn time(text: &[u8]) -> Option<(i64, &[u8])> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(b":")?, 2)?;
    let (second, rest) = digits(rest.strip_prefix(b":")?, 2)?;
    Some((hour * 3_600 + minute * 60 + second, rest))
}

/// Days beyond the month and hours beyond the day carry over.
fn seconds(year: i64, month: i64, day: i64, time: i64) -> i64 {
    days_since_epoch(year, month, day) * 86_400 + time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::tests::{Scene, check_rows};
    use wire::date::Date;

    #[test]
    fn seconds_are_those_of_the_calendar() {
        for day in (-719_528..1_000_000).step_by(17) {
            let date = Date::since_epoch(day * 86_400);
            assert_eq!(seconds(date.year, i64::from(date.month), i64::from(date.day), 5), day * 86_400 + 5);
        }
    }

    #[test]
    fn dates_are_shown() {
        check_rows(
            &Scene::default(),
            &[
                ("int(784111777),http_date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("int(784111777),http_date(-10)", "Sun, 06 Nov 1994 08:49:27 GMT"),
                ("int(784111777123),http_date(1000,ms)", "Sun, 06 Nov 1994 08:49:38.123 GMT"),
                ("int(784111777123456),http_date(0,us)", "Sun, 06 Nov 1994 08:49:37.123456 GMT"),
                ("int(99999999999999),http_date", "Sat, 07 Nov 3170843 09:46:39 GMT"),
                ("int(-1),http_date", "Sun, 13 Jun 1141709097 06:26:07 GMT"),
                (
                    "int(1),http_date(0,x)",
                    "!invalid args in converter 'http_date' : expects 's', 'ms' or 'us', got 'x'",
                ),
                ("int(1404987830),utime(%Y%m%d%H%M%S,3600)", "20140710112350"),
                ("int(1404987830),ltime('%Y%m%d%H%M%S %z %Z')", "20140710112350 +0100 CET"),
                ("int(0),utime(%N)", "%N"),
                ("int(1404987830123),ms_utime(%S.%N)", "50.123000000"),
                ("int(1404987830123),ms_ltime(%S.%3N,877)", "27.123"),
                ("int(1404987830123456),us_utime(%S.%N|%6N|%3N)", "50.123456000|123456|123"),
                ("int(1404987830123456),us_ltime(%S.%N,1)", "51.123456000"),
                ("int(9223372036854775807),utime(%Y)", "1141709097"),
                ("int(-9223372036854775808),utime(%Y)", "1970"),
                ("int(-99999999999),utime('%Y %C %y %G')", "1141705928 11417059 28 1141705928"),
                ("int(5),utime", ""),
                (
                    "int(1404987830),utime('%a %A %b %B %c|%C|%d|%D|%e|%F|%g|%G|%h|%H|%I|%j|%k|%l|%m|%M|%n|%p|%P|%r|%R|%s|%S|%t|%T|%u|%U|%V|%w|%W|%x|%X|%y|%Y|%z|%Z|%%|%E|%Ey|%Od|%+|%q|%-d|%_d|%^a|%#Z|%5Y|%0e|%_m|%3d|%v|%')",
                    "Thu Thursday Jul July Thu Jul 10 10:23:50 2014|20|10|07/10/14|10|2014-07-10|14|2014|Jul|10|10|191|10|10|07|23|\n|AM|am|10:23:50 AM|10:23|1404987830|50|\t|10:23:50|4|27|28|4|27|07/10/14|10:23:50|14|2014|+0000|GMT|%|%E|14|10|%+|%q|10|10|THU|gmt|02014|10| 7|010|%v|%",
                ),
            ],
        );
    }

    #[test]
    fn dates_are_read() {
        let rows: &[(&str, &str)] = &[
            ("Sun, 06 Nov 1994 08:49:37 GMT", "784111777"),
            ("Sunday, 06-Nov-94 08:49:37 GMT", "784111777"),
            ("Sun Nov  6 08:49:37 1994", "784111777"),
            ("Sun, 06 Nov 1994 08:49:37", "<none>"),
            ("Mon, 06 Nov 1994 08:49:37 GMT", "784111777"),
            ("nope", "<none>"),
            ("", "<none>"),
            ("Sun, 06 Nov 1994 08:49:37 GMTx", "784111777"),
            ("Sun, 6 Nov 1994 08:49:37 GMT", "<none>"),
            ("Sunday, 06-Nov-70 08:49:37 GMT", "26729377"),
            ("Sunday, 06-Nov-00 08:49:37 GMT", "973500577"),
            ("Sun, 32 Nov 1994 08:49:37 GMT", "786358177"),
            ("Sun, 31 Nov 1994 08:49:37 GMT", "786271777"),
            ("Sun, 06 Nov 1994 24:49:37 GMT", "784169377"),
            ("Sun, 06 Nov 1994 23:59:60 GMT", "784166400"),
            ("sun, 06 nov 1994 23:59:59 gmt", "<none>"),
        ];
        for (text, expected) in rows {
            assert_eq!(Scene::default().eval(&format!("str('{text}'),date")), *expected, "{text}");
        }
    }
}
