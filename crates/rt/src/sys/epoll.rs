//! The epoll calls.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{calls, check};

/// Creates an epoll instance.
pub(crate) fn create() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Watches `fd`; `data` is returned with its events.
pub(crate) fn add(epoll: &OwnedFd, fd: RawFd, events: u32, data: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: data };
    // SAFETY: `event` is valid for the call, which copies it.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) }).map(drop)
}

/// Changes the events of `fd`; those that are pending are reported again.
pub(crate) fn modify(epoll: &OwnedFd, fd: RawFd, events: u32, data: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: data };
    // SAFETY: `event` is valid for the call, which copies it.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_MOD, fd, &mut event) }).map(drop)
}

/// Stops watching `fd`. Not an error if it is not watched.
pub(crate) fn delete(epoll: &OwnedFd, fd: RawFd) {
    // SAFETY: the kernel ignores the event pointer of a deletion.
    unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
}

/// Waits up to `timeout` milliseconds (-1: without limit) and returns the number of events written to the front of
/// `events`; 0 if a signal interrupted it.
pub(crate) fn wait(epoll: &OwnedFd, events: &mut [libc::epoll_event], timeout: i32) -> usize {
    let most = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the number describe `events`.
    let count = unsafe { calls::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), most, timeout) };
    usize::try_from(count).unwrap_or(0)
}
