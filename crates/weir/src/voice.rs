//! What a serving process says on standard error by and by: what becomes of its servers and frontends. Must never make a
//! worker wait for the reader of that.

use crate::messages::line;
use config::diagnostic::Severity;
use engine::host::Host;
use rt::Output;
use std::sync::OnceLock;

/// Standard error, as it was when the process began to serve.
static STANDARD_ERROR: OnceLock<Output> = OnceLock::new();

/// The number of standard error.
const NUMBER: i32 = 2;

/// Has `host` say what it is asked to. Without a standard error it stays silent.
pub fn raise(host: &Host) {
    if let Ok(output) = Output::open(NUMBER) {
        let _ = STANDARD_ERROR.set(output);
        let _ = host.say.set(say);
    }
}

/// Says it now. A standard error that takes nothing misses it: the logs have the same.
fn say(severity: Severity, text: &str) {
    if let Some(output) = STANDARD_ERROR.get() {
        let _ = output.write(line(severity, text).as_bytes());
    }
}
