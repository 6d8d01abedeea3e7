//! The time slice of a task: how long one poll of it may run before the other tasks of its worker are polled.
//!
//! A poll must never read the clock for each small piece of work: pieces are counted, and the clock is read once for
//! several of them.

use std::cell::Cell;
use std::time::Duration;

use base::Moment;

/// The time after which the running task should yield. A task that is alone yields ten thousand times a second then,
/// which costs it less than a hundredth of its time.
pub(crate) const SLICE: Duration = Duration::from_micros(100);
/// Pieces of work between two readings of the clock. A read or a write is one piece, a request two: a poll that serves
/// one request does not read the clock.
const PIECES_A_LOOK: u32 = 8;

/// The slice of the running task.
pub(crate) struct Slice {
    /// The last reading of the clock on this worker: no later than the start of the poll, and rarely much earlier.
    read: Cell<Moment>,
    /// `read` at the start of the poll.
    begun: Cell<Moment>,
    /// Number of polls; wraps around.
    calls: Cell<u32>,
    /// The clock was read in this poll.
    measured: Cell<bool>,
    /// Pieces of work before the next reading.
    pieces: Cell<u32>,
    /// The slice is used up.
    over: Cell<bool>,
}

impl Slice {
    pub(crate) fn new(now: Moment) -> Slice {
        Slice {
            read: Cell::new(now),
            begun: Cell::new(now),
            calls: Cell::new(0),
            measured: Cell::new(false),
            pieces: Cell::new(PIECES_A_LOOK),
            over: Cell::new(false),
        }
    }

    /// Begins a poll of a task, or a job.
    #[inline]
    pub(crate) fn begin(&self) {
        self.begun.set(self.read.get());
        self.calls.set(self.calls.get().wrapping_add(1));
        self.measured.set(false);
        self.pieces.set(PIECES_A_LOOK);
        self.over.set(false);
    }

    /// Returns the number of polls of tasks, including the current one.
    #[inline]
    pub(crate) fn calls(&self) -> u32 {
        self.calls.get()
    }

    /// Returns the last reading of the clock.
    pub(crate) fn last_reading(&self) -> Moment {
        self.read.get()
    }

    /// Records a reading of the clock outside of any task.
    pub(crate) fn note(&self, now: Moment) {
        self.read.set(now);
    }

    /// Records a reading of the clock by the running task. Returns the time since the previous reading in the same
    /// poll, `None` for the first one.
    pub(crate) fn measure(&self, now: Moment) -> Option<Duration> {
        let before = self.read.replace(now);
        if now.saturating_since(self.begun.get()) >= SLICE {
            self.over.set(true);
        }
        self.measured.replace(true).then(|| now.saturating_since(before))
    }

    /// Counts pieces of work. True: the clock is to be read.
    #[inline]
    pub(crate) fn count(&self, pieces: u32) -> bool {
        match self.pieces.get().checked_sub(pieces) {
            Some(left) if left > 0 => self.pieces.set(left),
            _ => {
                self.pieces.set(PIECES_A_LOOK);
                return true;
            }
        }
        false
    }

    /// Whether the slice is used up, as of the last reading of the clock.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Moment {
        Moment::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn the_clock_is_read_for_every_eighth_piece() {
        let slice = Slice::new(at(0));
        slice.begin();
        let looks: Vec<bool> = (0..9).map(|_| slice.count(2)).collect();
        assert_eq!(looks, [false, false, false, true, false, false, false, true, false]);
        slice.begin();
        assert_eq!((0..8).filter(|_| slice.count(1)).count(), 1, "each call counts anew");
    }

    #[test]
    fn a_slice_is_over_a_tenth_of_a_millisecond_after_the_call() {
        let slice = Slice::new(at(0));
        slice.note(at(100));
        slice.begin();
        assert_eq!(slice.measure(at(190)), None, "the first reading of a call has none before it");
        assert!(!slice.is_over());
        assert_eq!(slice.measure(at(200)), Some(Duration::from_micros(10)));
        assert!(slice.is_over());
        slice.begin();
        assert!(!slice.is_over());
        assert_eq!(slice.measure(at(299)), None);
        assert!(!slice.is_over(), "the former call's last reading counts as this one's beginning");
    }
}
