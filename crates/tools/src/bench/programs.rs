//! Foreign programs: their location, and their version. Must never run one for longer than a
//! few seconds.

use super::child::{ChildProcess, Output, Stop, plain};
use base::ProcessorSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Directories of system administration programs, searched after `PATH`.
const ELSEWHERE: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// Timeout of a program that prints its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of the text that a program prints about itself, in bytes.
const LARGEST_OUTPUT: u64 = 1 << 20;

/// Maximum length of a version, in bytes.
const LONGEST_VERSION: usize = 200;

/// Returns the file of a program: itself if it contains a slash, else the first match in `PATH`, or in
/// the directories for administrators.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| runs(file));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut folders = path.split(':').chain(ELSEWHERE.split(':')).filter(|folder| !folder.is_empty());
    folders.find_map(|folder| Some(Path::new(folder).join(program)).filter(|file| runs(file)))
}

fn runs(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Returns the first line that a command prints; empty if there is none.
///
/// # Errors
/// An interruption.
pub fn version(command: &[String], log: &Path) -> Result<String, Stop> {
    let text = output(command, log)?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    Ok(plain(line).chars().take(LONGEST_VERSION).collect())
}

/// Returns the beginning of the text that a command prints about its program.
///
/// # Errors
/// An interruption.
pub fn output(command: &[String], log: &Path) -> Result<String, Stop> {
    let started = ChildProcess::start("the version", command, &ProcessorSet::EMPTY, log, Output::Log);
    match started.map_err(Stop::Failed).and_then(|mut started| started.wait(PATIENCE)) {
        Err(Stop::Interrupted) => return Err(Stop::Interrupted),
        // Some programs print their version and exit with an error.
        Ok(()) | Err(Stop::Failed(_)) => {}
    }
    let mut said = Vec::new();
    // A program that prints nothing has no log.
    let _ = fs::File::open(log).and_then(|log| log.take(LARGEST_OUTPUT).read_to_end(&mut said));
    Ok(String::from_utf8_lossy(&said).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_they_are() {
        assert!(find("sh").is_some_and(|file| file.is_absolute()));
        assert_eq!(find("/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(find("/bin/no such program"), None);
        assert_eq!(find("no such program"), None);
        assert_eq!(find("/tmp"), None);
    }

    #[test]
    fn a_version_is_one_line() {
        let log = std::env::temp_dir().join(format!("weir-bench-version-{}", std::process::id()));
        let say = |script: &str| version(&["sh".to_owned(), "-c".to_owned(), script.to_owned()], &log).unwrap();
        assert_eq!(say("printf '\\na 1.0\\tx\\nmore\\n'"), "a 1.0 x");
        assert_eq!(say("echo 'b 2.0' >&2; exit 1"), "b 2.0");
        assert_eq!(say(":"), "");
        let all = output(&["sh".to_owned(), "-c".to_owned(), "echo a; echo b >&2".to_owned()], &log).unwrap();
        assert_eq!(all, "a\nb\n");
        std::fs::remove_file(log).unwrap();
    }
}
