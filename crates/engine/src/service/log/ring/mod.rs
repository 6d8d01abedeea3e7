//! Rings of lines (configuration manual, section 12.5): workers append, a task for each server reads and sends over TCP.
//! Must never make anybody wait who appends: where a ring is full, its oldest lines go, and readers count what they
//! have lost.

mod forward;
mod store;

pub use forward::forward;

use policy::program::{self, RingServer};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use store::{Cursor, Store};

/// A ring, shared by all workers.
#[derive(Debug)]
pub struct Ring {
    shared: Mutex<Shared>,
    maxlen: usize,
    connect_timeout: Duration,
    server_timeout: Duration,
    servers: Box<[RingServer]>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    readers: Box<[Reader]>,
}

/// How far a server is.
#[derive(Debug, Default)]
struct Reader {
    /// Behind the last line that went out whole.
    sent: Cursor,
    /// Its task, where there was nothing to read.
    waiting: Option<Waker>,
}

impl Ring {
    /// An empty ring.
    pub fn new(ring: &program::Ring) -> Self {
        let readers = ring.servers.iter().map(|_| Reader::default()).collect();
        Self {
            shared: Mutex::new(Shared { store: Store::new(ring.size), readers }),
            maxlen: ring.maxlen,
            connect_timeout: ring.connect_timeout,
            server_timeout: ring.server_timeout,
            servers: ring.servers.as_slice().into(),
        }
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Appends lines, each without its final newline and cut to `maxlen`. Tells how many found no room at all.
    pub fn append<'a>(&self, lines: impl Iterator<Item = &'a [u8]>) -> usize {
        let mut refused = 0;
        let mut shared = self.lock();
        for line in lines {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            refused += usize::from(!shared.store.append(&line[..line.len().min(self.maxlen)]));
        }
        // Wakers are called once the lock is released.
        let woken: Vec<Waker> = shared.readers.iter_mut().filter_map(|reader| reader.waiting.take()).collect();
        drop(shared);
        woken.iter().for_each(Waker::wake_by_ref);
        refused
    }

    /// Whether a server has not got everything yet.
    pub fn is_behind(&self) -> bool {
        let shared = self.lock();
        shared.readers.iter().any(|reader| shared.store.has_lines_behind(reader.sent))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
