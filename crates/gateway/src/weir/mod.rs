//! The driver of a running Weir: it writes the files of a state and makes Weir serve them.

mod backends;
mod configuration;
mod cors;
mod files;
mod routes;
mod shares;
mod streams;
mod word;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::cluster::{Target, log};
use crate::desired::Desired;
use files::Files;

/// The time that a reload may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 1 << 20;

/// A running Weir with a master, whose command line is a socket (`weir -W -S`), and the directory of its files.
#[derive(Debug)]
pub struct Driver {
    folder: PathBuf,
    socket: PathBuf,
    applied: Option<Desired>,
    problems: BTreeSet<String>,
}

impl Driver {
    pub fn new(folder: PathBuf, socket: PathBuf) -> Self {
        Self { folder, socket, applied: None, problems: BTreeSet::new() }
    }

    /// Writes the files of a state without any object if there are none, so that Weir can be started.
    ///
    /// # Errors
    /// A line that names the directory.
    pub fn prepare(&mut self) -> Result<(), String> {
        if self.folder.join("weir.cfg").exists() {
            return Ok(());
        }
        self.write(&Desired::default()).map_err(|error| format!("{}: {error}", self.folder.display()))
    }

    /// Writes the files of a state.
    fn write(&mut self, desired: &Desired) -> io::Result<()> {
        let files = Files { folder: &self.folder };
        for kind in ["certificates", "authorities", "lists"] {
            std::fs::create_dir_all(self.folder.join(kind))?;
        }
        for (name, pem) in &desired.certificates {
            replace(Path::new(&files.certificate(name)), pem)?;
        }
        for (name, pem) in &desired.authorities {
            replace(Path::new(&files.authorities(name)), pem)?;
        }
        let written = configuration::write(desired, &self.folder);
        for list in &written.lists {
            replace(Path::new(&list.path), &list.text)?;
        }
        replace(&self.folder.join("weir.cfg"), &written.text)?;
        let problems: BTreeSet<String> = written.problems.into_iter().collect();
        for problem in problems.difference(&self.problems) {
            log(problem);
        }
        self.problems = problems;
        Ok(())
    }

    async fn reload(&self) -> Result<(), String> {
        let answer = tokio::time::timeout(PATIENCE, command(&self.socket, "reload\n"))
            .await
            .map_err(|_| format!("{}: no answer to reload", self.socket.display()))?
            .map_err(|error| format!("{}: {error}", self.socket.display()))?;
        if answer.contains("Success=1") { Ok(()) } else { Err(format!("the reload has failed: {}", answer.trim())) }
    }
}

impl Target for Driver {
    async fn apply(&mut self, desired: &Desired) -> Result<(), String> {
        if self.applied.as_ref() == Some(desired) {
            return Ok(());
        }
        self.applied = None;
        self.write(desired).map_err(|error| format!("{}: {error}", self.folder.display()))?;
        self.reload().await?;
        self.applied = Some(desired.clone());
        Ok(())
    }
}

/// Sends a command and returns the answer.
async fn command(socket: &Path, text: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(text.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Replaces a file if its content differs: a reader sees the one or the other. Only the owner may read it.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;

    if std::fs::read(path).is_ok_and(|old| old == content.as_bytes()) {
        return Ok(());
    }
    let temporary = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(content.as_bytes())?;
    drop(file);
    std::fs::rename(temporary, path)
}
