//! The shared memory for counters (`shm-stats-file`), opened before privileges are dropped. Must never read it: the
//! engine does.

use engine::shared_counts::SharedCounts;
use policy::program::Program;

use crate::files::reason;
use crate::messages::{Messages, ReportedError};

/// Opens the configured memory, and creates it if missing.
///
/// # Errors
/// It cannot be used; reported through `messages`.
pub fn open(program: &Program, messages: &mut Messages) -> Result<Option<SharedCounts>, ReportedError> {
    let Some(shared) = &program.global.shared_counters else { return Ok(None) };
    let name = &*shared.name;
    let opened = rt::open_shared_memory(name)
        .map_err(|error| format!("cannot open shm stats file '{name}': {}", reason(&error)))
        .and_then(|file| SharedCounts::open(file, name, program));
    opened.map(Some).map_err(|why| {
        messages.alert(&format!("config: {why}"));
        ReportedError
    })
}
