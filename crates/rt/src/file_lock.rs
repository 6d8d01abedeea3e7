//! Locks of byte ranges of a file between processes. They belong to the open file description and end with its last
//! descriptor, however the process ends. Must never wait for a lock.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::sys::file_lock;

/// Locks bytes of a file, possibly after its end. False: another process has locked some of them.
///
/// # Errors
/// From the system: the file is not open for writing, or its file system does not support locks.
pub fn lock_bytes(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    file_lock::set(file.as_raw_fd(), bytes.start, bytes.end.saturating_sub(bytes.start), true)
}

/// Unlocks bytes locked by [`lock_bytes`].
///
/// # Errors
/// From the system.
pub fn unlock_bytes(file: &File, bytes: Range<u64>) -> io::Result<()> {
    file_lock::set(file.as_raw_fd(), bytes.start, bytes.end.saturating_sub(bytes.start), false).map(drop)
}

/// Whether another process has locked some of these bytes.
///
/// # Errors
/// From the system.
pub fn has_lock(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    file_lock::is_set(file.as_raw_fd(), bytes.start, bytes.end.saturating_sub(bytes.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_lock_is_another_files_until_that_is_closed() {
        let path = std::env::temp_dir().join(format!("weir-lock-{}", std::process::id()));
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path).expect("a file");
        let (one, two) = (open(), open());
        fs::remove_file(&path).expect("there");
        assert!(lock_bytes(&one, 0..10).expect("locked"));
        assert!(lock_bytes(&one, 0..10).expect("its own"));
        assert!(!lock_bytes(&two, 5..6).expect("asked") && has_lock(&two, 9..12).expect("asked"));
        assert!(lock_bytes(&two, 10..11).expect("another part") && !has_lock(&two, 10..11).expect("its own"));
        unlock_bytes(&one, 0..5).expect("unlocked");
        assert!(!has_lock(&two, 0..5).expect("asked") && has_lock(&two, 0..6).expect("asked"));
        drop(one);
        // A program that another test starts has the file open as well, until it calls `exec`.
        while !lock_bytes(&two, 0..10).expect("the other one is closed") {
            std::thread::yield_now();
        }
    }
}
