//! Sinks of log lines: one per address, shared by all configurations and proxies that log there, and closed with the last of
//! them. Must never look at a line.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use policy::program::{self, LogAddress, LogServer, Server};
use rt::Output;
use rt::net::Address;

use super::ring::{self, Ring};

/// The phase of the process in which a sink is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenPhase {
    /// Before the workers start: everything can be opened.
    Start,
    /// While the workers run: privileges may be dropped, and descriptor numbers may refer to something else.
    Serving,
}

/// Destination of a sink.
#[derive(Debug)]
pub(crate) enum SinkTarget {
    /// Datagrams to an address.
    Address(Address),
    /// A shared descriptor; `None`: it could not be opened.
    Output(Option<Output>),
    /// Ring of a `ring` section.
    Ring(Arc<Ring>),
    /// Ring of its own for a connection, which ends with the sink once its lines are sent.
    Stream(Arc<Ring>),
    /// OpenTelemetry log records for a collector.
    Telemetry,
    /// Datagrams to a server of a backend in `mode log`; its address can change.
    Server(Mutex<Address>),
}

/// A sink of log lines, with its number among the open ones, by which workers buffer lines.
#[derive(Debug)]
pub(crate) struct LogSink {
    pub(crate) number: usize,
    pub(crate) target: SinkTarget,
    numbers: Arc<Numbers>,
}

impl LogSink {
    /// Whether it takes log records instead of lines.
    pub(crate) fn takes_records(&self) -> bool {
        matches!(self.target, SinkTarget::Telemetry)
    }

    /// Changes the address of a server, for the next lines or the next connection.
    pub(crate) fn move_to(&self, address: SocketAddr) {
        match &self.target {
            SinkTarget::Stream(ring) => ring.move_server(0, address),
            SinkTarget::Server(known) => {
                *known.lock().unwrap_or_else(PoisonError::into_inner) = Address::Inet(address);
            }
            SinkTarget::Address(_) | SinkTarget::Output(_) | SinkTarget::Ring(_) | SinkTarget::Telemetry => {}
        }
    }
}

impl Drop for LogSink {
    fn drop(&mut self) {
        if let SinkTarget::Stream(ring) = &self.target {
            ring.close();
        }
        self.numbers.lock().free.insert(self.number);
    }
}

/// Allocator of sink numbers; the lowest free one is reused first.
#[derive(Debug, Default)]
struct Numbers(Mutex<SinkIndexes>);

#[derive(Debug, Default)]
struct SinkIndexes {
    free: BTreeSet<usize>,
    next: usize,
}

impl Numbers {
    fn lock(&self) -> MutexGuard<'_, SinkIndexes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rings of connections, by numbers that are never reused.
#[derive(Debug, Default)]
struct Streams {
    open: BTreeMap<usize, (Weak<Ring>, OpenPhase)>,
    next: usize,
}

/// A sink that could not be opened, with the reason.
#[derive(Debug)]
pub enum SinkError {
    /// A descriptor, by its number: its lines are dropped.
    Descriptor(i32, io::Error),
    /// The backing file of a ring: its path, the ring's name. The process cannot start then.
    Ring(Box<str>, Box<str>, io::Error),
}

/// All sinks of a process.
#[derive(Debug)]
pub(crate) struct LogSinks {
    numbers: Arc<Numbers>,
    /// Sinks that configurations name by an address.
    known: Mutex<KnownSinks>,
    /// Rings of sections, by their index in the program.
    pub(crate) rings: Box<[Arc<Ring>]>,
    streams: Mutex<Streams>,
    /// Number of dropped lines.
    pub(crate) dropped: Arc<AtomicU64>,
}

/// Sinks by their addresses.
#[derive(Debug, Default)]
struct KnownSinks {
    /// Sinks by a hash of the address.
    sinks: HashMap<u64, Vec<(LogAddress, Weak<LogSink>)>>,
    /// Number of addresses at which those with closed sinks are removed.
    sweep_at: usize,
}

impl KnownSinks {
    fn hash(address: &LogAddress) -> u64 {
        let mut hasher = DefaultHasher::new();
        match address {
            LogAddress::Inet(address) => address.hash(&mut hasher),
            LogAddress::Unix(path) => path.hash(&mut hasher),
            LogAddress::Abstract(name) => name.hash(&mut hasher),
            LogAddress::Descriptor(number) => number.hash(&mut hasher),
            LogAddress::Ring(place) | LogAddress::Backend(place) => place.hash(&mut hasher),
            // These are few and compared as a whole.
            LogAddress::Stream(_) | LogAddress::Telemetry => {}
        }
        hasher.finish()
    }

    fn find(&self, address: &LogAddress) -> Option<Arc<LogSink>> {
        let mut same = self.sinks.get(&Self::hash(address))?.iter().filter(|(other, _)| other == address);
        same.find_map(|(_, sink)| sink.upgrade())
    }

    fn add(&mut self, address: &LogAddress, sink: &Arc<LogSink>) {
        let is_open = |(_, sink): &(LogAddress, Weak<LogSink>)| sink.strong_count() > 0;
        if self.sinks.len() >= self.sweep_at {
            self.sinks.retain(|_, sinks| sinks.iter().any(is_open));
            self.sweep_at = 2 * self.sinks.len() + 16;
        }
        let own = self.sinks.entry(Self::hash(address)).or_default();
        own.retain(is_open);
        own.push((address.clone(), Arc::downgrade(sink)));
    }
}

impl LogSinks {
    /// Creates a registry with rings and no other sinks.
    pub(crate) fn new(rings: Box<[Arc<Ring>]>) -> Self {
        let streams = Streams { next: rings.len(), ..Streams::default() };
        Self {
            numbers: Arc::default(),
            known: Mutex::default(),
            rings,
            streams: Mutex::new(streams),
            dropped: Arc::default(),
        }
    }

    /// Returns the sink of an address, opening it if necessary. `None`: it can no longer be opened.
    pub(crate) fn open(
        &self,
        address: &LogAddress,
        when: OpenPhase,
        errors: &mut Vec<SinkError>,
    ) -> Option<Arc<LogSink>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = known.find(address) {
            return Some(open);
        }
        let target = match address {
            LogAddress::Inet(address) => SinkTarget::Address(Address::Inet(*address)),
            // The path is resolved with each send.
            LogAddress::Unix(path) => SinkTarget::Address(Address::Unix(path.clone())),
            LogAddress::Abstract(name) => SinkTarget::Address(Address::Abstract(name.clone())),
            LogAddress::Descriptor(number) => match (Output::open(*number), when) {
                (Ok(output), OpenPhase::Start) => SinkTarget::Output(Some(output)),
                // Other numbers may refer to connections by now.
                (Ok(output), OpenPhase::Serving) if matches!(number, 1 | 2) => SinkTarget::Output(Some(output)),
                (Err(error), OpenPhase::Start) => {
                    errors.push(SinkError::Descriptor(*number, error));
                    SinkTarget::Output(None)
                }
                (_, OpenPhase::Serving) => return None,
            },
            LogAddress::Ring(index) => SinkTarget::Ring(Arc::clone(self.rings.get(*index)?)),
            LogAddress::Stream(ring) => SinkTarget::Stream(self.stream(ring, when)),
            LogAddress::Telemetry => SinkTarget::Telemetry,
            // The sinks belong to its servers.
            LogAddress::Backend(_) => SinkTarget::Output(None),
        };
        let sink = self.sink(target);
        known.add(address, &sink);
        Some(sink)
    }

    /// Creates the sink of a server of a backend in `mode log`.
    pub(crate) fn server(&self, server: &Server, when: OpenPhase) -> Arc<LogSink> {
        self.sink(match &server.log {
            Some(LogServer::Stream(ring)) => SinkTarget::Stream(self.stream(ring, when)),
            // The program has resolved every address that lines can be sent to.
            Some(LogServer::Datagrams) | None => {
                let address = server.address.of_syslog().map_or(Address::Unnamed, Address::Inet);
                SinkTarget::Server(Mutex::new(address))
            }
        })
    }

    fn sink(&self, target: SinkTarget) -> Arc<LogSink> {
        let mut given = self.numbers.lock();
        let number = given.free.pop_first().unwrap_or_else(|| {
            given.next += 1;
            given.next - 1
        });
        drop(given);
        Arc::new(LogSink { number, target, numbers: Arc::clone(&self.numbers) })
    }

    /// Creates a ring for a connection. Sending starts now, or once the workers start.
    fn stream(&self, ring: &program::Ring, when: OpenPhase) -> Arc<Ring> {
        let ring = Arc::new(Ring::new(ring));
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.open.retain(|_, (open, _)| open.strong_count() > 0);
        let number = streams.next;
        streams.next += 1;
        streams.open.insert(number, (Arc::downgrade(&ring), when));
        drop(streams);
        if when == OpenPhase::Serving {
            let (served, dropped) = (Arc::clone(&ring), Arc::clone(&self.dropped));
            let worker = number % rt::workers().max(1);
            rt::post(worker as rt::WorkerId, Box::new(move || serve(&served, &dropped)));
        }
        ring
    }

    /// Starts this worker's share of the tasks that send the lines of rings created at start.
    pub(crate) fn forward(&self, worker: usize) {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let first = streams.open.iter().filter(|(_, (_, when))| *when == OpenPhase::Start);
        let first = first.filter_map(|(number, (ring, _))| Some((*number, ring.upgrade()?)));
        let sections = self.rings.iter().cloned().enumerate();
        let rings = sections.chain(first).filter(|(number, _)| number % rt::workers().max(1) == worker);
        let rings: Vec<_> = rings.collect();
        drop(streams);
        rings.iter().for_each(|(_, ring)| serve(ring, &self.dropped));
    }

    /// Returns every ring with its number, closed ones that still have lines included.
    pub(crate) fn all_rings(&self) -> Vec<(usize, Arc<Ring>)> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.open.iter().filter_map(|(number, (ring, _))| Some((*number, ring.upgrade()?)));
        self.rings.iter().cloned().enumerate().chain(open).collect()
    }

    /// Returns the ring with that number.
    pub(crate) fn ring(&self, number: usize) -> Option<Arc<Ring>> {
        if let Some(ring) = self.rings.get(number) {
            return Some(Arc::clone(ring));
        }
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.open.get(&number)?.0.upgrade()
    }

    /// Returns the largest number of sinks that existed at one time.
    pub(crate) fn most(&self) -> usize {
        self.numbers.lock().next
    }

    pub(crate) fn count_dropped(&self, lines: usize) {
        if lines > 0 {
            self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
}

/// Starts the tasks that send a ring's lines to its servers, on this worker.
fn serve(ring: &Arc<Ring>, dropped: &Arc<AtomicU64>) {
    for server in 0..ring.servers() {
        rt::spawn(rt::Class::Normal, rt::NO_TAG, ring::forward(Arc::clone(ring), server, Arc::clone(dropped)));
    }
}
