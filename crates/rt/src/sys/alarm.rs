//! Timer descriptors: the kernel's precise timers.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use base::Moment;

use super::check;

/// Creates a timer on the monotonic clock that is not set.
pub(crate) fn create() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets a timer to an instant of the monotonic clock; one that has passed expires immediately. Workers watch it
/// edge-triggered, so the count of expirations is not read.
pub(crate) fn set(timer: &OwnedFd, at: Moment) -> io::Result<()> {
    // All zero would disarm it.
    let nanos = at.as_nanos().max(1);
    let (seconds, rest) = ((nanos / 1_000_000_000) as libc::time_t, (nanos % 1_000_000_000) as libc::c_long);
    let value = libc::timespec { tv_sec: seconds, tv_nsec: rest };
    let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    // SAFETY: the first pointer is to a valid value that is only read; the second may be null.
    check(unsafe { libc::timerfd_settime(timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &once, ptr::null_mut()) })
        .map(drop)
}
