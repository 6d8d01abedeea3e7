//! Finds and reads the configuration files (`-f FILE`, `-f FOLDER`, `-- FILE…`). Must never parse them.

use config::{InputFile, text};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// HAProxy's message for a file or folder that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// Reads every file that the command line names, and the files of named folders.
///
/// # Errors
/// A message for every path that cannot be read.
pub fn read(paths: &[PathBuf]) -> Result<Vec<InputFile>, Vec<Unreadable>> {
    let mut files = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        match expand(path) {
            Ok(found) => files.extend(found),
            Err(error) => errors.push(unreadable(path, &error)),
        }
    }
    let mut read = Vec::with_capacity(files.len());
    for path in files {
        match std::fs::read(&path) {
            Ok(bytes) => read.push(InputFile { name: text::from_bytes(path.as_os_str().as_bytes()), bytes }),
            Err(error) => errors.push(unreadable(&path, &error)),
        }
    }
    if errors.is_empty() { Ok(read) } else { Err(errors) }
}

/// Returns a file's path, or the files of a folder that end in `.cfg` and are not hidden, sorted by bytes.
fn expand(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if is_configuration(&entry.file_name()) && entry.path().is_file() {
            found.push(entry.path());
        }
    }
    found.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    Ok(found)
}

fn is_configuration(name: &OsStr) -> bool {
    name.as_bytes().ends_with(b".cfg") && !name.as_bytes().starts_with(b".")
}

fn unreadable(path: &Path, error: &io::Error) -> Unreadable {
    Unreadable(format!("Cannot open configuration file/directory {} : {}", path.display(), reason(error)))
}

/// Returns the system's error message, without the number that the standard library appends.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(end)) => text[..end].to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_other_files_of_a_folder_are_left_out() {
        let rows =
            [("a.cfg", true), (".a.cfg", false), ("a.cfg~", false), ("a.CFG", false), ("cfg", false), (".cfg", false)];
        for (name, expected) in rows {
            assert_eq!(is_configuration(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn every_missing_path_is_named() {
        let errors = read(&["/nowhere/a".into(), "/nowhere/b".into()]).unwrap_err();
        let expected = |name| {
            Unreadable(format!("Cannot open configuration file/directory /nowhere/{name} : No such file or directory"))
        };
        assert_eq!(errors, [expected('a'), expected('b')]);
    }

    #[test]
    fn errors_of_no_system_call_keep_their_words() {
        assert_eq!(reason(&io::Error::other("odd")), "odd");
        assert_eq!(reason(&io::Error::from_raw_os_error(2)), "No such file or directory");
    }
}
