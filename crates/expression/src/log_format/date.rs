//! The two formats of dates in log lines. Must never read a clock or the local time zone: the offset is an argument.

use super::number::{signed, three, two};
use base::moment::WallTime;
use wire::date::Date;

/// Appends "06/Feb/2009:12:14:14", `offset` seconds ahead of UTC.
fn day_and_time(out: &mut Vec<u8>, date: WallTime, offset: i32) {
    let date = Date::since_epoch(date.seconds.saturating_add(i64::from(offset)));
    out.extend_from_slice(&two(date.day));
    out.push(b'/');
    out.extend_from_slice(date.month_name());
    out.push(b'/');
    signed(out, date.year);
    for part in [date.hour, date.minute, date.second] {
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
    fn dates_are_printed_whole() {
        assert_eq!(text(1_233_922_454, 655_999_999, 0, with_millis), "06/Feb/2009:12:14:14.655");
        assert_eq!(text(-1, 0, 0, with_millis), "31/Dec/1969:23:59:59.000");
    }

    /// As printed by HAProxy with TZ set to Berlin, Kolkata and St. John's.
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
