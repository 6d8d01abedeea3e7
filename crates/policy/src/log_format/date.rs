//! The two shapes of dates in log lines. Must never read a clock or know a time zone: the offset is an argument.

use super::number::{decimal, signed, three, two};
use base::moment::WallTime;

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Day {
    year: i64,
    /// From 1.
    month: u32,
    /// From 1.
    day: u32,
}

impl Day {
    /// The day that lies `days` after the first of January 1970. Years are counted from the first of March, so that the
    /// leap day is a year's last, in eras of 400 years, which all have the same length.
    fn since_epoch(days: i64) -> Self {
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year, month: month as u32, day: day as u32 }
    }
}

/// Appends "06/Feb/2009:12:14:14", `offset` seconds ahead of UTC.
fn day_and_time(out: &mut Vec<u8>, date: WallTime, offset: i32) {
    let seconds = date.seconds.saturating_add(i64::from(offset));
    let day = Day::since_epoch(seconds.div_euclid(86_400));
    let time = seconds.rem_euclid(86_400) as u32;
    out.extend_from_slice(&two(day.day));
    out.push(b'/');
    out.extend_from_slice(MONTHS[(day.month as usize - 1) % 12]);
    out.push(b'/');
    match u64::try_from(day.year) {
        Ok(year @ 1000..) => decimal(out, year),
        _ => signed(out, day.year),
    }
    for part in [time / 3_600, time / 60 % 60, time % 60] {
        out.push(b':');
        out.extend_from_slice(&two(part));
    }
}

/// Appends "06/Feb/2009:12:14:14.655".
pub fn with_millis(out: &mut Vec<u8>, date: WallTime, offset: i32) {
    day_and_time(out, date, offset);
    out.push(b'.');
    three(out, date.millis());
}

/// Appends "06/Feb/2009:12:14:14 +0100".
pub fn with_zone(out: &mut Vec<u8>, date: WallTime, offset: i32) {
    day_and_time(out, date, offset);
    out.extend_from_slice(if offset < 0 { b" -" } else { b" +" });
    let minutes = offset.unsigned_abs() / 60;
    out.extend_from_slice(&two(minutes / 60 % 100));
    out.extend_from_slice(&two(minutes % 60));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: i64, nanos: u32, offset: i32, shape: fn(&mut Vec<u8>, WallTime, i32)) -> String {
        let mut out = Vec::new();
        shape(&mut out, WallTime { seconds, nanos }, offset);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_of_the_calendar() {
        for (seconds, wanted) in [
            (0, "01/Jan/1970:00:00:00.000"),
            (-1, "31/Dec/1969:23:59:59.000"),
            (951_782_400, "29/Feb/2000:00:00:00.000"),
            (951_868_800, "01/Mar/2000:00:00:00.000"),
            (1_233_922_454, "06/Feb/2009:12:14:14.000"),
            (1_709_164_799, "28/Feb/2024:23:59:59.000"),
            (4_107_542_400, "01/Mar/2100:00:00:00.000"),
            (253_402_300_799, "31/Dec/9999:23:59:59.000"),
        ] {
            assert_eq!(text(seconds, 999_999, 0, with_millis), wanted);
        }
        assert_eq!(text(1_233_922_454, 655_000_000, 0, with_millis), "06/Feb/2009:12:14:14.655");
    }

    /// As HAProxy prints them with TZ set to Berlin, Kolkata and St. John's.
    #[test]
    fn offsets_move_the_date_and_are_printed() {
        for (offset, wanted) in [
            (0, "20/Nov/2026:13:55:33 +0000"),
            (3_600, "20/Nov/2026:14:55:33 +0100"),
            (19_800, "20/Nov/2026:19:25:33 +0530"),
            (-12_600, "20/Nov/2026:10:25:33 -0330"),
            (39_600, "21/Nov/2026:00:55:33 +1100"),
        ] {
            assert_eq!(text(1_795_182_933, 0, offset, with_zone), wanted);
        }
    }

    #[test]
    fn no_number_is_out_of_range() {
        for seconds in [i64::MIN, i64::MIN / 2, i64::MAX / 2, i64::MAX] {
            for offset in [i32::MIN, i32::MAX] {
                text(seconds, u32::MAX, offset, with_zone);
                text(seconds, u32::MAX, offset, with_millis);
            }
        }
    }
}
