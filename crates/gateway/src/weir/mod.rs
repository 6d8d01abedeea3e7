//! The driver of a running Weir: it writes the files of a state and makes Weir serve them.

mod backends;
mod configuration;
mod cors;
mod files;
mod output;
mod routes;
mod shares;
mod streams;
mod word;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::cluster::{Target, log};
use crate::desired::{Backend, Desired};
use files::Files;

/// The time that a reload may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Backends that may be refused in one application.
const MOST_REFUSED: usize = 32;
/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 1 << 20;

/// A running Weir with a master, whose command line is a socket (`weir -W -S`), and the directory of its files.
#[derive(Debug)]
pub struct Driver {
    folder: PathBuf,
    socket: PathBuf,
    applied: Option<Desired>,
    problems: BTreeSet<String>,
    /// Backends that Weir has refused, as they were.
    refused: BTreeMap<String, Arc<Backend>>,
}

impl Driver {
    /// Returns a driver of the Weir whose master has that socket.
    pub fn new(folder: PathBuf, socket: PathBuf) -> Self {
        Self { folder, socket, applied: None, problems: BTreeSet::new(), refused: BTreeMap::new() }
    }

    /// Writes the files of a state without any object if there are none, so that Weir can be started.
    ///
    /// # Errors
    /// A line that names the directory.
    pub fn prepare(&mut self) -> Result<(), String> {
        if self.folder.join("weir.cfg").exists() {
            return Ok(());
        }
        let written = self.write(&Desired::default(), &mut Journal::default());
        written.map(drop).map_err(|error| format!("{}: {error}", self.folder.display()))
    }

    /// Writes the files of a state, and returns the configuration.
    fn write(&mut self, desired: &Desired, journal: &mut Journal) -> io::Result<String> {
        let files = Files { folder: &self.folder };
        for kind in ["certificates", "authorities", "lists"] {
            std::fs::create_dir_all(self.folder.join(kind))?;
        }
        for (name, pem) in desired.certificates.iter().filter(|(name, _)| word::name("", name).is_ok()) {
            journal.replace(Path::new(&files.certificate(name)), pem)?;
        }
        for (name, pem) in desired.authorities.iter().filter(|(name, _)| word::name("", name).is_ok()) {
            journal.replace(Path::new(&files.authorities(name)), pem)?;
        }
        let refused = self.refused.keys().cloned().collect();
        let written = configuration::write(desired, &refused, &self.folder);
        for list in &written.lists {
            journal.replace(Path::new(&list.path), &list.text)?;
        }
        journal.replace(&self.folder.join("weir.cfg"), &written.text)?;
        let problems: BTreeSet<String> = written.problems.into_iter().collect();
        for problem in problems.difference(&self.problems) {
            log(problem);
        }
        self.problems = problems;
        Ok(written.text)
    }

    /// Makes Weir serve the files. The error is Weir's answer.
    async fn reload(&self) -> Result<(), String> {
        let answer = tokio::time::timeout(PATIENCE, command(&self.socket, "reload\n"))
            .await
            .map_err(|_| format!("{}: no answer to reload", self.socket.display()))?
            .map_err(|error| format!("{}: {error}", self.socket.display()))?;
        if answer.contains("Success=1") { Ok(()) } else { Err(format!("the reload has failed: {}", answer.trim())) }
    }

    /// Returns the backend that an answer of Weir is about, if it was not refused before.
    fn culprit(&self, text: &str, answer: &str) -> Option<String> {
        let place = format!("[{}:", self.folder.join("weir.cfg").display());
        let number: String = answer.split_once(&place)?.1.chars().take_while(char::is_ascii_digit).collect();
        let backend = configuration::backend_at(text, number.parse().ok()?)?;
        (!self.refused.contains_key(backend)).then(|| backend.to_owned())
    }
}

impl Target for Driver {
    async fn apply(&mut self, desired: &Desired) -> Result<(), String> {
        if self.applied.as_ref() == Some(desired) {
            return Ok(());
        }
        self.applied = None;
        self.refused.retain(|name, backend| desired.backends.get(name) == Some(backend));
        for _ in 0..MOST_REFUSED {
            let mut journal = Journal::default();
            let text =
                self.write(desired, &mut journal).map_err(|error| format!("{}: {error}", self.folder.display()))?;
            let Err(answer) = self.reload().await else {
                self.applied = Some(desired.clone());
                return Ok(());
            };
            // A Weir that restarts finds files that it has served.
            journal.undo();
            let Some(culprit) = self.culprit(&text, &answer) else { return Err(answer) };
            let Some(backend) = desired.backends.get(&culprit) else { return Err(answer) };
            log(&format!("backend {culprit} is refused and answers 500: {answer}"));
            self.refused.insert(culprit, Arc::clone(backend));
        }
        Err("Weir refuses too many backends".into())
    }
}

/// The files that were replaced, with what they had before.
#[derive(Debug, Default)]
struct Journal(Vec<Replaced>);

#[derive(Debug)]
struct Replaced {
    path: PathBuf,
    before: Option<Vec<u8>>,
}

impl Journal {
    /// Replaces a file if its content differs.
    fn replace(&mut self, path: &Path, content: &str) -> io::Result<()> {
        let before = std::fs::read(path).ok();
        if before.as_deref() != Some(content.as_bytes()) {
            replace(path, content.as_bytes())?;
            self.0.push(Replaced { path: path.to_owned(), before });
        }
        Ok(())
    }

    /// Restores all files.
    fn undo(self) {
        for Replaced { path, before } in self.0.into_iter().rev() {
            let restored = match before {
                Some(content) => replace(&path, &content),
                None => std::fs::remove_file(&path),
            };
            if let Err(error) = restored {
                log(&format!("{}: {error}", path.display()));
            }
        }
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

/// Replaces a file: a reader sees the one or the other. Only the owner may read it.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;

    let temporary = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    drop(file);
    std::fs::rename(temporary, path)
}
