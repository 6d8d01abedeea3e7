//! Preloaded libraries that replace the functions for sockets: which calls `tune.driver` selects, and what is reported about
//! them. Must never call one of the functions.

use crate::listeners::Sockets;
use crate::messages::Messages;
use config::diagnostic::Severity;
use config::spec::DriverSpec;
use rt::SocketCalls;
use std::path::Path;

/// Returns the calls for sockets.
pub fn socket_calls(driver: DriverSpec) -> SocketCalls {
    match driver {
        DriverSpec::Auto => SocketCalls::detected(),
        DriverSpec::Epoll => SocketCalls::Direct,
        DriverSpec::Posix => SocketCalls::Named,
    }
}

/// Reports the calls, if they are not those that a program without preloaded libraries makes.
pub fn report_calls(driver: DriverSpec, messages: &mut Messages) {
    let program = Linkage {
        is_static: SocketCalls::IS_STATIC,
        library: SocketCalls::library(),
        preloads: std::env::var_os("LD_PRELOAD").is_some_and(|libraries| !libraries.is_empty()),
    };
    match program.remark(driver) {
        Some((Severity::Warning, text)) => messages.warning(&text),
        Some((_, text)) => messages.notice(&text),
        None => {}
    }
}

/// Reports addresses that other processes cannot bind at the same time.
pub fn report_addresses(sockets: &Sockets, messages: &mut Messages) {
    let mut alone =
        sockets.proxies.iter().filter(|one| !one.socket.local_address().is_unix() && !one.socket.shares_port());
    if let Some(one) = alone.next() {
        messages.warning(&format!(
            "The preloaded library refuses SO_REUSEPORT for {} and {} other addresses: a new process can only bind them once \
             this one has released them.",
            one.socket.local_address(),
            alone.count()
        ));
    }
}

/// How the program was linked and loaded.
struct Linkage<'a> {
    is_static: bool,
    /// The preloaded library that replaces functions for sockets.
    library: Option<&'a Path>,
    /// Whether the environment requests that libraries are preloaded.
    preloads: bool,
}

impl Linkage<'_> {
    fn remark(&self, driver: DriverSpec) -> Option<(Severity, String)> {
        const CALLED: &str = "Sockets are called through the C library ('tune.driver')";
        const STATIC: &str =
            "no library can be preloaded, since this program is linked statically. Sockets are those of the kernel";
        Some(match (driver, self.library.map(Path::display)) {
            (DriverSpec::Posix, _) if self.is_static => (Severity::Warning, format!("'tune.driver posix' : {STATIC}.")),
            (DriverSpec::Auto, _) if self.is_static && self.preloads => {
                (Severity::Warning, format!("LD_PRELOAD has no effect : {STATIC}."))
            }
            (DriverSpec::Epoll, Some(library)) => {
                let text = format!(
                    "'tune.driver epoll' : {library} replaces the C library's functions for sockets, but the kernel is called \
                     directly. Sockets that the library creates may not work."
                );
                (Severity::Warning, text)
            }
            (_, Some(library)) => (Severity::Notice, format!("{CALLED}, of which {library} replaces functions.")),
            (DriverSpec::Posix, None) => {
                (Severity::Notice, format!("{CALLED}. No preloaded library replaces its functions."))
            }
            (_, None) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(is_static: bool, library: Option<&str>, preloads: bool, driver: DriverSpec) -> String {
        let program = Linkage { is_static, library: library.map(Path::new), preloads };
        program.remark(driver).map_or(String::new(), |(severity, text)| format!("{severity:?} {text}"))
    }

    #[test]
    fn a_static_program_names_the_reason() {
        let text = remark(true, None, false, DriverSpec::Posix);
        assert!(text.starts_with("Warning 'tune.driver posix' : no library can be preloaded, since"), "{text}");
        let text = remark(true, None, true, DriverSpec::Auto);
        assert!(text.starts_with("Warning LD_PRELOAD has no effect : no library can be preloaded, since"), "{text}");
        for (preloads, driver) in [(false, DriverSpec::Auto), (true, DriverSpec::Epoll)] {
            assert_eq!(remark(true, None, preloads, driver), "");
        }
    }

    #[test]
    fn the_library_is_named() {
        for driver in [DriverSpec::Auto, DriverSpec::Posix] {
            let text = remark(false, Some("/lib/x.so"), true, driver);
            assert!(text.starts_with("Notice ") && text.contains(", of which /lib/x.so replaces"), "{text}");
        }
        let text = remark(false, Some("/lib/x.so"), true, DriverSpec::Epoll);
        assert!(text.starts_with("Warning 'tune.driver epoll' : /lib/x.so replaces"), "{text}");
    }

    /// Most preloaded libraries do not concern sockets.
    #[test]
    fn other_libraries_are_not_mentioned() {
        assert_eq!(remark(false, None, true, DriverSpec::Auto), "");
        assert_eq!(remark(false, None, true, DriverSpec::Epoll), "");
        assert!(remark(false, None, true, DriverSpec::Posix).ends_with("No preloaded library replaces its functions."));
    }
}
