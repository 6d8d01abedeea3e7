//! The last log lines of failed requests, for the dashboard. Bounded: [`MOST_LINES`] and [`MOST_BYTES`]. Must never keep a line while
//! no configuration with a dashboard is served.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::WallTime;
use expression::record::Record;

/// Maximum number of lines; the oldest ones are dropped.
pub const MOST_LINES: usize = 1000;
/// Maximum memory of the lines with their names, in bytes.
pub const MOST_BYTES: usize = 512 * 1024;
/// Maximum length of a line in bytes.
const LONGEST: usize = 4096;

/// A line of a request that failed, or was answered with a status 4xx or 5xx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLine {
    /// Its number, from 1.
    pub id: u64,
    pub time: WallTime,
    pub frontend: Box<str>,
    /// The frontend's name if no backend was selected.
    pub backend: Box<str>,
    /// As in the line: `<NOSRV>` without a server.
    pub server: Box<str>,
    /// The status that the client has got; 0 without one.
    pub status: u16,
    /// The termination state.
    pub termination: [u8; 4],
    pub line: Box<[u8]>,
}

impl ErrorLine {
    /// Returns its memory in bytes.
    fn bytes(&self) -> usize {
        size_of::<Arc<Self>>()
            + size_of::<Self>()
            + self.frontend.len()
            + self.backend.len()
            + self.server.len()
            + self.line.len()
    }
}

/// Whether a line with that record is one of an error.
fn is_error(record: &Record<'_>) -> bool {
    // An answer of Weir's own is no error by itself.
    record.status >= 400 || !matches!(record.termination[0], b'-' | b'L')
}

/// The lines.
#[derive(Debug, Default)]
pub(super) struct ErrorLines(Mutex<ErrorLinesState>);

#[derive(Debug, Default)]
struct ErrorLinesState {
    last: u64,
    bytes: usize,
    lines: VecDeque<Arc<ErrorLine>>,
}

impl ErrorLines {
    fn lock(&self) -> MutexGuard<'_, ErrorLinesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a line if it is one of an error.
    pub(super) fn offer(&self, record: &Record<'_>, line: &[u8], time: WallTime) {
        if !is_error(record) {
            return;
        }
        let mut line = ErrorLine {
            id: 0,
            time,
            frontend: record.frontend.into(),
            backend: record.backend.into(),
            server: record.server.into(),
            status: u16::try_from(record.status).unwrap_or(0),
            termination: record.termination,
            line: line[..line.len().min(LONGEST)].into(),
        };
        let mut dropped = Vec::new();
        let mut state = self.lock();
        state.last += 1;
        line.id = state.last;
        state.bytes += line.bytes();
        state.lines.push_back(Arc::new(line));
        while state.lines.len() > MOST_LINES || state.bytes > MOST_BYTES {
            let Some(oldest) = state.lines.pop_front() else { break };
            state.bytes -= oldest.bytes();
            dropped.push(oldest);
        }
        drop(state);
        drop(dropped);
    }

    /// Drops all lines.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.bytes = 0;
        state.lines = VecDeque::new();
    }

    /// Returns the number of the newest line, and the lines after number `since`, oldest first.
    pub(super) fn since(&self, since: u64) -> (u64, Vec<Arc<ErrorLine>>) {
        let state = self.lock();
        let at = state.lines.partition_point(|line| line.id <= since);
        (state.last, state.lines.range(at..).map(Arc::clone).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: i32, termination: [u8; 4]) -> Record<'static> {
        Record { status, termination, frontend: "f", backend: "b", server: "s", ..Record::default() }
    }

    #[test]
    fn errors_are_those_of_their_status_or_their_end() {
        for (status, termination, wanted) in [
            (200, b"----", false),
            (200, b"LR--", false),
            (302, b"LR--", false),
            (399, b"----", false),
            (400, b"----", true),
            (404, b"LR--", true),
            (503, b"SC--", true),
            (200, b"CD--", true),
            (200, b"SD--", true),
            (-1, b"CR--", true),
            (0, b"sD--", true),
            (0, b"----", false),
        ] {
            assert_eq!(is_error(&record(status, *termination)), wanted, "{status} {termination:?}");
        }
    }

    #[test]
    fn lines_are_bounded_by_number_and_by_bytes() {
        let lines = ErrorLines::default();
        for number in 0..MOST_LINES + 5 {
            lines.offer(&record(500, *b"----"), format!("{number}").as_bytes(), WallTime::default());
            lines.offer(&record(200, *b"----"), b"no error", WallTime::default());
        }
        let (last, all) = lines.since(0);
        assert_eq!((last, all.len(), &*all[0].line, all[0].id), (1005, MOST_LINES, &b"5"[..], 6));
        assert_eq!(lines.since(1003).1.len(), 2);
        for _ in 0..300 {
            lines.offer(&record(-1, *b"CD--"), &[b'x'; 10_000], WallTime::default());
        }
        let (_, all) = lines.since(0);
        assert_eq!((all[0].line.len(), all[0].status), (LONGEST, 0));
        let bytes: usize = all.iter().map(|line| line.bytes()).sum();
        assert!(bytes <= MOST_BYTES && bytes + LONGEST * 2 > MOST_BYTES, "{bytes}");
        lines.clear();
        assert_eq!(lines.since(0), (1305, Vec::new()));
    }
}
