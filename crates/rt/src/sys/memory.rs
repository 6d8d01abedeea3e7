//! Memory-mapped files, and the memory reserve.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

use super::check;

/// Allocates disk space for a file, so that writing to it cannot fail because the disk is full.
pub(crate) fn reserve(fd: RawFd, length: usize) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: no pointers are passed.
    match unsafe { libc::posix_fallocate(fd, 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Maps the first `length` bytes of a file, shared and writable.
pub(crate) fn map(fd: RawFd, length: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses the address, so that nothing that exists is replaced.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::Other.into())
}

/// Unmaps memory returned by [`map`] or [`set_aside`].
///
/// # Safety
/// It was returned by one of them, with that length, and is not used any longer.
pub(crate) unsafe fn unmap(start: NonNull<u8>, length: usize) -> io::Result<()> {
    // SAFETY: the caller's promise.
    check(unsafe { libc::munmap(start.as_ptr().cast(), length) }).map(drop)
}

/// Allocates memory without touching it: it counts towards the limits of the process, and occupies no physical memory.
/// `None`: it is not available.
pub(crate) fn set_aside(length: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses the address, so that nothing that exists is replaced.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Returns the soft limit of a resource in bytes; `None`: unlimited.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the result.
    check(unsafe { libc::getrlimit(resource, &mut limit) }).ok()?;
    usize::try_from(limit.rlim_cur).ok().filter(|_| limit.rlim_cur != libc::RLIM_INFINITY)
}

/// Returns the page size in bytes.
pub(crate) fn page() -> usize {
    // SAFETY: no pointers are passed.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
