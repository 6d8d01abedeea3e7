//! Locks of byte ranges of a file that belong to the open file (fcntl(2), "Open file description locks"): they end with
//! its last descriptor, however the process ends.

use std::io;
use std::os::fd::RawFd;

use super::check;

fn lock_of(kind: libc::c_int, start: u64, length: u64) -> io::Result<libc::flock> {
    let offset = |number: u64| libc::off_t::try_from(number).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    (lock.l_start, lock.l_len) = (offset(start)?, offset(length)?);
    Ok(lock)
}

/// Locks or unlocks bytes of a file. False: another open file has locked them.
pub(crate) fn set(fd: RawFd, start: u64, length: u64, on: bool) -> io::Result<bool> {
    let mut lock = lock_of(if on { libc::F_WRLCK } else { libc::F_UNLCK }, start, length)?;
    // SAFETY: the pointer is valid for the call.
    match check(unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &raw mut lock) }) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether another open file has locked one of the bytes.
pub(crate) fn is_set(fd: RawFd, start: u64, length: u64) -> io::Result<bool> {
    let mut lock = lock_of(libc::F_WRLCK, start, length)?;
    // SAFETY: the pointer is valid for the call.
    check(unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &raw mut lock) })?;
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}
