//! The directory of `tune.quic.qlog-dir`: checked with the configuration, and opened before privileges are dropped. Must never write
//! a trace.

use crate::files::reason;
use crate::messages::{Messages, ReportedError};
use crate::rights::Rights;
use config::diagnostic::Diagnostic;
use config::document::Sources;
use config::span::Spanned;
use engine::qlog_files::EXTENSION;
use policy::program::{Program, QlogLimits};
use rt::{FileOwner, Folder};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of files whose names are read.
const MOST_FILES: usize = 200_000;

/// The directory with the files that are in it.
pub struct QlogFolder {
    pub folder: Arc<Folder>,
    pub limits: QlogLimits,
    pub names: Vec<String>,
}

/// Checks whether the user of the process can write to the directory.
///
/// # Errors
/// It cannot; reported through `messages`, with the place in the configuration.
pub fn check(
    written: Option<&Spanned<String>>,
    rights: &Rights,
    sources: &Sources,
    messages: &mut Messages,
) -> Result<(), ReportedError> {
    let Some(path) = written else { return Ok(()) };
    let Err(error) = look(Path::new(&path.value), rights) else { return Ok(()) };
    let message = format!("'tune.quic.qlog-dir' : cannot write to '{}' : {}", path.value, reason(&error));
    messages.report(&[Diagnostic::alert(path.span, message)], sources);
    Err(ReportedError)
}

fn look(path: &Path, rights: &Rights) -> io::Result<()> {
    let known = std::fs::metadata(path)?;
    if !known.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let (user, group) = rt::process::identity();
    let chosen = |number: Option<u32>, own: u32| number.filter(|number| *number > 0).unwrap_or(own);
    match permits(&known, chosen(rights.user, user), chosen(rights.group, group)) {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether a directory can be written to by a user and a group.
fn permits(known: &Metadata, user: u32, group: u32) -> bool {
    let class = match (user == known.uid(), group == known.gid()) {
        _ if user == 0 => return true,
        (true, _) => 6,
        (_, true) => 3,
        _ => 0,
    };
    known.mode() >> class & 0o3 == 0o3
}

/// Opens the directory of a program.
///
/// # Errors
/// It cannot be opened; reported through `messages`.
pub fn open(program: &Program, messages: &mut Messages) -> Result<Option<QlogFolder>, ReportedError> {
    let Some(limits) = &program.global.quic.qlog else { return Ok(None) };
    let path = Path::new(&*limits.directory);
    let opened = Folder::open(path, FileOwner::default()).and_then(|folder| Ok((folder, names(path)?)));
    match opened {
        Ok((folder, names)) => Ok(Some(QlogFolder { folder: Arc::new(folder), limits: limits.clone(), names })),
        Err(error) => {
            let directory = &limits.directory;
            messages.alert(&format!("'tune.quic.qlog-dir' : cannot open '{directory}' : {}", reason(&error)));
            Err(ReportedError)
        }
    }
}

/// Returns the names of the traces in a directory.
fn names(path: &Path) -> io::Result<Vec<String>> {
    let names =
        std::fs::read_dir(path)?.take(MOST_FILES).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.ends_with(EXTENSION)).collect())
}
