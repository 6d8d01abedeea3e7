//! Operations on files relative to an open folder.
//!
//! Nothing here may follow a link out of the folder.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;

fn name(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn open_with(folder: BorrowedFd<'_>, file: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
    let file = name(file)?;
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the name ends with a zero and outlives the call; the descriptor is open.
    let opened = unsafe { libc::openat(folder.as_raw_fd(), file.as_ptr(), flags, 0o600 as libc::c_uint) };
    let opened = check(opened)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

/// Opens a file for reading.
pub(crate) fn open(folder: BorrowedFd<'_>, file: &str) -> io::Result<OwnedFd> {
    open_with(folder, file, libc::O_RDONLY)
}

/// Creates a file with mode 0600 and opens it for writing; fails if it exists.
pub(crate) fn create(folder: BorrowedFd<'_>, file: &str) -> io::Result<OwnedFd> {
    open_with(folder, file, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)
}

pub(crate) fn remove(folder: BorrowedFd<'_>, file: &str) -> io::Result<()> {
    let file = name(file)?;
    // SAFETY: the name ends with a zero and outlives the call; the descriptor is open.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), file.as_ptr(), 0) }).map(drop)
}

/// Renames a file, replacing an existing one.
pub(crate) fn rename(folder: BorrowedFd<'_>, from: &str, to: &str) -> io::Result<()> {
    let (from, to, folder) = (name(from)?, name(to)?, folder.as_raw_fd());
    // SAFETY: the names end with a zero and outlive the call; the descriptor is open.
    check(unsafe { libc::renameat(folder, from.as_ptr(), folder, to.as_ptr()) }).map(drop)
}

/// Waits until the folder's entries are on the disk.
pub(crate) fn sync(folder: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::fsync(folder.as_raw_fd()) }).map(drop)
}
