//! Going to the background (`-D`, `daemon`). The command that started the process leaves once all is bound, the number
//! is written and the workers run. Must be called before any thread exists.

use crate::files::reason;
use crate::messages::{Messages, Refused};
use rt::process::{StarterWaits, daemonise};
use std::path::Path;

/// Writes the number of this process, in place of what the file held.
fn write_pid(path: &Path) -> std::io::Result<()> {
    std::fs::write(path, format!("{}\n", std::process::id()))
}

/// Moves the process to the background where that is `wanted` ([`enter`]), and writes its number.
///
/// # Errors
/// When it cannot go to the background.
pub fn settle(wanted: bool, pid_file: Option<&Path>, messages: &mut Messages) -> Result<Option<StarterWaits>, Refused> {
    if wanted {
        return enter(pid_file, messages).map(Some);
    }
    if let Some(path) = pid_file
        && let Err(error) = write_pid(path)
    {
        // Only a daemon cannot be found without its file.
        messages.warning(&format!("Cannot create pidfile {} : {}", path.display(), reason(&error)));
    }
    Ok(None)
}

/// Moves the process to the background. Returns in the child, with the line to the command that waits.
///
/// # Errors
/// When it cannot be done or the number cannot be written; both processes are to end with status 1.
fn enter(pid_file: Option<&Path>, messages: &mut Messages) -> Result<StarterWaits, Refused> {
    let starter = daemonise().map_err(|error| {
        messages.alert(&format!("Cannot start in the background : {}", reason(&error)));
        Refused
    })?;
    if let Some(path) = pid_file
        && let Err(error) = write_pid(path)
    {
        messages.alert(&format!("Cannot create pidfile {} : {}", path.display(), reason(&error)));
        return Err(Refused);
    }
    Ok(starter)
}

/// Lets go of the terminal, once everything that could go wrong has been said there.
///
/// # Errors
/// When it cannot be done.
pub fn leave_terminal(starter: &StarterWaits, messages: &mut Messages) -> Result<(), Refused> {
    starter.detach_standard_streams().map_err(|error| {
        messages.alert(&format!("Cannot leave the terminal : {}", reason(&error)));
        Refused
    })?;
    messages.silence();
    Ok(())
}
