//! A child process that outlives this process briefly: it kills the programs that this process started and has not
//! reaped, however this process ends.
//!
//! It must never hold anything of this process: no socket, no file, no terminal.

use std::io;
use std::os::fd::OwnedFd;

use crate::sys;
use crate::sys::signal::Signal;

/// Maximum number of programs that it tracks. Not more than this run at a time, including those being killed.
const MOST: usize = 1024;
/// Bytes of a message: the number of a process group that was started, negative when it has ended.
const MESSAGE: usize = size_of::<i32>();

/// The pipe to the guardian. It acts when the last write end is closed, which the kernel does even for a process that
/// was killed.
#[derive(Debug)]
pub(crate) struct Guardian {
    line: OwnedFd,
}

impl Guardian {
    /// Starts the guardian.
    ///
    /// # Errors
    /// From the kernel: the process or the pipe cannot be created.
    pub(crate) fn start() -> io::Result<Self> {
        let (read, line) = sys::process::pipe()?;
        sys::set_nonblocking(&line)?;
        // SAFETY: the child calls nothing but what is safe in a signal handler, allocates nothing and never returns from
        // `watch`, so that locks which other threads held do not matter to it.
        if unsafe { sys::process::fork()? } == 0 {
            watch(&read);
        }
        Ok(Self { line })
    }

    /// Adds a process group to the tracked ones.
    pub(crate) fn note(&self, head: u32) {
        self.tell(i32::try_from(head).unwrap_or(0));
    }

    /// Removes a process group from the tracked ones.
    pub(crate) fn forget(&self, head: u32) {
        self.tell(i32::try_from(head).map_or(0, |head| -head));
    }

    /// Errors are ignored: the process continues without a guardian.
    fn tell(&self, message: i32) {
        let _ = sys::process::write_some(&self.line, &message.to_ne_bytes());
    }
}

/// The main function of the guardian process.
fn watch(line: &OwnedFd) -> ! {
    // Signals from a terminal or a service manager for the guarded process must not end it.
    sys::signal::leave_to_other_threads();
    let _ = sys::process::new_session();
    sys::process::set_name(c"weir-guardian");
    if sys::process::duplicate_onto(line, 0).is_err() || sys::process::close_from(1).is_err() {
        sys::process::exit_now(1);
    }
    let mut heads = [0_i32; MOST];
    let mut message = [0; MESSAGE];
    while let Ok(MESSAGE) = sys::process::read_some(0, &mut message) {
        let head = i32::from_ne_bytes(message);
        let (from, to) = if head > 0 { (0, head) } else { (-head, 0) };
        if let Some(place) = heads.iter_mut().find(|place| **place == from) {
            *place = to;
        }
    }
    for head in heads.into_iter().filter_map(|head| u32::try_from(head).ok()) {
        let _ = sys::process::kill_group(head, Signal::Kill.number());
    }
    sys::process::exit_now(0)
}
