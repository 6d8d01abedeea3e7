//! Rings of lines (configuration manual, section 12.5): workers append, a task for each server reads and sends over TCP. Must
//! never make an appending caller wait: when a ring is full, its oldest lines are overwritten, and readers count the lost lines.

mod forward;
mod mirror;
mod store;

pub use forward::forward;

use config::spec::SyslogFormat;
use mirror::Mirror;
use policy::program::{self, RingServer};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use store::Store;

pub use store::Cursor;

/// A ring, shared by all workers.
#[derive(Debug)]
pub struct Ring {
    name: Box<str>,
    description: Box<str>,
    shared: Mutex<Shared>,
    format: Option<SyslogFormat>,
    maxlen: usize,
    connect_timeout: Duration,
    server_timeout: Duration,
    servers: Box<[RingServer]>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    /// The backing file.
    mirror: Option<Mirror>,
    readers: Box<[Reader]>,
    /// Wakers of runtime API commands that read the ring.
    watchers: Vec<Waker>,
    /// Number of lines that did not fit into the ring.
    dropped: u64,
    /// No more lines are appended.
    closed: bool,
}

/// Progress of a server.
#[derive(Debug)]
struct Reader {
    /// Cursor following the last line that was sent completely.
    sent: Cursor,
    /// Address of the server.
    address: SocketAddr,
    /// Waker of its task while there is nothing to read.
    waiting: Option<Waker>,
}

impl Ring {
    /// Creates an empty ring.
    ///
    /// # Errors
    /// From the system, for `backing-file`.
    pub fn open(ring: &program::Ring) -> io::Result<Self> {
        let ready = Self::new(ring);
        if let Some(path) = &ring.backing_file {
            ready.lock().mirror = Some(Mirror::create(Path::new(&**path), ring.size)?);
        }
        Ok(ready)
    }

    /// Creates an empty ring without a file.
    pub fn new(ring: &program::Ring) -> Self {
        let readers = ring.servers.iter();
        let readers =
            readers.map(|server| Reader { sent: Cursor::default(), address: server.address, waiting: None }).collect();
        Self {
            shared: Mutex::new(Shared {
                store: Store::new(ring.size),
                mirror: None,
                readers,
                watchers: Vec::new(),
                dropped: 0,
                closed: false,
            }),
            name: ring.name.clone(),
            description: ring.description.clone(),
            format: ring.format,
            maxlen: ring.maxlen,
            connect_timeout: ring.connect_timeout,
            server_timeout: ring.server_timeout,
            servers: ring.servers.as_slice().into(),
        }
    }

    /// Returns the number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Appends lines, without their final newlines and truncated to `maxlen`. Returns the number of lines that did not fit.
    pub fn append<'a>(&self, lines: impl Iterator<Item = &'a [u8]>) -> usize {
        let mut refused = 0;
        let mut shared = self.lock();
        for line in lines {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = &line[..line.len().min(self.maxlen)];
            refused += usize::from(!shared.store.append(line));
            if let Some(mirror) = &mut shared.mirror {
                mirror.append(line);
            }
        }
        shared.dropped += refused as u64;
        // Wakers are called after the lock is released.
        let mut woken: Vec<Waker> = shared.readers.iter_mut().filter_map(|reader| reader.waiting.take()).collect();
        woken.append(&mut shared.watchers);
        drop(shared);
        woken.iter().for_each(Waker::wake_by_ref);
        refused
    }

    /// Closes the ring: the remaining lines are sent, then the sending tasks end.
    pub fn close(&self) {
        let mut shared = self.lock();
        shared.closed = true;
        let mut woken: Vec<Waker> = shared.readers.iter_mut().filter_map(|reader| reader.waiting.take()).collect();
        woken.append(&mut shared.watchers);
        drop(shared);
        woken.iter().for_each(Waker::wake_by_ref);
    }

    /// Whether the ring is closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Changes the address of the server with that number.
    pub fn move_server(&self, server: usize, address: SocketAddr) {
        if let Some(reader) = self.lock().readers.get_mut(server) {
            reader.address = address;
        }
    }

    /// Returns its name; empty for the ring of `log tcp@…`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its description for the runtime API.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the configured `format`; `None`: that of each line.
    pub fn format(&self) -> Option<SyslogFormat> {
        self.format
    }

    /// Returns the number of lines that did not fit.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Returns the cursor before its oldest line.
    pub fn start(&self) -> Cursor {
        self.lock().store.start()
    }

    /// Returns the cursor after its newest line.
    pub fn end(&self) -> Cursor {
        self.lock().store.end()
    }

    /// Appends the lines after a cursor to `out`, each followed by `end`, until `out` has `most` bytes. Returns the cursor after
    /// the last one.
    pub fn read(&self, from: Cursor, most: usize, end: u8, out: &mut Vec<u8>) -> Cursor {
        let shared = self.lock();
        let (place, _) = shared.store.read(from, |front, back, _| {
            let takes = out.len() < most;
            if takes {
                out.extend_from_slice(front);
                out.extend_from_slice(back);
                out.push(end);
            }
            takes
        });
        place
    }

    /// Ready when there are lines after a cursor, or the ring is closed.
    pub fn poll_lines_behind(&self, place: Cursor, cx: &Context<'_>) -> Poll<()> {
        let mut shared = self.lock();
        if shared.store.has_lines_behind(place) || shared.closed {
            return Poll::Ready(());
        }
        if !shared.watchers.iter().any(|known| known.will_wake(cx.waker())) {
            shared.watchers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Whether a server has not received every line yet.
    pub fn is_behind(&self) -> bool {
        let shared = self.lock();
        shared.readers.iter().any(|reader| shared.store.has_lines_behind(reader.sent))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
