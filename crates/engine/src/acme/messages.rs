//! Messages about certificates in the process log.

use config::spec::LogLevel;

use crate::worker::Worker;

/// Logs a message in the process log, in HAProxy's form.
pub(super) fn log_message(worker: &Worker, level: LogLevel, name: &str, text: &str) {
    worker.logger.message(None, level, &format!("acme: {name}: {text}"));
}
