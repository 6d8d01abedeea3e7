//! The kernel's pipes that workers keep, their number and their size. Must never move a byte.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

/// Default capacity in bytes that is requested for a pipe.
pub(super) const WANTED_CAPACITY: usize = 512 * 1024;

/// Capacity in bytes that is requested for a pipe.
static WANTED: AtomicUsize = AtomicUsize::new(WANTED_CAPACITY);

/// Sets the capacity in bytes that is requested for pipes; the kernel rounds it up to pages, and a user's limit may
/// refuse it.
pub fn set_pipe_capacity(bytes: usize) {
    WANTED.store(bytes, Ordering::Relaxed);
}

/// The number of pipes of the process, and its limit.
pub(super) static STOCK: Stock = Stock { open: AtomicUsize::new(0), most: AtomicUsize::new(usize::MAX) };

/// Limits the pipes of the process, kept ones included; streams without a pipe are copied.
pub fn limit_pipes(most: usize) {
    STOCK.most.store(most, Ordering::Relaxed);
}

pub(super) struct Stock {
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Stock {
    /// Counts another pipe, if the limit permits it.
    pub(super) fn take(&'static self) -> Option<LocalRc> {
        let most = self.most.load(Ordering::Relaxed);
        let one_more = |open: usize| (open < most).then(|| open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| LocalRc(self))
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.open.load(Ordering::Relaxed) >= self.most.load(Ordering::Relaxed)
    }
}

/// A counted pipe.
pub(super) struct LocalRc(&'static Stock);

impl Drop for LocalRc {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The two ends of an empty pipe, kept by a worker.
pub(crate) struct RawPipe {
    pub(super) read: OwnedFd,
    pub(super) write: OwnedFd,
    pub(super) capacity: usize,
    _counted: LocalRc,
}

impl RawPipe {
    /// Creates one.
    ///
    /// # Errors
    /// From the kernel.
    pub(super) fn create(counted: LocalRc) -> io::Result<Self> {
        let (read, write, capacity) = sys::pipe::create(WANTED.load(Ordering::Relaxed))?;
        Ok(Self { read, write, capacity, _counted: counted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_pipes_than_there_may_be() {
        static STOCK: Stock = Stock { open: AtomicUsize::new(0), most: AtomicUsize::new(2) };
        let (one, other) = (STOCK.take(), STOCK.take());
        assert!(one.is_some() && other.is_some() && STOCK.is_exhausted() && STOCK.take().is_none());
        drop(one);
        assert!(!STOCK.is_exhausted() && STOCK.take().is_some());
        assert_eq!(STOCK.open.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_pipe_holds_as_much_as_was_set() {
        static STOCK: Stock = Stock { open: AtomicUsize::new(0), most: AtomicUsize::new(2) };
        set_pipe_capacity(8_192);
        let set = RawPipe::create(STOCK.take().unwrap()).unwrap();
        set_pipe_capacity(WANTED_CAPACITY);
        assert_eq!(set.capacity, 8_192);
        assert!(RawPipe::create(STOCK.take().unwrap()).unwrap().capacity > 8_192);
    }
}
