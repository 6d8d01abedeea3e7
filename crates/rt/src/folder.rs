//! A folder that is written after privileges were dropped: it is opened before, and its files are accessed only through
//! it, independently of the root directory and user of the process by then. Calls wait for the disk: not for a worker.
//!
//! Files are replaced atomically and readable only by their owner.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::sys;

/// Maximum size in bytes of a file that is read.
const MOST: u64 = 1 << 20;

/// The user and the group that files are given to; `None`: those of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileOwner {
    pub user: Option<u32>,
    pub group: Option<u32>,
}

/// An open folder.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder; creates it with mode 0700 if it does not exist. `owner` will write to it, if the process
    /// is about to change its user and its group.
    ///
    /// # Errors
    /// From the system.
    pub fn open(path: &Path, owner: FileOwner) -> io::Result<Self> {
        use std::os::unix::fs::{DirBuilderExt as _, chown};
        if !path.is_dir() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            if owner != FileOwner::default() {
                chown(path, owner.user, owner.group)?;
            }
        }
        let file = File::open(path)?;
        if !file.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(file.into()))
    }

    /// Returns the descriptor, for rules about permitted writes.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Reads a whole file, up to 1 MB.
    ///
    /// # Errors
    /// From the system; `InvalidInput` if the name is not that of a file directly inside the folder.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        File::from(sys::folder::open(self.0.as_fd(), plain(name)?)?).take(MOST).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Creates a file of that name, which does not exist, to write to it.
    ///
    /// # Errors
    /// As for [`Folder::read`].
    pub fn create(&self, name: &str) -> io::Result<File> {
        sys::folder::create(self.0.as_fd(), plain(name)?).map(File::from)
    }

    /// Removes the file of that name.
    ///
    /// # Errors
    /// As for [`Folder::read`].
    pub fn remove(&self, name: &str) -> io::Result<()> {
        sys::folder::remove(self.0.as_fd(), plain(name)?)
    }

    /// Replaces the file of that name. It is on the disk when this returns. `owner`: as for [`Folder::open`].
    ///
    /// # Errors
    /// As for [`Folder::read`]; the previous file is then unchanged.
    pub fn write(&self, name: &str, content: &[u8], owner: FileOwner) -> io::Result<()> {
        use std::os::unix::fs::fchown;
        let draft = format!(".{}.new", plain(name)?);
        // A draft left by an earlier process.
        match sys::folder::remove(self.0.as_fd(), &draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::from(sys::folder::create(self.0.as_fd(), &draft)?);
        let written = file.write_all(content).and_then(|()| match owner {
            FileOwner { user: None, group: None } => Ok(()),
            FileOwner { user, group } => fchown(&file, user, group),
        });
        let moved =
            written.and_then(|()| file.sync_all()).and_then(|()| sys::folder::rename(self.0.as_fd(), &draft, name));
        if let Err(error) = moved {
            let _ = sys::folder::remove(self.0.as_fd(), &draft);
            return Err(error);
        }
        sys::folder::sync(self.0.as_fd())
    }
}

/// Checks that a name is that of a file directly inside the folder, and not hidden.
fn plain(name: &str) -> io::Result<&str> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) || name.len() > 240 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn files_are_written_whole_and_for_their_owner_alone() {
        let path = std::env::temp_dir().join(format!("weir-test-folder-{}", std::process::id()));
        let nobody = FileOwner::default();
        let folder = Folder::open(&path.join("inside"), nobody).unwrap();
        assert_eq!(std::fs::metadata(path.join("inside")).unwrap().mode() & 0o777, 0o700);
        assert_eq!(folder.read("a.pem").unwrap_err().kind(), io::ErrorKind::NotFound);
        // A leftover draft that is a link to elsewhere.
        std::os::unix::fs::symlink(path.join("elsewhere"), path.join("inside/.a.pem.new")).unwrap();
        for content in [&b"first"[..], b"second"] {
            folder.write("a.pem", content, nobody).unwrap();
            assert_eq!(folder.read("a.pem").unwrap(), content);
        }
        assert_eq!(std::fs::metadata(path.join("inside/a.pem")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.join("inside")).unwrap().count(), 1);
        assert!(!path.join("elsewhere").exists());
        folder.create("b.log").unwrap().write_all(b"line").unwrap();
        assert_eq!(folder.create("b.log").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(folder.read("b.log").unwrap(), b"line");
        folder.remove("b.log").unwrap();
        assert_eq!(folder.remove("b.log").unwrap_err().kind(), io::ErrorKind::NotFound);
        for name in ["", ".", "..", ".a", "a/b", "/a", "a\0"] {
            assert_eq!(folder.create(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
            assert_eq!(folder.read(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
            assert_eq!(folder.write(name, b"x", nobody).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        std::fs::remove_dir_all(path).unwrap();
    }
}
