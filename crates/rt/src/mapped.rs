//! A memory-mapped file: the kernel writes the memory to the file, at the latest when the process has ended, however it
//! ends. Must never read its content: others may have written to it.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::sys::memory;

/// A memory-mapped file of fixed size.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value alone, whichever thread has it, and is reached through `&mut` only.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Creates a file of that size in bytes, with mode 0600. An existing file that is not empty is renamed first, if
    /// possible, with the suffix `.bak`.
    ///
    /// # Errors
    /// From the system: the file cannot be created, or the disk is full.
    pub fn create(path: &Path, length: usize) -> io::Result<MappedFile> {
        if length == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if fs::metadata(path).is_ok_and(|known| known.is_file() && known.len() > 0) {
            let mut kept = OsString::from(path);
            kept.push(".bak");
            // The permissions of the folder may deliberately prevent it.
            let _ = fs::rename(path, kept);
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
        memory::reserve(file.as_raw_fd(), length)?;
        Ok(MappedFile { start: memory::map(file.as_raw_fd(), length)?, length })
    }

    pub fn size(&self) -> usize {
        self.length
    }

    /// Writes bytes at an offset, up to the end of the file; returns the number of bytes written.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.length.saturating_sub(at));
        if count > 0 {
            // SAFETY: `at` and `count` stay within the mapping, which is writable and lives as long as this value; a slice of
            // this process does not overlap it, since its address is not known elsewhere.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), count) };
        }
        count
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value, which ends here.
        let _ = unsafe { memory::unmap(self.start, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_in_the_file_and_what_was_there_is_kept() {
        let folder = std::env::temp_dir().join(format!("weir-mapped-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        let mut file = MappedFile::create(&path, 8).unwrap();
        assert_eq!((file.write(0, b"abc"), file.write(6, b"xyz"), file.write(9, b"?"), file.size()), (3, 2, 0, 8));
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"abc\0\0\0xy");
        drop(MappedFile::create(&path, 4).unwrap());
        assert_eq!(fs::read(&path).unwrap(), [0; 4]);
        assert_eq!(fs::read(folder.join("file.bak")).unwrap(), b"abc\0\0\0xy");
        assert!(MappedFile::create(&folder.join("none/file"), 4).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
