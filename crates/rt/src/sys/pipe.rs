//! Pipes and splicing.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{attempt, check};

/// Creates a non-blocking pipe: read end, write end, and capacity in bytes.
pub(crate) fn create(wanted_capacity: usize) -> io::Result<(OwnedFd, OwnedFd, usize)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is valid for the two numbers that the kernel writes.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) })?;
    // SAFETY: both descriptors are new and have no other owner.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    let wanted = libc::c_int::try_from(wanted_capacity).unwrap_or(libc::c_int::MAX);
    // SAFETY: no pointers are passed. If the call is refused (a user's limit), the default size remains.
    unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
    // SAFETY: no pointers are passed.
    let capacity = check(unsafe { libc::fcntl(write.as_raw_fd(), libc::F_GETPIPE_SZ) })?;
    Ok((read, write, usize::try_from(capacity).unwrap_or(0)))
}

/// Moves up to `count` bytes between a pipe and a socket.
pub(crate) fn splice(from: RawFd, to: RawFd, count: usize, more: bool) -> io::Result<Option<usize>> {
    let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK | if more { libc::SPLICE_F_MORE } else { 0 };
    let none = std::ptr::null_mut();
    // SAFETY: null pointers mean that neither side has an offset.
    attempt(|| unsafe { libc::splice(from, none, to, none, count, flags) })
}
