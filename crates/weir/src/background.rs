//! Running in the background (`-D`, `daemon`). The starting command exits once all sockets are bound, the pid file is
//! written and the workers run. Must be called before any thread exists.

use crate::files::reason;
use crate::messages::{Messages, ReportedError};
use rt::process::{StarterWaits, daemonise};
use std::path::Path;

/// Writes the process id to a file, replacing its contents.
fn write_pid(path: &Path) -> std::io::Result<()> {
    std::fs::write(path, format!("{}\n", std::process::id()))
}

/// Moves the process to the background if `wanted` ([`enter`]), and writes its pid file.
///
/// # Errors
/// The process cannot be moved to the background.
pub fn settle(
    wanted: bool,
    pid_file: Option<&Path>,
    messages: &mut Messages,
) -> Result<Option<StarterWaits>, ReportedError> {
    if wanted {
        return enter(pid_file, messages).map(Some);
    }
    if let Some(path) = pid_file
        && let Err(error) = write_pid(path)
    {
        // Only a daemon requires its pid file.
        messages.warning(&format!("Cannot create pidfile {} : {}", path.display(), reason(&error)));
    }
    Ok(None)
}

/// Moves the process to the background. Returns in the child, with the channel to the waiting command.
///
/// # Errors
/// The process cannot be moved or the pid file cannot be written; both processes must exit with status 1.
fn enter(pid_file: Option<&Path>, messages: &mut Messages) -> Result<StarterWaits, ReportedError> {
    let starter = daemonise().map_err(|error| {
        messages.alert(&format!("Cannot start in the background : {}", reason(&error)));
        ReportedError
    })?;
    if let Some(path) = pid_file
        && let Err(error) = write_pid(path)
    {
        messages.alert(&format!("Cannot create pidfile {} : {}", path.display(), reason(&error)));
        return Err(ReportedError);
    }
    Ok(starter)
}

/// Detaches from the terminal, once every possible error was reported there.
///
/// # Errors
/// The standard streams cannot be detached.
pub fn leave_terminal(starter: &StarterWaits, messages: &mut Messages) -> Result<(), ReportedError> {
    starter.detach_standard_streams().map_err(|error| {
        messages.alert(&format!("Cannot leave the terminal : {}", reason(&error)));
        ReportedError
    })?;
    messages.silence();
    Ok(())
}
