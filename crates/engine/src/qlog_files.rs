//! The files of `tune.quic.qlog-dir`: the traces of connections, one file each. A thread of its own opens and writes them. Must never
//! make a worker wait for the disk, nor let files grow beyond what the configuration permits.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};

use conn::quic::{Link, QlogSink};
use policy::program::QlogLimits;
use rt::Folder;

/// Maximum number of blocks that wait for the thread; more are lost.
const WAITING: usize = 64;
/// The extension of the files.
pub const EXTENSION: &str = ".sqlog";

/// The files, if they are configured.
#[derive(Default)]
pub struct QlogFiles(OnceLock<Arc<Store>>);

/// The directory, and the files in it.
struct Store {
    folder: Arc<Folder>,
    limits: QlogLimits,
    thread: rt::Helpers,
    /// The files that exist, the oldest first.
    names: Mutex<VecDeque<String>>,
    /// The number of the newest file of this process.
    number: AtomicU64,
    /// Connections that are being traced.
    open: AtomicU32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl QlogFiles {
    /// Begins to trace connections in a directory, which has the files of these names.
    pub fn keep_in(&self, folder: Arc<Folder>, limits: QlogLimits, mut names: Vec<String>) {
        // Names begin with the time.
        names.sort_unstable();
        let store = Store {
            folder,
            limits,
            thread: rt::Helpers::new(1, WAITING),
            names: Mutex::new(names.into()),
            number: AtomicU64::new(0),
            open: AtomicU32::new(0),
        };
        let _ = self.0.set(Arc::new(store));
    }

    /// Traces a connection, if files are configured and not as many connections are traced already. `title` names it.
    #[inline]
    pub fn trace(&self, link: &Link, title: impl FnOnce() -> String) {
        if let Some(store) = self.0.get() {
            store.trace(link, title());
        }
    }
}

impl Store {
    #[cold]
    fn trace(self: &Arc<Self>, link: &Link, title: String) {
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.limits.files {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:010}-{}-{number:06}{EXTENSION}", rt::wall().seconds, std::process::id());
        let file = Arc::new(QlogFile { name, store: Arc::clone(self), open: Mutex::default() });
        link.trace(title, Box::new(Writer { file, left: Cell::new(self.limits.size) }));
    }

    /// Opens a file, and removes the oldest one if there are too many.
    fn open(&self, name: &str) -> Option<File> {
        let file = self.folder.create(name).ok()?;
        let mut names = lock(&self.names);
        names.push_back(name.to_owned());
        while names.len() > self.limits.files as usize
            && let Some(oldest) = names.pop_front()
        {
            let _ = self.folder.remove(&oldest);
        }
        Some(file)
    }
}

/// The file of a connection.
struct QlogFile {
    name: String,
    store: Arc<Store>,
    open: Mutex<FileState>,
}

#[derive(Default)]
enum FileState {
    /// Nothing was written.
    #[default]
    New,
    Open(File),
    /// It could not be opened or written.
    Failed,
}

impl QlogFile {
    /// Appends a block. Called by the thread.
    fn append(&self, block: &str) {
        let state = &mut *lock(&self.open);
        if matches!(state, FileState::New) {
            *state = self.store.open(&self.name).map_or(FileState::Failed, FileState::Open);
        }
        if let FileState::Open(file) = state
            && file.write_all(block.as_bytes()).is_err()
        {
            *state = FileState::Failed;
        }
    }
}

/// Takes the records of a connection.
struct Writer {
    file: Arc<QlogFile>,
    /// Bytes that its file may still grow by.
    left: Cell<u64>,
}

impl QlogSink for Writer {
    fn write(&self, records: String) {
        let block = match fitting(&records, self.left.get()) {
            whole if whole.len() == records.len() => records,
            part => {
                // A file ends with a whole record.
                self.left.set(0);
                part.to_owned()
            }
        };
        if block.is_empty() {
            return;
        }
        self.left.set(self.left.get().saturating_sub(block.len() as u64));
        let file = Arc::clone(&self.file);
        let job = std::pin::pin!(self.file.store.thread.run(move || file.append(&block)));
        // The first call queues it; nothing waits for its end.
        let _ = job.poll(&mut Context::from_waker(Waker::noop()));
    }

    fn is_full(&self) -> bool {
        self.left.get() == 0
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.file.store.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the whole records at the beginning of `records` that have at most `most` bytes.
fn fitting(records: &str, most: u64) -> &str {
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(records.len());
    if most == records.len() {
        return records;
    }
    let end = records.as_bytes()[..most].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    records.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_whole_records() {
        let records = "one\ntwo\nthree\n";
        for (most, expected) in [
            (0, ""),
            (3, ""),
            (4, "one\n"),
            (7, "one\n"),
            (8, "one\ntwo\n"),
            (13, "one\ntwo\n"),
            (14, records),
            (99, records),
        ] {
            assert_eq!(fitting(records, most), expected, "{most}");
        }
    }
}
