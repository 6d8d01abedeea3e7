//! Messages of scripts: to the logs of proxies, and on standard error. Must never wait.

use std::sync::OnceLock;

use config::diagnostic::Severity;
use config::spec::{LogLevel, LuaSpec, LuaStderr};
use wire::date::{Date, days_since_epoch};

/// Writes a text to standard error unchanged.
pub type Print = fn(&str);

/// Settings of the messages.
#[derive(Debug, Clone, Copy)]
struct MessageSettings {
    print: Print,
    stderr: LuaStderr,
    no_loggers: bool,
}

static VOICE: OnceLock<MessageSettings> = OnceLock::new();

/// Names of the log levels, by number.
const NAMES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
/// Maximum length of a line in bytes.
const LONGEST: usize = 65_536;

/// Stores the settings. Only the first call has an effect.
pub(crate) fn open(spec: &LuaSpec, print: Print) {
    let _ = VOICE.set(MessageSettings { print, stderr: spec.stderr, no_loggers: spec.no_loggers });
}

/// Returns the log level of a number; `None`: unknown.
pub(crate) fn level(number: i64) -> Option<LogLevel> {
    usize::try_from(number).ok().and_then(|number| LEVELS.get(number)).copied()
}

/// Log levels by their numbers (RFC 5424, section 6.2.1).
const LEVELS: [LogLevel; 8] = [
    LogLevel::Emerg,
    LogLevel::Alert,
    LogLevel::Crit,
    LogLevel::Err,
    LogLevel::Warning,
    LogLevel::Notice,
    LogLevel::Info,
    LogLevel::Debug,
];

/// Logs a script's message to the log of a proxy or that of the process.
pub(crate) fn log(proxy: Option<usize>, number: i64, text: &str) {
    let Some(voice) = VOICE.get() else { return };
    let text: String = base::text::beginning(text, LONGEST)
        .chars()
        .map(|letter| if letter.is_control() { '.' } else { letter })
        .collect();
    let Some(level) = level(number) else { return };
    let worker = crate::here();
    let mut logged = false;
    if let Some(worker) = worker.as_ref().filter(|_| !voice.no_loggers) {
        logged = worker.logger.has_targets(proxy);
        worker.logger.message(proxy, level, &text);
    }
    let speaks = match voice.stderr {
        LuaStderr::On => true,
        LuaStderr::Off => false,
        LuaStderr::Auto => !logged,
    };
    if speaks {
        let name = usize::try_from(number).ok().and_then(|number| NAMES.get(number)).copied().unwrap_or("info");
        (voice.print)(&format!("[{name}] {} ({}) : {text}\n", date(), std::process::id()));
    }
}

/// Logs and counts a failure of a script, to the log of the proxy and standard error.
pub(crate) fn failed(proxy: Option<usize>, text: &str) {
    if let Some(process) = crate::process() {
        process.services.note_failure();
    }
    let Some(worker) = crate::here() else {
        if let Some(voice) = VOICE.get() {
            (voice.print)(&format!("{}({}) : {text}\n", Severity::Alert.tag(), std::process::id()));
        }
        return;
    };
    worker.logger.message(proxy, LogLevel::Alert, text);
    worker.process.host.say(Severity::Alert, text);
}

/// Prints a warning on standard error during the start.
pub(crate) fn warn(text: &str) {
    if let Some(voice) = VOICE.get() {
        (voice.print)(&format!("{}({}) : {text}\n", Severity::Warning.tag(), std::process::id()));
    }
}

/// Formats the date like HAProxy's oldest messages, day of the year and time: `327/184242`.
fn date() -> String {
    let since = i64::try_from(rt::clock::since_epoch().as_secs()).unwrap_or(0);
    let local = since + i64::from(rt::local_offset(since));
    let Date { year, hour, minute, second, .. } = Date::since_epoch(local);
    let day = local.div_euclid(86_400) - days_since_epoch(year, 1, 1);
    format!("{day:03}/{hour:02}{minute:02}{second:02}")
}
