//! Rings of lines (configuration manual, section 12.5): workers append, a task for each server reads and sends over TCP.
//! Must never make anybody wait who appends: where a ring is full, its oldest lines go, and readers count what they
//! have lost.

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
    /// The file behind it.
    mirror: Option<Mirror>,
    readers: Box<[Reader]>,
    /// Those who look at it by the runtime API.
    watchers: Vec<Waker>,
    /// Lines that found no room at all.
    dropped: u64,
    /// Nobody appends any more.
    closed: bool,
}

/// How far a server is.
#[derive(Debug)]
struct Reader {
    /// Behind the last line that went out whole.
    sent: Cursor,
    /// Where it listens.
    address: SocketAddr,
    /// Its task, where there was nothing to read.
    waiting: Option<Waker>,
}

impl Ring {
    /// An empty ring.
    ///
    /// # Errors
    /// The system's about `backing-file`.
    pub fn open(ring: &program::Ring) -> io::Result<Self> {
        let ready = Self::new(ring);
        if let Some(path) = &ring.backing_file {
            ready.lock().mirror = Some(Mirror::create(Path::new(&**path), ring.size)?);
        }
        Ok(ready)
    }

    /// An empty ring without a file.
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
            let line = &line[..line.len().min(self.maxlen)];
            refused += usize::from(!shared.store.append(line));
            if let Some(mirror) = &mut shared.mirror {
                mirror.append(line);
            }
        }
        shared.dropped += refused as u64;
        // Wakers are called once the lock is released.
        let mut woken: Vec<Waker> = shared.readers.iter_mut().filter_map(|reader| reader.waiting.take()).collect();
        woken.append(&mut shared.watchers);
        drop(shared);
        woken.iter().for_each(Waker::wake_by_ref);
        refused
    }

    /// Nobody appends from now on: what waits is sent, and whoever sends it ends.
    pub fn close(&self) {
        let mut shared = self.lock();
        shared.closed = true;
        let mut woken: Vec<Waker> = shared.readers.iter_mut().filter_map(|reader| reader.waiting.take()).collect();
        woken.append(&mut shared.watchers);
        drop(shared);
        woken.iter().for_each(Waker::wake_by_ref);
    }

    /// Whether nobody appends any more.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The server with that number listens somewhere else from now on.
    pub fn move_server(&self, server: usize, address: SocketAddr) {
        if let Some(reader) = self.lock().readers.get_mut(server) {
            reader.address = address;
        }
    }

    /// Its name; empty behind `log tcp@…`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the runtime API tells of it.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// `format`; `None`: each line's own.
    pub fn format(&self) -> Option<SyslogFormat> {
        self.format
    }

    /// Lines that found no room at all.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// The place before its oldest line.
    pub fn start(&self) -> Cursor {
        self.lock().store.start()
    }

    /// The place behind its newest line.
    pub fn end(&self) -> Cursor {
        self.lock().store.end()
    }

    /// Appends the lines behind a place, each with `end` behind it, until there are so many bytes; the place behind the
    /// last one.
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

    /// Ready when there are lines behind a place, or will never be any.
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

    /// Whether a server has not got everything yet.
    pub fn is_behind(&self) -> bool {
        let shared = self.lock();
        shared.readers.iter().any(|reader| shared.store.has_lines_behind(reader.sent))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
