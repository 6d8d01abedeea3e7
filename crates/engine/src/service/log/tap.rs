//! Live log lines for readers of the runtime API, and the last lines of errors. Must never store a line while there are no readers and
//! no dashboard.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expression::record::Record;
use policy::program;

use super::error_lines::{ErrorLine, ErrorLines};
use super::targets::Targets;
use crate::routes::ring::{Cursor, Ring};

/// Size of the ring for slow readers, in bytes.
const SIZE: usize = 256 * 1024;
/// Maximum size of a line, in bytes.
const LONGEST: usize = 4096;

/// Added to the number of readers while lines of errors are kept: one test suffices for lines that nothing needs.
const KEEPS_ERRORS: usize = 1 << (usize::BITS - 1);

/// Ring of lines, filled while there are readers, and the last lines of errors.
#[derive(Debug)]
pub(super) struct Tap {
    uses: AtomicUsize,
    ring: Ring,
    errors: ErrorLines,
}

impl Tap {
    pub(super) fn new() -> Self {
        let ring = program::Ring {
            name: "".into(),
            description: "".into(),
            format: None,
            maxlen: LONGEST,
            size: SIZE,
            backing_file: None,
            connect_timeout: std::time::Duration::ZERO,
            server_timeout: std::time::Duration::ZERO,
            servers: Vec::new(),
        };
        Self { uses: AtomicUsize::new(0), ring: Ring::new(&ring), errors: ErrorLines::default() }
    }

    /// Whether lines are needed.
    pub(super) fn is_used(&self) -> bool {
        self.uses.load(Ordering::Relaxed) > 0
    }

    /// Takes a line of a proxy, by its index, or of the process. `record`: its values, if it is about traffic.
    #[cold]
    pub(super) fn take(&self, owner: Option<usize>, record: Option<&Record<'_>>, line: &[u8]) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses & !KEEPS_ERRORS > 0 {
            self.append(owner, line);
        }
        if let Some(record) = record.filter(|_| uses & KEEPS_ERRORS > 0) {
            self.errors.offer(record, line, rt::wall());
        }
    }

    /// Begins or ends to keep lines of errors. Callers must be serialized.
    fn keep_errors(&self, keeps: bool) {
        if keeps {
            self.uses.fetch_or(KEEPS_ERRORS, Ordering::Relaxed);
        } else {
            self.uses.fetch_and(!KEEPS_ERRORS, Ordering::Relaxed);
            self.errors.clear();
        }
    }

    fn append(&self, owner: Option<usize>, line: &[u8]) {
        let mut text = owner.map_or_else(String::new, |index| index.to_string()).into_bytes();
        text.push(b' ');
        text.extend(line.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
        self.ring.append(std::iter::once(text.as_slice()));
    }
}

impl Targets {
    /// Begins or ends to keep the last lines of errors.
    pub(crate) fn keep_errors(&self, keeps: bool) {
        self.tap.keep_errors(keeps);
    }

    /// Returns the number of the newest line of an error, and the lines after number `since`, oldest first.
    pub fn error_lines(&self, since: u64) -> (u64, Vec<Arc<ErrorLine>>) {
        self.tap.errors.since(since)
    }
}

/// A reader of lines logged since its creation.
#[derive(Debug)]
pub struct TapReader {
    targets: Arc<Targets>,
    place: Cursor,
}

impl TapReader {
    /// Creates a reader.
    pub fn new(targets: Arc<Targets>) -> Self {
        targets.tap.uses.fetch_add(1, Ordering::Relaxed);
        let place = targets.tap.ring.end();
        Self { targets, place }
    }

    /// Passes the next lines, about `most` bytes, to `take`: each with the index of its proxy; `None`: of the process.
    pub fn read(&mut self, most: usize, mut take: impl FnMut(Option<usize>, &[u8])) {
        let mut text = Vec::new();
        self.place = self.targets.tap.ring.read(self.place, most, b'\n', &mut text);
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let at = line.iter().position(|byte| *byte == b' ').unwrap_or(0);
            let owner = std::str::from_utf8(&line[..at]).ok().and_then(|digits| digits.parse().ok());
            take(owner, line.get(at + 1..).unwrap_or_default());
        }
    }
}

impl Drop for TapReader {
    fn drop(&mut self) {
        self.targets.tap.uses.fetch_sub(1, Ordering::Relaxed);
    }
}
