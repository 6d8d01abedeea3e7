//! Messages of a serving process on standard error: state changes of servers and frontends. Must never block a worker
//! on the reader of standard error.

use crate::messages::line;
use config::diagnostic::Severity;
use engine::host::Host;
use rt::Output;
use std::sync::OnceLock;

/// Standard error, as opened when the process began to serve.
static STANDARD_ERROR: OnceLock<Output> = OnceLock::new();

/// File descriptor of standard error.
const NUMBER: i32 = 2;

/// Installs `say` in `host`. Without a standard error, messages are dropped.
pub fn install(host: &Host) {
    if let Ok(output) = Output::open(NUMBER) {
        let _ = STANDARD_ERROR.set(output);
        let _ = host.say.set(write_message);
    }
}

/// Writes a message without waiting. If standard error is blocked, the message is dropped: the logs contain the same.
fn write_message(severity: Severity, text: &str) {
    if let Some(output) = STANDARD_ERROR.get() {
        let _ = output.write(line(severity, text).as_bytes());
    }
}
