//! Live log lines for readers of the runtime API. Must never store a line while there are no readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use policy::program;

use super::targets::Targets;
use crate::routes::ring::{Cursor, Ring};

/// Size of the ring for slow readers, in bytes.
const SIZE: usize = 256 * 1024;
/// Maximum size of a line, in bytes.
const LONGEST: usize = 4096;

/// Ring of lines, filled while there are readers.
#[derive(Debug)]
pub(super) struct Tap {
    readers: AtomicUsize,
    ring: Ring,
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
        Self { readers: AtomicUsize::new(0), ring: Ring::new(&ring) }
    }

    /// Whether there are readers.
    pub(super) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// Appends a line of a proxy, by its index, or of the process.
    pub(super) fn append(&self, owner: Option<usize>, line: &[u8]) {
        let mut text = owner.map_or_else(String::new, |index| index.to_string()).into_bytes();
        text.push(b' ');
        text.extend(line.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
        self.ring.append(std::iter::once(text.as_slice()));
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
        targets.tap.readers.fetch_add(1, Ordering::Relaxed);
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
        self.targets.tap.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
