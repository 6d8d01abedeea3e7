//! Event descriptors, by which one thread wakes another.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// Creates a non-blocking event descriptor.
pub(crate) fn create() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Signals an event. Workers watch it edge-triggered, so the count is never read; it can only overflow after 2^64 - 2
/// signals.
pub(crate) fn signal(event: &OwnedFd) {
    signal_raw(event.as_raw_fd());
}

/// Like [`signal`], for a signal handler: one system call, nothing else.
pub(crate) fn signal_raw(event: RawFd) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: the buffer is valid for its length. A failure (a descriptor that was closed) has no reader left.
    unsafe { libc::write(event, one.as_ptr().cast(), one.len()) };
}
