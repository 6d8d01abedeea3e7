//! Headers of syslog messages: RFC 3164, RFC 5424 and the shorter formats of HAProxy (configuration manual, section 4.2
//! "log"). Must never know where a message is sent, nor truncate one.

pub mod frame;
pub mod message;
pub mod relay;

use crate::date::Date;

/// The format of a message's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `<134>Nov 20 13:46:49 host tag[pid]: `
    Rfc3164,
    /// `<134>1 2026-11-20T13:46:49.918587+00:00 host tag pid - - `
    Rfc5424,
    /// RFC 3164 without the host.
    Local,
    /// `<134>`
    Priority,
    /// `<6>`: only the severity.
    Short,
    /// `<6>2026-11-20T13:46:49.918587+00:00 `
    Timed,
    /// `2026-11-20T13:46:49.918587+00:00 `
    Iso,
    /// No header.
    Raw,
}

/// The values of a header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// Facility, 0 to 23.
    pub facility: u8,
    /// Severity, 0 (emergency) to 7 (debug).
    pub severity: u8,
    /// Host name; `None` to omit it.
    pub hostname: Option<&'a str>,
    /// Program name.
    pub tag: &'a str,
    /// Process ID.
    pub pid: u32,
    /// STRUCTURED-DATA of RFC 5424; empty if none.
    pub structured_data: &'a [u8],
}

impl Format {
    /// Appends the header of a message.
    pub fn write(self, header: &Header<'_>, now: &Timestamp, out: &mut Vec<u8>) {
        match self {
            Self::Rfc3164 | Self::Local => {
                priority(out, header.facility, header.severity);
                out.extend_from_slice(&now.rfc3164);
                if self == Self::Rfc3164 {
                    out.push(b' ');
                    out.extend_from_slice(header.hostname.unwrap_or("localhost").as_bytes());
                }
                out.push(b' ');
                out.extend_from_slice(header.tag.as_bytes());
                out.push(b'[');
                decimal(out, header.pid);
                out.extend_from_slice(b"]: ");
            }
            Self::Rfc5424 => {
                priority(out, header.facility, header.severity);
                out.extend_from_slice(b"1 ");
                now.iso(out);
                for word in [header.hostname.unwrap_or("-"), header.tag] {
                    out.push(b' ');
                    out.extend_from_slice(word.as_bytes());
                }
                out.push(b' ');
                decimal(out, header.pid);
                out.extend_from_slice(b" - ");
                out.extend_from_slice(if header.structured_data.is_empty() { b"-" } else { header.structured_data });
                out.push(b' ');
            }
            Self::Priority => priority(out, header.facility, header.severity),
            Self::Short => priority(out, 0, header.severity),
            Self::Timed => {
                priority(out, 0, header.severity);
                now.iso(out);
                out.push(b' ');
            }
            Self::Iso => {
                now.iso(out);
                out.push(b' ');
            }
            Self::Raw => {}
        }
    }
}

impl Format {
    /// Appends the header of an event of the program itself: with facility and severity 0, without program name and
    /// process ID.
    pub fn write_event(self, hostname: Option<&str>, now: &Timestamp, out: &mut Vec<u8>) {
        match self {
            Self::Rfc3164 | Self::Local => {
                priority(out, 0, 0);
                out.extend_from_slice(&now.rfc3164);
                if self == Self::Rfc3164 {
                    out.push(b' ');
                    out.extend_from_slice(hostname.unwrap_or("localhost").as_bytes());
                }
                out.push(b' ');
            }
            Self::Rfc5424 => {
                priority(out, 0, 0);
                out.extend_from_slice(b"1 ");
                now.iso(out);
                out.push(b' ');
                out.extend_from_slice(hostname.unwrap_or("-").as_bytes());
                out.extend_from_slice(b" - - - - ");
            }
            Self::Priority | Self::Short => priority(out, 0, 0),
            Self::Timed => {
                priority(out, 0, 0);
                now.iso(out);
                out.push(b' ');
            }
            Self::Iso => {
                now.iso(out);
                out.push(b' ');
            }
            Self::Raw => {}
        }
    }
}

fn priority(out: &mut Vec<u8>, facility: u8, severity: u8) {
    out.push(b'<');
    decimal(out, u32::from(facility) * 8 + u32::from(severity & 7));
    out.push(b'>');
}

fn decimal(out: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0; 10];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[start..]);
        }
    }
}

/// The time of a message in the notations of headers. Formatted once per second.
#[derive(Debug, Clone)]
pub struct Timestamp {
    second: Option<(i64, i32)>,
    micros: u32,
    rfc3164: [u8; 15],
    /// Date and time without year, fraction and zone: "-11-20T13:46:49".
    rest: [u8; 15],
    year: i64,
    zone: [u8; 6],
}

impl Default for Timestamp {
    fn default() -> Self {
        let mut this = Self { second: None, micros: 0, rfc3164: [0; 15], rest: [0; 15], year: 0, zone: [0; 6] };
        this.set(0, 0, 0);
        this
    }
}

impl Timestamp {
    /// Sets the time: seconds since the UNIX epoch, nanoseconds within the second, and the offset of local time from
    /// UTC in seconds.
    pub fn set(&mut self, seconds: i64, nanos: u32, offset: i32) {
        self.micros = nanos / 1_000 % 1_000_000;
        if self.second == Some((seconds, offset)) {
            return;
        }
        self.second = Some((seconds, offset));
        let date = Date::since_epoch(seconds.saturating_add(i64::from(offset)));
        let [month, day, hour, minute, second] = [date.month, date.day, date.hour, date.minute, date.second].map(two);
        let space = |digits: [u8; 2]| if digits[0] == b'0' { [b' ', digits[1]] } else { digits };
        let time = [&hour[..], b":", &minute, b":", &second];
        fill(&mut self.rfc3164, [&date.month_name()[..], b" ", &space(day), b" "].into_iter().chain(time));
        fill(&mut self.rest, [&b"-"[..], &month, b"-", &day, b"T"].into_iter().chain(time));
        self.year = date.year;
        let minutes = offset.unsigned_abs() / 60;
        let sign = if offset < 0 { b"-" } else { b"+" };
        fill(&mut self.zone, [&sign[..], &two(minutes / 60 % 100), b":", &two(minutes % 60)].into_iter());
    }

    fn iso(&self, out: &mut Vec<u8>) {
        if self.year < 0 {
            out.push(b'-');
        }
        let year = u32::try_from(self.year.unsigned_abs()).unwrap_or(u32::MAX);
        if year < 1_000 {
            out.push(b'0');
            out.push(b'0' + (year / 100) as u8);
            out.extend_from_slice(&two(year % 100));
        } else {
            decimal(out, year);
        }
        out.extend_from_slice(&self.rest);
        out.push(b'.');
        for part in [self.micros / 10_000, self.micros / 100, self.micros] {
            out.extend_from_slice(&two(part % 100));
        }
        out.extend_from_slice(&self.zone);
    }
}

fn two(number: u32) -> [u8; 2] {
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

/// Writes the concatenation of `parts`, truncated to the length of `place`.
fn fill<'a>(place: &mut [u8], parts: impl Iterator<Item = &'a [u8]>) {
    for (to, from) in place.iter_mut().zip(parts.flatten()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: Format, header: &Header<'_>, seconds: i64, nanos: u32, offset: i32) -> String {
        let mut now = Timestamp::default();
        now.set(seconds, nanos, offset);
        let mut out = Vec::new();
        format.write(header, &now, &mut out);
        String::from_utf8(out).unwrap()
    }

    const HEADER: Header<'_> =
        Header { facility: 16, severity: 6, hostname: None, tag: "haproxy", pid: 29_080, structured_data: b"" };

    /// Recorded from HAProxy 3.5.
    #[test]
    fn each_format_has_its_header() {
        let named = Header { hostname: Some("my.host"), structured_data: b"[x@1 a=\"b\"]", ..HEADER };
        for (format, plain, with_host) in [
            (
                Format::Rfc3164,
                "<134>Nov 20 13:51:32 localhost haproxy[29080]: ",
                "<134>Nov 20 13:51:32 my.host haproxy[29080]: ",
            ),
            (
                Format::Rfc5424,
                "<134>1 2026-11-20T13:51:32.918587+00:00 - haproxy 29080 - - ",
                "<134>1 2026-11-20T13:51:32.918587+00:00 my.host haproxy 29080 - [x@1 a=\"b\"] ",
            ),
            (Format::Local, "<134>Nov 20 13:51:32 haproxy[29080]: ", "<134>Nov 20 13:51:32 haproxy[29080]: "),
            (Format::Priority, "<134>", "<134>"),
            (Format::Short, "<6>", "<6>"),
            (Format::Timed, "<6>2026-11-20T13:51:32.918587+00:00 ", "<6>2026-11-20T13:51:32.918587+00:00 "),
            (Format::Iso, "2026-11-20T13:51:32.918587+00:00 ", "2026-11-20T13:51:32.918587+00:00 "),
            (Format::Raw, "", ""),
        ] {
            assert_eq!(text(format, &HEADER, 1_795_182_692, 918_587_999, 0), plain);
            assert_eq!(text(format, &named, 1_795_182_692, 918_587_999, 0), with_host);
        }
    }

    /// Recorded from HAProxy 3.5.
    #[test]
    fn events_have_shorter_headers() {
        let mut now = Timestamp::default();
        now.set(1_795_182_692, 918_587_999, 0);
        for (format, wanted) in [
            (Format::Rfc3164, "<0>Nov 20 13:51:32 localhost "),
            (Format::Rfc5424, "<0>1 2026-11-20T13:51:32.918587+00:00 - - - - - "),
            (Format::Local, "<0>Nov 20 13:51:32 "),
            (Format::Priority, "<0>"),
            (Format::Short, "<0>"),
            (Format::Timed, "<0>2026-11-20T13:51:32.918587+00:00 "),
            (Format::Iso, "2026-11-20T13:51:32.918587+00:00 "),
            (Format::Raw, ""),
        ] {
            let mut out = Vec::new();
            format.write_event(None, &now, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }

    #[test]
    fn days_below_ten_and_zones() {
        let header = Header { facility: 0, severity: 0, ..HEADER };
        assert_eq!(text(Format::Local, &header, 1_233_922_329, 0, 0), "<0>Feb  6 12:12:09 haproxy[29080]: ");
        for (offset, wanted) in [
            (3_600, "2026-11-20T14:55:33.000007+01:00 "),
            (19_800, "2026-11-20T19:25:33.000007+05:30 "),
            (-12_600, "2026-11-20T10:25:33.000007-03:30 "),
        ] {
            assert_eq!(text(Format::Iso, &HEADER, 1_795_182_933, 7_000, offset), wanted);
        }
        assert_eq!(text(Format::Iso, &HEADER, -62_135_596_800, 0, 0), "0001-01-01T00:00:00.000000+00:00 ");
    }

    #[test]
    fn a_timestamp_that_moves_shows_no_trace_of_where_it_was() {
        let mut now = Timestamp::default();
        let mut fresh = |seconds, nanos, offset| {
            now.set(seconds, nanos, offset);
            let mut out = Vec::new();
            Format::Rfc5424.write(&HEADER, &now, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text(Format::Rfc5424, &HEADER, seconds, nanos, offset));
        };
        fresh(1_795_182_692, 1_000, 0);
        fresh(1_795_182_692, 999_999_999, 0);
        fresh(1_795_182_692, 5_000, 3_600);
        fresh(0, 0, -3_600);
        fresh(i64::MAX, u32::MAX, i32::MIN);
        fresh(i64::MIN, 0, i32::MAX);
    }
}
