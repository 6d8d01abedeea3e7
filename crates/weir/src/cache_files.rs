//! The files of caches (`disk`), opened before privileges are dropped. Each is created anew: a file of that name that a
//! previous process uses is not modified. Must never read one.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use policy::program::Program;

use crate::messages::{Messages, ReportedError};

/// Creates the file of each cache that has one.
///
/// # Errors
/// A file cannot be created; reported through `messages`.
pub fn open(program: &Program, messages: &mut Messages) -> Result<Vec<(usize, File)>, ReportedError> {
    let mut files = Vec::new();
    for (index, cache) in program.caches.iter().enumerate() {
        let Some(path) = &cache.disk_path else { continue };
        match make(path) {
            Ok(file) => files.push((index, file)),
            Err(error) => {
                messages.alert(&format!("cache '{}': cannot make the file '{path}' : {error}", cache.name));
                return Err(ReportedError);
            }
        }
    }
    Ok(files)
}

/// Checks whether each file can be created, as far as possible without creating it.
///
/// # Errors
/// A file cannot be created; reported through `messages`.
pub fn check(program: &Program, messages: &mut Messages) -> Result<(), ReportedError> {
    let mut sound = true;
    for cache in &program.caches {
        let Some(path) = &cache.disk_path else { continue };
        if let Err(error) = is_possible(path) {
            messages.alert(&format!("cache '{}': cannot make the file '{path}' : {error}", cache.name));
            sound = false;
        }
    }
    if sound { Ok(()) } else { Err(ReportedError) }
}

fn is_possible(path: &str) -> io::Result<()> {
    let folder = match Path::new(path).parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !std::fs::metadata(folder)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    match std::fs::symlink_metadata(path) {
        Ok(known) if !known.is_file() => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn make(path: &str) -> io::Result<File> {
    match std::fs::symlink_metadata(path) {
        Ok(known) if !known.is_file() => return Err(ErrorKind::AlreadyExists.into()),
        Ok(_) => std::fs::remove_file(path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}
