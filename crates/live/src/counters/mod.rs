//! Counters for the runtime API and statistics (management manual, section 9.1). Every worker counts in its own cells;
//! a reader adds them up. Must never be used for decisions: limits and queues have their own counts.

mod cell;
mod content;
mod datagrams;
mod http2;
mod kept;
mod latency;
mod lazy;
mod quic;
mod rate;
pub mod shared;

pub use cell::{Averages, Count, Peak};
pub use content::ContentCounters;
pub use datagrams::{DatagramCounters, LazyDatagramCounters};
pub use http2::Http2Counters;
pub use kept::{CounterLine, KeptCounts, Side};
pub use latency::{Latencies, LatencyCell, LatencySum, latency_of};
pub use lazy::{BackCounters, ProxyCounters};
pub use quic::{LazyQuicCounters, QuicCount, QuicCounters};
pub use rate::Rate;

use base::{AppendOnlyVec, Moment};
use expression::sample::CounterSource;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Counters of a frontend, a listening address, a backend or a server; each uses those that apply to it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ObjectCounters {
    pub sessions: Count,
    /// Ended sessions, cumulative like `begun`.
    pub ended: Count,
    pub begun: Count,
    pub most_sessions: Peak,
    pub most_queued: Peak,
    pub connections: Count,
    pub requests: Count,
    /// Bytes of requests: received from clients, and sent to servers.
    pub bytes_in: Count,
    pub sent: Count,
    /// Bytes of responses: received from servers, and sent to clients.
    pub received: Count,
    pub bytes_out: Count,
    /// Counts of the protocol's counters beyond the requests and responses above.
    pub protocol: ProtocolCounts,
    /// TLS: new sessions, resumed sessions, and failed handshakes.
    pub tls_sessions: Count,
    pub tls_resumed: Count,
    pub tls_failed: Count,
    /// Bytes spliced by the kernel, from the peer and to it.
    pub spliced_in: Count,
    pub spliced_out: Count,
    /// Responses by class: others, 1xx to 5xx.
    pub answers: [Count; 6],
    pub request_errors: Count,
    /// Denied by rules: connections, sessions, requests, responses.
    pub denied_connections: Count,
    pub denied_sessions: Count,
    pub denied_requests: Count,
    pub denied_responses: Count,
    pub connect_errors: Count,
    pub response_errors: Count,
    pub internal_errors: Count,
    /// Header rewrites that failed for lack of space.
    pub failed_rewrites: Count,
    pub retries: Count,
    pub redispatches: Count,
    pub client_aborts: Count,
    pub server_aborts: Count,
    pub intercepted: Count,
    pub balanced: Count,
    pub connects: Count,
    pub reuses: Count,
    /// Milliseconds in the queue, connecting, until the response began, and in total.
    pub times: Averages,
    pub longest: [Peak; 4],
    /// The second of the last session, counted from 1 at the clock's zero.
    pub last_session: Count,
    pub session_rate: Rate,
    pub request_rate: Rate,
    pub connection_rate: Rate,
    /// From the first byte of a request to the head of its response; if measured.
    pub latency: LatencyCell,
}

/// Protocol-level counts that are not requests or responses of an object: health checks, connections without a request.
/// Also the values of the protocol's counters when they were last cleared: `clear counters` zeroes them, and not the
/// others.
#[derive(Debug, Default)]
pub struct ProtocolCounts {
    pub connections: Count,
    pub streams: Count,
    pub received: Count,
    pub sent: Count,
    cleared: [Count; 6],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolCounter {
    Connections,
    Streams,
    Received,
    Sent,
    SplicedIn,
    SplicedOut,
}

impl ProtocolCounter {
    const ALL: [Self; 6] =
        [Self::Connections, Self::Streams, Self::Received, Self::Sent, Self::SplicedIn, Self::SplicedOut];
}

impl ObjectCounters {
    /// Returns a counter of the protocol since it was cleared; `front`: of the client side.
    pub fn protocol_count(&self, which: ProtocolCounter, front: bool) -> u64 {
        self.protocol_total(which, front).wrapping_sub(self.protocol.cleared[which as usize].get())
    }

    fn protocol_total(&self, which: ProtocolCounter, front: bool) -> u64 {
        let extra = &self.protocol;
        let sum = |counts: &[&Count]| counts.iter().map(|count| count.get()).fold(0, u64::wrapping_add);
        match (which, front) {
            (ProtocolCounter::Connections, true) => sum(&[&self.sessions, &extra.connections]),
            (ProtocolCounter::Connections, false) => sum(&[&self.connects, &extra.connections]),
            (ProtocolCounter::Streams, true) => sum(&[&self.requests, &extra.streams]),
            (ProtocolCounter::Streams, false) => sum(&[&self.connects, &self.reuses, &extra.streams]),
            (ProtocolCounter::Received, true) => sum(&[&self.bytes_in, &extra.received]),
            (ProtocolCounter::Received, false) => sum(&[&self.received, &extra.received]),
            (ProtocolCounter::Sent, true) => sum(&[&self.bytes_out, &extra.sent]),
            (ProtocolCounter::Sent, false) => sum(&[&self.sent, &extra.sent]),
            (ProtocolCounter::SplicedIn, _) => self.spliced_in.get(),
            (ProtocolCounter::SplicedOut, _) => self.spliced_out.get(),
        }
    }

    /// Clears the protocol's counters.
    fn clear_protocol(&self, front: bool) {
        for which in ProtocolCounter::ALL {
            self.protocol.cleared[which as usize].set(self.protocol_total(which, front));
        }
    }

    /// Records the time of a session.
    #[inline]
    pub fn note_session(&self, now: Moment) {
        self.last_session.set(now.as_nanos() / 1_000_000_000 + 1);
    }

    fn peaks(&self) -> impl Iterator<Item = &Peak> {
        [&self.most_sessions, &self.most_queued].into_iter().chain(&self.longest)
    }

    fn counts(&self) -> impl Iterator<Item = &Count> {
        let counts = [
            &self.sessions,
            &self.connections,
            &self.requests,
            &self.bytes_in,
            &self.sent,
            &self.received,
            &self.bytes_out,
            &self.spliced_in,
            &self.spliced_out,
            &self.request_errors,
            &self.denied_connections,
            &self.denied_sessions,
            &self.denied_requests,
            &self.denied_responses,
            &self.connect_errors,
            &self.response_errors,
            &self.internal_errors,
            &self.failed_rewrites,
            &self.retries,
            &self.redispatches,
            &self.client_aborts,
            &self.server_aborts,
            &self.intercepted,
            &self.balanced,
            &self.connects,
            &self.reuses,
            &self.tls_sessions,
            &self.tls_resumed,
            &self.tls_failed,
        ];
        counts.into_iter().chain(&self.answers)
    }

    /// Clears the maxima, or everything; `front`: of the client side.
    fn clear(&self, all: bool, front: bool) {
        self.peaks().for_each(Peak::reset);
        let rates = [&self.session_rate, &self.request_rate, &self.connection_rate];
        rates.into_iter().for_each(Rate::reset_most);
        if all {
            rates.into_iter().for_each(Rate::reset);
            self.counts().for_each(|count| count.set(0));
            self.times.reset();
            self.last_session.set(0);
        }
        self.clear_protocol(front);
    }
}

/// The counts of a proxy as a frontend.
#[derive(Debug)]
pub struct FrontCounters {
    /// Its own.
    pub front: ObjectCounters,
    /// Its listening addresses.
    pub binds: AppendOnlyVec<ObjectCounters>,
    /// Connections that ended before their first byte, as those that browsers open in advance. As in HAProxy they
    /// are requests, request errors and 4xx responses as well.
    pub unused_connections: Count,
    /// Its HTTP/2 connections with clients.
    pub front_http2: Http2Counters,
    /// Its QUIC connections with clients.
    pub front_quic: LazyQuicCounters,
    /// Its lost datagrams and evicted flows.
    pub datagrams: LazyDatagramCounters,
    /// Bodies of its responses.
    pub front_content: ContentCounters,
}

impl FrontCounters {
    fn new(binds: usize) -> Self {
        Self {
            front: ObjectCounters::default(),
            binds: (0..binds).map(|_| ObjectCounters::default()).collect(),
            unused_connections: Count::default(),
            front_http2: Http2Counters::default(),
            front_quic: LazyQuicCounters::default(),
            datagrams: LazyDatagramCounters::default(),
            front_content: ContentCounters::default(),
        }
    }
}

/// The counters of the process.
#[derive(Debug, Default)]
pub struct ProcessCounters {
    pub connections: Count,
    pub requests: Count,
    /// Connections of the runtime API: accepted, and closed.
    pub commands_begun: Count,
    pub commands_ended: Count,
    pub bytes_out: Count,
    pub spliced_out: Count,
    pub connection_rate: Rate,
    pub session_rate: Rate,
    /// TLS connections, with clients and servers.
    pub tls_connections: Count,
    /// TLS handshakes with clients; key exchanges (new sessions) with clients, and with servers.
    pub tls_rate: Rate,
    pub front_key_rate: Rate,
    pub back_key_rate: Rate,
    /// In units of 32 bytes.
    pub bytes_out_rate: Rate,
    /// Bytes read and written by the compressor.
    pub compressor_in_rate: Rate,
    pub compressor_out_rate: Rate,
}

/// The counters of one worker.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerCounters {
    pub process: ProcessCounters,
    /// By proxy index.
    pub proxies: AppendOnlyVec<ProxyCounters>,
    /// By server serial.
    servers: AppendOnlyVec<lazy::ServerCounters>,
    /// Those of backends as frontends.
    unused: Arc<FrontCounters>,
}

impl WorkerCounters {
    fn new(binds: &[Option<usize>], servers: usize) -> Self {
        let unused = Arc::new(FrontCounters::new(0));
        let facing = |binds: &Option<usize>| match binds {
            Some(binds) => Arc::new(FrontCounters::new(*binds)),
            None => Arc::clone(&unused),
        };
        let proxies = binds.iter().map(|binds| ProxyCounters::new(facing(binds)));
        Self {
            process: ProcessCounters::default(),
            proxies: proxies.collect(),
            servers: (0..servers).map(|_| lazy::ServerCounters::default()).collect(),
            unused,
        }
    }

    /// Returns the counters of a server, to count in; allocates them.
    ///
    /// # Panics
    /// If there is no such server.
    #[inline]
    pub fn server(&self, serial: usize) -> &ObjectCounters {
        self.servers[serial].used()
    }

    /// Returns the counters of a server, to read; `None`: nothing was counted.
    pub fn known_server(&self, serial: usize) -> Option<&ObjectCounters> {
        self.servers.get(serial)?.known()
    }

    /// Clears the maxima, or everything (`clear counters`). Called by the worker itself.
    pub fn clear(&self, all: bool) {
        for proxy in &self.proxies {
            std::iter::once(&proxy.front).chain(&proxy.binds).for_each(|counters| counters.clear(all, true));
            if all {
                proxy.unused_connections.set(0);
                proxy.front_http2.clear();
                proxy.front_quic.known().into_iter().for_each(QuicCounters::clear);
                proxy.front_content.clear();
                let datagrams = proxy.datagrams.known().into_iter().flat_map(DatagramCounters::all);
                datagrams.for_each(|count| count.set(0));
            }
            proxy.served().into_iter().for_each(|counters| counters.clear(all));
        }
        self.servers.iter().filter_map(|server| server.known()).for_each(|counters| counters.clear(all, false));
        let process = &self.process;
        let of_tls = [&process.tls_rate, &process.front_key_rate, &process.back_key_rate];
        let rates = [&process.connection_rate, &process.session_rate].into_iter().chain(of_tls);
        rates.for_each(Rate::reset_most);
    }

    /// Clears all counters of one backend. Called by the worker itself.
    pub fn clear_backend(&self, index: usize) {
        if let Some(counters) = self.proxies.get(index).and_then(|proxy| proxy.served()) {
            counters.clear(true);
        }
    }

    /// Clears all counters of one server. Called by the worker itself.
    pub fn clear_server(&self, serial: usize) {
        if let Some(counters) = self.known_server(serial) {
            counters.clear(true, false);
        }
    }
}

/// The counters of all workers.
#[derive(Debug)]
pub struct Counters {
    /// One per worker, followed by the cells of other processes if counters are shared with them
    /// ([`Counters::of_others`]); no worker writes those.
    pub workers: Box<[Arc<WorkerCounters>]>,
    /// The last element belongs to other processes.
    is_shared: bool,
    /// Whether latency is measured.
    measures_latency: AtomicBool,
}

impl CounterSource for Counters {}

impl Counters {
    /// Zero everywhere. `binds`: the number of `bind` lines of each proxy (`None`: it is no frontend). `servers`: the number of servers
    /// over all backends.
    pub fn new(binds: &[Option<usize>], servers: usize, workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Arc::new(WorkerCounters::new(binds, servers))).collect(),
            is_shared: false,
            measures_latency: AtomicBool::new(false),
        }
    }

    /// The same, with cells for what other processes count.
    pub fn shared(binds: &[Option<usize>], servers: usize, workers: usize) -> Self {
        Self { is_shared: true, ..Self::new(binds, servers, workers + 1) }
    }

    /// Returns the workers' cells, and those of other processes; `None`: nothing is shared. Writers of the latter must
    /// be serialized.
    pub fn of_others(&self) -> Option<(&[Arc<WorkerCounters>], &WorkerCounters)> {
        let (others, workers) = self.workers.split_last().filter(|_| self.is_shared)?;
        Some((workers, others))
    }

    /// Starts or stops to measure latency. Each element of the returned iterator is an object that has switched; the
    /// caller must exhaust it. Switched are all frontends and backends, and the servers with the lowest serial numbers.
    pub fn switch_latency(&self, on: bool) -> impl Iterator<Item = ()> {
        self.measures_latency.store(on, Ordering::Relaxed);
        self.workers.iter().flat_map(move |worker| {
            let proxies = worker.proxies.iter().map(move |proxy| {
                [&proxy.front, proxy.back()].into_iter().for_each(|counters| counters.latency.measure(on));
            });
            let servers = worker.servers.iter().take(latency::MOST_SERVERS);
            proxies.chain(servers.map(move |server| server.used().latency.measure(on)))
        })
    }

    /// Starts to measure the latency of all objects.
    pub fn measure_latency(&self) {
        self.switch_latency(true).for_each(drop);
    }

    /// Whether latency is measured.
    pub fn measures_latency(&self) -> bool {
        self.measures_latency.load(Ordering::Relaxed)
    }

    /// Adds a server; false on failure: the lists of all workers must have the same indexes. Callers must be
    /// serialized.
    pub fn add_server(&self, serial: usize) -> bool {
        self.workers.iter().all(|worker| {
            let added = worker.servers.push(|_| lazy::ServerCounters::default()) == Ok(serial);
            if added && serial < latency::MOST_SERVERS && self.measures_latency() {
                worker.server(serial).latency.measure(true);
            }
            added
        })
    }

    /// One more proxy, without addresses, likewise.
    pub fn add_proxy(&self, index: usize, is_frontend: bool) -> bool {
        self.workers.iter().all(|worker| {
            let facing = match is_frontend {
                true => Arc::new(FrontCounters::new(0)),
                false => Arc::clone(&worker.unused),
            };
            let added = worker.proxies.push(|_| ProxyCounters::new(facing)) == Ok(index);
            if added && self.measures_latency() {
                worker.proxies[index].back().latency.measure(true);
            }
            added
        })
    }

    /// Adds a listening address of a proxy; likewise.
    pub fn add_bind(&self, proxy: usize, index: usize) -> bool {
        let add = |worker: &WorkerCounters| {
            worker.proxies.get(proxy).map(|proxy| proxy.binds.push(|_| ObjectCounters::default())) == Some(Ok(index))
        };
        self.workers.iter().all(|worker| add(worker))
    }

    /// Returns the counters of one object, one of each worker that has counted for it.
    pub fn of<'a>(&'a self, find: impl Fn(&'a WorkerCounters) -> Option<&'a ObjectCounters>) -> Sum<'a> {
        let mut sum = Sum { few: [None; FEW], more: Vec::new() };
        let mut places = sum.few.iter_mut();
        for counters in self.workers.iter().filter_map(|worker| find(worker)) {
            match places.next() {
                Some(place) => *place = Some(counters),
                None => sum.more.push(counters),
            }
        }
        sum
    }
}

impl Counters {
    /// Sums an HTTP/2 counter, of a proxy's connections with clients (`front`) or servers.
    pub fn http2(&self, proxy: usize, front: bool, of: impl Fn(&Http2Counters) -> &Count) -> u64 {
        self.workers.iter().map(|worker| worker.proxies[proxy].http2(front, &of)).fold(0, u64::wrapping_add)
    }

    /// Sums a counter of QUIC, of a proxy's connections with clients (`front`) or servers.
    pub fn quic(&self, proxy: usize, front: bool, of: impl Fn(&QuicCounters) -> &Count) -> u64 {
        let counters = self.workers.iter().filter_map(|worker| worker.proxies[proxy].quic(front));
        counters.map(|counters| of(counters).get()).fold(0, u64::wrapping_add)
    }

    /// Sums the counters of datagrams of a `udp-lb` section, in the order of [`DatagramCounters::NAMES`].
    pub fn datagrams(&self, proxy: usize) -> [u64; DatagramCounters::NAMES.len()] {
        let mut sums = [0_u64; DatagramCounters::NAMES.len()];
        for counters in self.workers.iter().filter_map(|worker| worker.proxies[proxy].datagrams.known()) {
            sums.iter_mut().zip(counters.all()).for_each(|(sum, count)| *sum = sum.wrapping_add(count.get()));
        }
        sums
    }

    /// Sums the connections of a frontend that ended before their first byte.
    pub fn unused_connections(&self, proxy: usize) -> u64 {
        self.workers.iter().map(|worker| worker.proxies[proxy].unused_connections.get()).fold(0, u64::wrapping_add)
    }

    /// Sums a counter of bodies, of a frontend (`front`) or a backend.
    pub fn content(&self, proxy: usize, front: bool, of: impl Fn(&ContentCounters) -> &Count) -> u64 {
        self.workers.iter().map(|worker| worker.proxies[proxy].content(front, &of)).fold(0, u64::wrapping_add)
    }

    /// Sums a counter of the process.
    pub fn process(&self, of: impl Fn(&ProcessCounters) -> &Count) -> u64 {
        self.workers.iter().map(|worker| of(&worker.process).get()).sum()
    }

    /// Returns a current rate of the process, and its maximum per second.
    pub fn process_rate(&self, now: Moment, of: impl Fn(&ProcessCounters) -> &Rate) -> (f64, u64) {
        let parts: Vec<&Rate> = self.workers.iter().map(|worker| of(&worker.process)).collect();
        (Rate::read(now, parts.iter().copied()), Rate::most(now, parts.iter().copied()))
    }
}

/// Number of workers up to which adding up their counters does not allocate.
const FEW: usize = 8;

/// The counters of one object from all workers, to be added up. Created for each object by the statistics, and for each
/// line by the exporter.
#[derive(Debug, Clone)]
pub struct Sum<'a> {
    few: [Option<&'a ObjectCounters>; FEW],
    more: Vec<&'a ObjectCounters>,
}

impl<'a> Sum<'a> {
    fn parts(&self) -> impl Iterator<Item = &'a ObjectCounters> {
        self.few.iter().flatten().chain(&self.more).copied()
    }

    pub fn count(&self, of: impl Fn(&'a ObjectCounters) -> &'a Count) -> u64 {
        // The cells of other processes may temporarily be below zero.
        self.parts().map(|counters| of(counters).get()).fold(0, u64::wrapping_add)
    }

    /// Sums a counter of the protocol; `front`: of the client side.
    pub fn protocol(&self, which: ProtocolCounter, front: bool) -> u64 {
        self.parts().map(|counters| counters.protocol_count(which, front)).fold(0, u64::wrapping_add)
    }

    pub fn peak(&self, of: impl Fn(&'a ObjectCounters) -> &'a Peak) -> u64 {
        self.parts().map(|counters| of(counters).get()).max().unwrap_or(0)
    }

    /// Events in the last second.
    pub fn rate(&self, now: Moment, of: impl Fn(&'a ObjectCounters) -> &'a Rate) -> f64 {
        Rate::read(now, self.parts().map(of))
    }

    /// Current sessions, for objects without a gate that counts them.
    pub fn running(&self) -> u64 {
        self.count(|counters| &counters.begun).saturating_sub(self.count(|counters| &counters.ended))
    }

    /// The maximum number of events per second.
    pub fn most(&self, now: Moment, of: impl Fn(&'a ObjectCounters) -> &'a Rate + Clone) -> u64 {
        let parts: Vec<&Rate> = self.parts().map(of).collect();
        Rate::most(now, parts.iter().copied())
    }

    /// Returns one of the averages of [`ObjectCounters::times`].
    pub fn average(&self, which: usize) -> u64 {
        Averages::of(which, self.parts().map(|counters| &counters.times))
    }

    /// The latencies of the last seconds.
    pub fn latencies(&self, now: Moment) -> LatencySum {
        let mut sum = LatencySum::default();
        self.parts().filter_map(|counters| counters.latency.get()).for_each(|latencies| sum.add(latencies, now));
        sum
    }

    /// Seconds since the last session.
    pub fn idle_seconds(&self, now: Moment) -> Option<u64> {
        let last = self.parts().map(|counters| counters.last_session.get()).max().filter(|last| *last > 0)?;
        Some((now.as_nanos() / 1_000_000_000 + 1).saturating_sub(last))
    }
}
