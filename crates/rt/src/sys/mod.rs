//! The system calls of the runtime, each wrapped in a safe function.
//!
//! Nothing here may keep state or decide anything.

pub(crate) mod address;
pub(crate) mod alarm;
pub(crate) mod batch;
mod calls;
pub(crate) mod clock;
pub(crate) mod control_data;
pub(crate) mod descriptor;
pub(crate) mod epoll;
pub(crate) mod event;
pub(crate) mod file_lock;
pub(crate) mod folder;
pub(crate) mod landlock;
pub(crate) mod memory;
pub(crate) mod passing;
pub(crate) mod pipe;
#[cfg(not(target_feature = "crt-static"))]
pub(crate) mod preload;
pub(crate) mod process;
pub(crate) mod receive_messages;
pub(crate) mod rejections;
pub(crate) mod rights;
pub(crate) mod seccomp;
pub(crate) mod send_messages;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod steer;
pub(crate) mod thread;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Converts the result of a system call that returns -1 and sets `errno` on failure.
#[inline]
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns the number of bytes moved, or `None` if the call would have waited. Repeats it if a signal interrupted it.
#[inline]
pub(crate) fn attempt(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<Option<usize>> {
    loop {
        let result = call();
        if result >= 0 {
            return Ok(Some(result as usize));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN) => return Ok(None),
            _ => return Err(error),
        }
    }
}

/// Makes calls on a descriptor non-blocking.
pub(crate) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Sets whether a descriptor is closed when the process executes another program.
pub(crate) fn set_close_on_exec(fd: &OwnedFd, on: bool) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, if on { libc::FD_CLOEXEC } else { 0 }) }).map(drop)
}
