//! How far local time is ahead of UTC, from the system's time zone rules (`TZ`, `/etc/localtime`).
//!
//! It must never read a clock, nor tell more than an offset: dates are worked out by whoever prints them.

use std::mem;

/// Seconds that local time is ahead of UTC at a point of the calendar, counted in seconds since the UNIX epoch; 0 where
/// the rules cannot tell.
///
/// The C library reads the rules once, on the first call; a process that will change its root directory calls this
/// before that. It takes a lock and costs some 100 ns: results may be kept for as long as the point lies in the same
/// quarter of an hour, since every zone changes its offset on such a boundary.
pub fn local_offset(seconds: i64) -> i32 {
    let seconds = seconds as libc::time_t;
    // SAFETY: all bytes zero is a valid value of this plain structure; its zone name is a pointer that nobody follows.
    let mut broken_down: libc::tm = unsafe { mem::zeroed() };
    // SAFETY: both pointers are valid for the call, which writes the second one's target only. The environment that it
    // reads is not changed while threads run.
    let told = unsafe { libc::localtime_r(&seconds, &mut broken_down) };
    if told.is_null() { 0 } else { broken_down.tm_gmtoff as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The zone is read once a process, so each zone needs one of its own: the test starts itself again.
    #[test]
    fn offsets_follow_the_zone_and_its_summer_time() {
        const ASKED: &str = "WEIR_TEST_LOCAL_OFFSETS";
        const WINTER: i64 = 1_795_182_933;
        const SUMMER: i64 = 1_780_000_000;
        if let Ok(wanted) = std::env::var(ASKED) {
            assert_eq!(format!("{} {}", local_offset(WINTER), local_offset(SUMMER)), wanted);
            return;
        }
        for (zone, wanted) in [
            ("UTC0", "0 0"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "3600 7200"),
            ("NST3:30NDT,M3.2.0,M11.1.0", "-12600 -9000"),
            ("IST-5:30", "19800 19800"),
        ] {
            let this = std::env::current_exe().unwrap();
            let test = "local_time::tests::offsets_follow_the_zone_and_its_summer_time";
            let run = Command::new(this).args(["--exact", test]).env("TZ", zone).env(ASKED, wanted).output().unwrap();
            let told = String::from_utf8_lossy(&run.stdout).into_owned();
            assert!(run.status.success() && told.contains("1 passed"), "{zone}: {told}");
        }
    }

    #[test]
    fn a_date_that_no_calendar_holds_has_no_offset() {
        assert_eq!(local_offset(i64::MAX), 0);
    }
}
