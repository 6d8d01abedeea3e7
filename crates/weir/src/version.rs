//! Version information. Owns the answers to `-v`, `-vv`, `-vq`, `-vqs` and `-vqb`; prints nothing itself.
//!
//! There are two versions: Weir's own, and the level of its configuration language, which `version_atleast` and scripts
//! written for HAProxy compare.

use crate::detected;
use config::spec::CompressionAlgorithm;
use rt::SocketCalls;
use std::fmt::Write;

/// Weir's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The release date of this version.
pub const RELEASE_DATE: &str = "2026/11/20";

/// The C library of the build, in the terms of HAProxy's build system.
const TARGET: &str = if cfg!(target_env = "musl") { "linux-musl" } else { "linux-glibc" };

/// Forms of `-v…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionForm {
    /// `-v`.
    Short,
    /// `-vv`.
    Full,
    /// `-vq`: only the language level.
    Level,
    /// `-vqs`: the language level without its suffix.
    LevelShort,
    /// `-vqb`: the branch of the language level.
    Branch,
}

/// Returns the answer to `-v…`. If started as `haproxy`, the short form has HAProxy's format, so that scripts which
/// parse the first line find the level there, followed by Weir's name.
#[must_use]
pub fn text(form: VersionForm, invoked_as_haproxy: bool) -> String {
    match form {
        VersionForm::Short if invoked_as_haproxy => format!("{}{}", level_line(), status()),
        VersionForm::Short => format!("{}{}", own_line(), status()),
        VersionForm::Full => full(invoked_as_haproxy),
        VersionForm::Level => format!("{}\n", config::LANGUAGE_LEVEL),
        VersionForm::LevelShort | VersionForm::Branch => format!("{}\n", branch()),
    }
}

/// Returns the version for the runtime API: first the level, which programs compare, then Weir's own version.
#[must_use]
pub fn runtime() -> &'static str {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    TEXT.get_or_init(of_runtime)
}

/// Formats the version for the runtime API.
#[must_use]
pub fn of_runtime() -> String {
    format!("{}-weir-{VERSION}", config::LANGUAGE_LEVEL)
}

/// Returns the level without its suffix: `3.5` for `3.5-dev5`.
#[must_use]
pub fn branch() -> &'static str {
    config::LANGUAGE_LEVEL.split('-').next().unwrap_or(config::LANGUAGE_LEVEL)
}

fn own_line() -> String {
    format!("Weir version {VERSION} (configuration language of HAProxy {})\n", config::LANGUAGE_LEVEL)
}

/// The level is the third word: scripts extract it from this line.
fn level_line() -> String {
    format!("HAProxy version {} (the language that Weir {VERSION} speaks)\n", config::LANGUAGE_LEVEL)
}

fn status() -> String {
    format!(
        "Status: development version - its configuration language is HAProxy's, its code is not.\nRunning on: {}\n",
        system()
    )
}

fn full(invoked_as_haproxy: bool) -> String {
    let mut text = if invoked_as_haproxy { level_line() + &own_line() } else { own_line() + &level_line() };
    text.push_str(&status());
    let _ = write!(
        text,
        "Build options :\n  TARGET  = {TARGET}\n  CPU     = {}\n  PROFILE = {}\n\n",
        std::env::consts::ARCH,
        env!("WEIR_PROFILE"),
    );
    text.push_str("Feature list :");
    for (name, present) in config::FEATURES {
        let _ = write!(text, " {}{name}", if *present { '+' } else { '-' });
    }
    text.push_str("\nDetected feature list :");
    for (name, present) in detected::features() {
        let _ = write!(text, " {}{name}", if present { '+' } else { '-' });
    }
    let _ = write!(text, "{SETTINGS}{}{POLLERS}", libraries());
    let _ = writeln!(text, "Calls for sockets : {}", SocketCalls::detected().description());
    text.push_str(MULTIPLEXERS);
    let services = control::services::built_in();
    let names: Vec<&str> = services.names().iter().map(|row| &*row.name).collect();
    let _ = writeln!(text, "Available services : {}", names.join(" "));
    let _ = writeln!(text, "Available filters :{}", config::keyword::catalogue::available_filters());
    text
}

const SETTINGS: &str = "

Default settings :
  bufsize = 16384, maxrewrite = 1024, maxpollevents = 200

Built with multi-threading support: one thread per processor that the process may use.
";

const POLLERS: &str = "
Available polling systems :
      epoll : pref=300,  test result OK
Total: 1 (1 usable), will use epoll.

";

const MULTIPLEXERS: &str = "
Available multiplexer protocols :
(protocols marked as <default> cannot be specified using 'proto' keyword)
         h2 : mode=HTTP  side=FE|BE  mux=H2    flags=HTX|HOL_RISK|NO_UPG
       fcgi : mode=HTTP  side=BE     mux=FCGI  flags=HTX|HOL_RISK|NO_UPG
       spop : mode=SPOP  side=BE     mux=SPOP  flags=HOL_RISK|NO_UPG
       qmux : mode=HTTP  side=FE|BE  mux=QMUX  flags=HTX|NO_UPG
       quic : mode=HTTP  side=FE|BE  mux=QUIC  flags=HTX|NO_UPG|FRAMED
  <default> : mode=HTTP  side=FE|BE  mux=H1    flags=HTX
         h1 : mode=HTTP  side=FE|BE  mux=H1    flags=HTX|NO_UPG
  <default> : mode=TCP   side=FE|BE  mux=PASS  flags=
       none : mode=TCP   side=FE|BE  mux=PASS  flags=NO_UPG

";

/// Returns the included libraries, in HAProxy's lines that scripts parse.
fn libraries() -> String {
    let ssl = config::LanguageOptions::default().ssl.map_or_else(|| "none".to_owned(), |ssl| ssl.name);
    let (major, minor) = expression::pattern::pcre2_version();
    let algorithms: Vec<String> = CompressionAlgorithm::ALL
        .iter()
        .map(|algorithm| format!("{}(\"{}\")", algorithm.name(), algorithm.coding()))
        .collect();
    format!(
        "Built with SSL library version : {ssl}\n\
         Running on SSL library version : {ssl}\n\
         SSL library supports TLS extensions : yes\n\
         SSL library supports SNI : yes\n\
         SSL library FIPS mode : no\n\
         SSL library supports : TLSv1.2 TLSv1.3\n\
         Built with Lua version : Lua {}\n\
         Built with the Prometheus exporter as a service\n\
         Built with network namespace support.\n\
         Compression algorithms supported : {}\n\
         Built with transparent proxy support using: IP_TRANSPARENT IPV6_TRANSPARENT IP_FREEBIND\n\
         Built with PCRE2 version : {major}.{minor}\n\
         Encrypted password support via crypt(3): yes\n",
        lua::VERSION,
        algorithms.join(", "),
    )
}

/// Returns the running system in the format of `uname`, as far as known.
fn system() -> String {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
    };
    format!("{} {} {} {}", read("ostype"), read("osrelease"), read("version"), std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weir_comes_first_under_its_own_name() {
        for form in [VersionForm::Short, VersionForm::Full] {
            assert!(text(form, false).starts_with(&format!("Weir version {VERSION} ")));
            let linked = text(form, true);
            assert!(linked.starts_with(&format!("HAProxy version {} ", config::LANGUAGE_LEVEL)));
            assert!(linked.lines().next().is_some_and(|line| line.contains("Weir")));
        }
    }

    #[test]
    fn exactly_one_line_of_the_long_form_names_the_level() {
        for linked in [false, true] {
            let long = text(VersionForm::Full, linked);
            let lines: Vec<_> = long.lines().filter(|line| line.contains("HAProxy version")).collect();
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert_eq!(lines[0].split(' ').nth(2), Some(config::LANGUAGE_LEVEL));
            assert!(long.lines().any(|line| line.contains("TARGET") && line.contains("= linux-")));
        }
    }

    #[test]
    fn the_quiet_forms_print_one_word() {
        assert_eq!(text(VersionForm::Level, false), format!("{}\n", config::LANGUAGE_LEVEL));
        for form in [VersionForm::LevelShort, VersionForm::Branch] {
            let short = text(form, false);
            let numbers: Vec<_> = short.trim_end().split('.').collect();
            assert!(numbers.len() >= 2 && numbers.iter().all(|number| number.parse::<u32>().is_ok()), "{short}");
        }
    }
}
