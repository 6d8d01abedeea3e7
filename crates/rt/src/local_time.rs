//! The UTC offset of local time and the name of its zone, from the system's time zone rules (`TZ`, `/etc/localtime`).
//!
//! It must never read a clock, nor compute a date: the caller that prints one does.

use base::moment::ZoneName;
use std::ffi::CStr;
use std::mem;

/// Returns the offset of local time from UTC in seconds at a time, given in seconds since the UNIX epoch; 0 if the
/// rules do not define it.
///
/// The C library reads the rules once, on the first call; a process that will change its root directory calls this
/// before that. It takes a lock and costs some 100 ns: results may be cached for the same quarter of an hour, since
/// every zone changes its offset on such a boundary.
pub fn local_offset(seconds: i64) -> i32 {
    broken_down(seconds).map_or(0, |local| local.tm_gmtoff as i32)
}

/// Returns the name of the local time zone at a time: "EST", "CEST"; "UTC" if the rules do not define it. Costs the
/// same as [`local_offset`].
pub fn zone_name(seconds: i64) -> ZoneName {
    let Some(name) = broken_down(seconds).map(|local| local.tm_zone).filter(|name| !name.is_null()) else {
        return ZoneName::UTC;
    };
    // SAFETY: the C library has stored a pointer there to a name that it keeps for the life of the process,
    // NUL-terminated; the rules are not read again while threads run.
    ZoneName::new(unsafe { CStr::from_ptr(name) }.to_bytes())
}

fn broken_down(seconds: i64) -> Option<libc::tm> {
    let seconds = seconds as libc::time_t;
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut broken_down: libc::tm = unsafe { mem::zeroed() };
    // SAFETY: both pointers are valid for the call, which writes the second one's target only. The environment that it
    // reads is not changed while threads run.
    let told = unsafe { libc::localtime_r(&seconds, &mut broken_down) };
    (!told.is_null()).then_some(broken_down)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The zone is read once per process, so each zone needs one of its own: the test runs itself as a child process.
    #[test]
    fn offsets_follow_the_zone_and_its_summer_time() {
        const ASKED: &str = "WEIR_TEST_LOCAL_OFFSETS";
        const WINTER: i64 = 1_795_182_933;
        const SUMMER: i64 = 1_780_000_000;
        if let Ok(wanted) = std::env::var(ASKED) {
            let name = |seconds| String::from_utf8_lossy(zone_name(seconds).as_bytes()).into_owned();
            let (winter, summer) = (name(WINTER), name(SUMMER));
            assert_eq!(format!("{} {winter} {} {summer}", local_offset(WINTER), local_offset(SUMMER)), wanted);
            return;
        }
        for (zone, wanted) in [
            ("UTC0", "0 UTC 0 UTC"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "3600 CET 7200 CEST"),
            ("NST3:30NDT,M3.2.0,M11.1.0", "-12600 NST -9000 NDT"),
            ("IST-5:30", "19800 IST 19800 IST"),
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
        assert_eq!((local_offset(i64::MAX), zone_name(i64::MAX)), (0, ZoneName::UTC));
    }
}
