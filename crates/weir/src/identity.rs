//! The name that the program goes by: HAProxy's where it was called by that name, so that what looks for HAProxy finds it,
//! its own otherwise; and when it was started. Must never depend on the configuration.

use base::Moment;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

/// The name of the link that stands for HAProxy.
const HAPROXY: &str = "haproxy";

/// Whether the program was called `haproxy`, by whatever path.
#[must_use]
pub fn is_haproxy() -> bool {
    static CALLED: OnceLock<bool> = OnceLock::new();
    *CALLED.get_or_init(|| is_called_haproxy(&std::env::args_os().next().unwrap_or_default()))
}

fn is_called_haproxy(name: &OsStr) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == HAPROXY)
}

/// The product's name in answers that programs read.
#[must_use]
pub fn product() -> &'static str {
    if is_haproxy() { "HAProxy" } else { "Weir" }
}

/// The name as HAProxy's first message writes it.
#[must_use]
pub fn command() -> &'static str {
    if is_haproxy() { HAPROXY } else { "weir" }
}

/// Gives the process the name of the link, which tools such as `pgrep` and `killall` look for: the kernel names a process
/// after the file, and a worker is started from the file itself.
pub fn name_process() {
    if is_haproxy() {
        rt::process::set_name(HAPROXY);
    }
}

/// When the process began, as far as it knows: the first call sets it.
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
