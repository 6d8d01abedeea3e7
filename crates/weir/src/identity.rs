//! The name of the program, HAProxy's if it was started by that name, so that tools find it; and the start time. Must
//! never depend on the configuration.

use base::Moment;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

/// The name of the link for HAProxy compatibility.
const HAPROXY: &str = "haproxy";

/// Whether the program was started as `haproxy`, in any folder.
#[must_use]
pub fn is_haproxy() -> bool {
    static CALLED: OnceLock<bool> = OnceLock::new();
    *CALLED.get_or_init(|| is_called_haproxy(&std::env::args_os().next().unwrap_or_default()))
}

fn is_called_haproxy(name: &OsStr) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == HAPROXY)
}

/// Returns the product name in answers that programs read.
#[must_use]
pub fn product() -> &'static str {
    if is_haproxy() { "HAProxy" } else { "Weir" }
}

/// Returns the name as in HAProxy's first message.
#[must_use]
pub fn command() -> &'static str {
    if is_haproxy() { HAPROXY } else { "weir" }
}

/// Sets the process name to that of the link, for tools such as `pgrep` and `killall`: by default the kernel uses the
/// file's name, and a worker is started from the file itself.
pub fn name_process() {
    if is_haproxy() {
        rt::process::set_name(HAPROXY);
    }
}

/// Returns the start time of the process: the time of the first call.
pub fn began() -> Moment {
    static BEGAN: OnceLock<Moment> = OnceLock::new();
    *BEGAN.get_or_init(rt::clock::moment)
}

#[cfg(test)]
mod tests {
    use super::is_called_haproxy;

    #[test]
    fn the_last_part_of_the_path_is_the_name() {
        for (name, expected) in [
            ("haproxy", true),
            ("/usr/sbin/haproxy", true),
            ("./haproxy", true),
            ("weir", false),
            ("haproxy2", false),
            ("", false),
        ] {
            assert_eq!(is_called_haproxy(name.as_ref()), expected, "{name}");
        }
    }
}
