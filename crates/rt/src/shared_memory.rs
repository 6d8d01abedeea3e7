//! Shared memory by name, as in shm_open(3) on Linux: a file in a memory file system. Must never read or write it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The folder of that file system.
const FOLDER: &str = "/dev/shm";

/// Opens shared memory by name; creates it with mode 0600 if there is none. Symbolic links are not followed, and only
/// regular files are opened.
///
/// # Errors
/// From the system; `InvalidInput`: the name contains a slash, or belongs to something other than a file.
pub fn open_shared_memory(name: &str) -> io::Result<File> {
    let name = name.trim_start_matches('/');
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        return Err(ErrorKind::InvalidInput.into());
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let file = options.open(Path::new(FOLDER).join(name))?;
    if !file.metadata()?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["", "/", "..", "a/b", "/a/b", "../x"] {
            assert_eq!(
                open_shared_memory(name).map_err(|error| error.kind()).err(),
                Some(ErrorKind::InvalidInput),
                "{name}"
            );
        }
    }
}
