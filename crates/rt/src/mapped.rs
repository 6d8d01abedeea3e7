//! A file that lies in memory: what is written to it is in the file when the kernel puts it there, at the latest when the
//! process has ended, however it ends. Must never read what is in it: others may have written there.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::sys::memory;

/// Such a file, of a size that never changes.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value alone, whichever thread has it, and is reached through `&mut` only.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Creates a file of that many bytes, for its owner alone. One that is there and not empty is kept under its name with
    /// `.bak` behind it, if it can be.
    ///
    /// # Errors
    /// The system's: the file cannot be made, or there is no room for it.
    pub fn create(path: &Path, length: usize) -> io::Result<MappedFile> {
        if length == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if fs::metadata(path).is_ok_and(|known| known.is_file() && known.len() > 0) {
            let mut kept = OsString::from(path);
            kept.push(".bak");
            // A folder that does not let it be kept was chosen so.
            let _ = fs::rename(path, kept);
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
        memory::reserve(file.as_raw_fd(), length)?;
        Ok(MappedFile { start: memory::map(file.as_raw_fd(), length)?, length })
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.length
    }

    /// Writes bytes at a place, as many as there is room for behind it; tells how many.
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
        // SAFETY: the mapping is this value's, which ends here.
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
