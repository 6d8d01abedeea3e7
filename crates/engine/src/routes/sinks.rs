//! Sinks of log lines: one for each address, however many configurations and proxies log there, and for as long as one of them
//! does. Must never look at a line.

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
    /// Before the workers begin: everything can be opened.
    Start,
    /// While they serve: rights may be given up, and numbers of descriptors may mean something else.
    Serving,
}

/// What a sink writes to.
#[derive(Debug)]
pub(crate) enum SinkTarget {
    /// Datagrams to an address.
    Address(Address),
    /// A shared descriptor; `None`: it is not open.
    Output(Option<Output>),
    /// A ring of a section.
    Ring(Arc<Ring>),
    /// A ring of its own before a connection, which ends with the sink once its lines are sent.
    Stream(Arc<Ring>),
    /// A collector, as log records.
    Telemetry,
    /// Datagrams to a server of a backend in `mode log`: it may move.
    Server(Mutex<Address>),
}

/// A sink of log lines, and its number among those that are open at a time: workers gather lines by it.
#[derive(Debug)]
pub(crate) struct LogSink {
    pub(crate) number: usize,
    pub(crate) target: SinkTarget,
    numbers: Arc<Numbers>,
}

impl LogSink {
    /// Whether what goes there are log records.
    pub(crate) fn takes_records(&self) -> bool {
        matches!(self.target, SinkTarget::Telemetry)
    }

    /// A server is somewhere else from now on: the next lines, or the next connection, go there.
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

/// Numbers of sinks; those that are free are given away first, the lowest of them before all.
#[derive(Debug, Default)]
struct Numbers(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    free: BTreeSet<usize>,
    next: usize,
}

impl Numbers {
    fn lock(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rings before connections, by numbers that no other ring has had.
#[derive(Debug, Default)]
struct Streams {
    open: BTreeMap<usize, (Weak<Ring>, OpenPhase)>,
    next: usize,
}

/// A sink that could not be opened, and why.
#[derive(Debug)]
pub enum SinkError {
    /// A descriptor, by its number: what would go there is dropped.
    Descriptor(i32, io::Error),
    /// The file behind a ring: its path, the ring's name. Nothing can be served then.
    Ring(Box<str>, Box<str>, io::Error),
}

/// All sinks of a process.
#[derive(Debug)]
pub(crate) struct LogSinks {
    numbers: Arc<Numbers>,
    /// Those that configurations name by an address.
    known: Mutex<KnownSinks>,
    /// Rings of sections, as the program counts them.
    pub(crate) rings: Box<[Arc<Ring>]>,
    streams: Mutex<Streams>,
    /// Lines that were dropped.
    pub(crate) dropped: Arc<AtomicU64>,
}

/// Sinks by their addresses.
#[derive(Debug, Default)]
struct KnownSinks {
    /// By a hash of the address.
    sinks: HashMap<u64, Vec<(LogAddress, Weak<LogSink>)>>,
    /// At this number of addresses, those whose sinks are closed are forgotten.
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
            // Few, and compared whole.
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
    /// With rings, and nothing else yet.
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

    /// What an address stands for. `None`: it cannot be opened any more.
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
            // They are looked up with each sending.
            LogAddress::Unix(path) => SinkTarget::Address(Address::Unix(path.clone())),
            LogAddress::Abstract(name) => SinkTarget::Address(Address::Abstract(name.clone())),
            LogAddress::Descriptor(number) => match (Output::open(*number), when) {
                (Ok(output), OpenPhase::Start) => SinkTarget::Output(Some(output)),
                // Other numbers may be those of connections by now.
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
            // Its servers are the sinks.
            LogAddress::Backend(_) => SinkTarget::Output(None),
        };
        let sink = self.sink(target);
        known.add(address, &sink);
        Some(sink)
    }

    /// What a server of a backend in `mode log` is.
    pub(crate) fn server(&self, server: &Server, when: OpenPhase) -> Arc<LogSink> {
        self.sink(match &server.log {
            Some(LogServer::Stream(ring)) => SinkTarget::Stream(self.stream(ring, when)),
            // The program has resolved every address that lines can go to.
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

    /// A ring before a connection, which is served from now on, or once the workers begin.
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

    /// Starts a worker's share of the tasks that send what is in the rings of the start.
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

    /// Every ring that takes lines or has some, with its number.
    pub(crate) fn all_rings(&self) -> Vec<(usize, Arc<Ring>)> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.open.iter().filter_map(|(number, (ring, _))| Some((*number, ring.upgrade()?)));
        self.rings.iter().cloned().enumerate().chain(open).collect()
    }

    /// The ring with that number.
    pub(crate) fn ring(&self, number: usize) -> Option<Arc<Ring>> {
        if let Some(ring) = self.rings.get(number) {
            return Some(Arc::clone(ring));
        }
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.open.get(&number)?.0.upgrade()
    }

    /// How many sinks there were at one time, at most.
    pub(crate) fn most(&self) -> usize {
        self.numbers.lock().next
    }

    pub(crate) fn count_dropped(&self, lines: usize) {
        if lines > 0 {
            self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
}

/// Serves the servers of a ring on this worker.
fn serve(ring: &Arc<Ring>, dropped: &Arc<AtomicU64>) {
    for server in 0..ring.servers() {
        rt::spawn(rt::Class::Normal, rt::NO_TAG, ring::forward(Arc::clone(ring), server, Arc::clone(dropped)));
    }
}
