//! The log state of the process, independent of configurations: sinks, relays, log backends, counters. All workers share it. Must
//! never hold anything of one worker, or of one configuration.

use base::AppendOnlyVec;
use bumpalo::Bump;
use config::spec::{LogHost, Mode};
use expression::sample::Sink;
use live::trace::TraceSink;
use live::{Live, ServerPlace};
use policy::program::{self, LogForward, Program, Proxy, Server};
use rt::Output;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use wire::syslog::relay::HostStrategy;
use wire::syslog::{Format, Timestamp};

use crate::generation::Generation;
use crate::routes::ring::Ring;
use crate::routes::sinks::{LogSink, LogSinks, OpenPhase, SinkError};
use crate::routes::{LogRoutes, Opening, Target, header_format};
use crate::telemetry::Channel;

use super::balance::Balance;
use super::tap::Tap;
use super::telemetry::LogChannel;

/// The log of a process.
#[derive(Debug)]
pub struct Targets {
    /// Destinations of lines.
    pub(super) sinks: LogSinks,
    /// Targets of the newest configuration.
    newest: RwLock<Arc<LogRoutes>>,
    /// Relays, by their index in the program.
    pub(crate) relays: Box<[Relay]>,
    /// Messages received by relays: the counter CumRecvLogs.
    received: AtomicU64,
    /// Backends in `mode log`, by index of the proxy; empty for other proxies.
    backends: AppendOnlyVec<OnceLock<Box<Balance>>>,
    /// The tag if no configuration sets one.
    name: Box<str>,
    pub(crate) hostname: Box<str>,
    /// `tune.sndbuf.backend`, in bytes.
    pub(super) send_buffer: Option<usize>,
    /// Descriptors that events are written to, with their numbers.
    event_outputs: Box<[(i32, Output)]>,
    /// Destination of log records.
    pub(super) channel: LogChannel,
    /// Readers of live lines.
    pub(super) tap: Tap,
}

/// A relay of log messages (`log-forward`).
#[derive(Debug)]
pub(crate) struct Relay {
    /// Its targets, each with the message format; `None`: the format of the target.
    pub(super) targets: Box<[(Target, Option<Format>)]>,
    /// Messages are not parsed.
    pub(super) unparsed: bool,
    pub(super) strategy: HostStrategy,
    /// Number of open connections.
    pub(super) open: AtomicU32,
}

impl Relay {
    fn new(written: &LogForward, opening: &mut Opening<'_>) -> Self {
        let targets = written.targets.iter().filter_map(|(target, format)| {
            let target = Target::new(target, None, opening)?;
            Some((target, format.map(header_format)))
        });
        Self {
            targets: targets.collect(),
            unparsed: written.unparsed,
            strategy: match written.host {
                // Unparsed messages have no known host field.
                _ if written.unparsed => HostStrategy::Keep,
                LogHost::Replace => HostStrategy::Replace,
                LogHost::Fill => HostStrategy::Fill,
                LogHost::Keep => HostStrategy::Keep,
                LogHost::Append => HostStrategy::Append,
            },
            open: AtomicU32::new(0),
        }
    }
}

impl Targets {
    /// Opens the log of a process that starts with that configuration. `name` is the tag if `log-tag` sets none. Descriptors are
    /// opened here, so a daemon calls this once its standard streams are final, and before it changes its root directory; the
    /// time zone's rules are read here for the same reason. Returns the targets and the problems: lines for a descriptor that
    /// could not be opened are dropped.
    pub fn open(generation: &Generation, live: &Arc<Live>, name: &str) -> (Self, Vec<SinkError>) {
        rt::local_offset(0);
        let program = &*generation.program;
        let (mut targets, mut errors) = Self::assemble(&program.rings, name);
        targets.hostname = hostname();
        targets.send_buffer = program.global.datagram_send_buffer.map(|bytes| bytes as usize);
        let mut opening = targets.opening(OpenPhase::Start);
        // At start, everything can be opened.
        let routes = LogRoutes::of(program, None, &mut opening).unwrap_or_else(|_| LogRoutes::nowhere());
        let relays = program.log_forwards.iter().map(|forward| Relay::new(forward, &mut opening)).collect();
        errors.append(&mut opening.errors);
        let backend = |proxy: &Arc<Proxy>| match proxy.mode {
            Mode::Log => Box::new(Balance::new(generation, live, proxy, &targets.sinks, OpenPhase::Start)).into(),
            _ => OnceLock::new(),
        };
        let backends = program.proxies.iter().map(backend).collect();
        let mut open = |number: &i32| match Output::open(*number) {
            Ok(output) => Some((*number, output)),
            Err(error) => {
                errors.push(SinkError::Descriptor(*number, error));
                None
            }
        };
        let event_outputs = program.event_descriptors.iter().filter_map(&mut open).collect();
        targets.follow(Arc::new(routes));
        (Self { relays, backends, event_outputs, ..targets }, errors)
    }

    /// Creates a log without sinks except its rings.
    pub(super) fn assemble(rings: &[program::Ring], name: &str) -> (Self, Vec<SinkError>) {
        let mut errors = Vec::new();
        let mut open = |ring: &program::Ring| {
            let opened = Ring::open(ring).unwrap_or_else(|error| {
                let path = ring.backing_file.clone().unwrap_or_default();
                errors.push(SinkError::Ring(path, ring.name.clone(), error));
                Ring::new(ring)
            });
            Arc::new(opened)
        };
        let targets = Self {
            sinks: LogSinks::new(rings.iter().map(&mut open).collect()),
            newest: RwLock::new(Arc::new(LogRoutes::nowhere())),
            relays: Box::default(),
            received: AtomicU64::new(0),
            backends: AppendOnlyVec::default(),
            name: name.into(),
            hostname: "".into(),
            send_buffer: None,
            event_outputs: Box::default(),
            channel: LogChannel::default(),
            tap: Tap::new(),
        };
        (targets, errors)
    }

    pub(super) fn opening(&self, when: OpenPhase) -> Opening<'_> {
        Opening { sinks: &self.sinks, when, tag: &self.name, host: &self.hostname, errors: Vec::new() }
    }

    /// Returns the targets of the newest configuration. Takes a lock.
    pub fn newest(&self) -> Arc<LogRoutes> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Creates the targets of a configuration that is to be served; nothing is logged to them yet.
    ///
    /// # Errors
    /// The target that can no longer be opened.
    pub(crate) fn prepare(&self, program: &Program) -> Result<Arc<LogRoutes>, String> {
        let mut opening = self.opening(OpenPhase::Serving);
        LogRoutes::of(program, Some(&self.newest()), &mut opening).map(Arc::new)
    }

    /// Makes these targets the newest.
    pub(crate) fn follow(&self, routes: Arc<LogRoutes>) {
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = routes;
    }

    /// Adds the targets of a backend that the runtime API adds. Returns false if one is not open, or there is no capacity.
    pub fn add(&self, proxy: &Proxy) -> bool {
        let mut opening = self.opening(OpenPhase::Serving);
        self.newest().add(proxy, &mut opening) && self.add_backend(proxy.index)
    }

    /// Adds an entry for the lines of an added proxy. Returns false if it is not the next one.
    pub(crate) fn add_backend(&self, index: usize) -> bool {
        self.backends.push(|_| OnceLock::new()) == Ok(index)
    }

    /// Starts sending lines to an added proxy in `mode log`.
    pub(crate) fn begin(&self, generation: &Generation, live: &Arc<Live>, proxy: &Proxy) {
        if let Some(backend) = self.backends.get(proxy.index).filter(|_| proxy.mode == Mode::Log) {
            backend.get_or_init(|| Box::new(Balance::new(generation, live, proxy, &self.sinks, OpenPhase::Serving)));
        }
    }

    /// Adds a sink for a server that is added to a proxy in `mode log`. Returns false if there is no capacity.
    pub(crate) fn add_server(&self, proxy: &Proxy, server: &Server) -> bool {
        let Some(balance) = self.backends.get(proxy.index).and_then(OnceLock::get) else { return true };
        balance.add(server.index, self.sinks.server(server, OpenPhase::Serving))
    }

    /// Removes the sink of a removed server: its buffered lines are sent, then its connection ends.
    pub(crate) fn forget_server(&self, place: ServerPlace) {
        if let Some(balance) = self.backends.get(place.proxy).and_then(OnceLock::get) {
            balance.forget(place.server);
        }
    }

    /// Changes the address of a log server, for the next lines or the next connection.
    pub fn move_server(&self, place: ServerPlace, address: SocketAddr) {
        let balance = self.backends.get(place.proxy).and_then(OnceLock::get);
        let sink = balance.and_then(|balance| balance.sink(place.server));
        sink.into_iter().for_each(|sink| sink.move_to(address));
    }

    /// Chooses the sink of a backend in `mode log` for a line; `None`: none is available.
    pub(super) fn choose(&self, backend: usize, line: &[u8], arena: &mut Bump) -> Option<Arc<LogSink>> {
        self.backends.get(backend)?.get()?.choose(line, arena)
    }

    /// Returns the number of lines dropped since the start: the counter DroppedLogs.
    pub fn dropped(&self) -> u64 {
        self.sinks.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of messages received by relays since the start: the counter CumRecvLogs.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn count_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, lines: usize) {
        self.sinks.count_dropped(lines);
    }

    /// Returns the rings that have a name.
    pub fn named_rings(&self) -> impl Iterator<Item = Arc<Ring>> {
        self.numbered_rings().map(|(_, ring)| ring)
    }

    fn numbered_rings(&self) -> impl Iterator<Item = (usize, Arc<Ring>)> {
        let rings = self.sinks.all_rings().into_iter();
        rings.filter(|(_, ring)| !ring.name().is_empty() && !ring.is_closed())
    }

    /// Returns the sinks that events can be written to: name, sink, description.
    pub fn trace_sinks(&self) -> Vec<(String, TraceSink, String)> {
        let standard = [("stdout", 1), ("stderr", 2)];
        let standard = standard.map(|(name, number)| {
            (name.to_owned(), TraceSink::Descriptor(number), format!("standard output (fd#{number})"))
        });
        let rings = self.numbered_rings().filter_map(|(number, ring)| {
            let number = u32::try_from(number).ok()?;
            Some((ring.name().to_owned(), TraceSink::Ring(number), ring.description().to_owned()))
        });
        standard.into_iter().chain(rings).collect()
    }

    /// Sets the channel for log records.
    pub(crate) fn set_channel(&self, channel: Option<Arc<Channel>>) {
        self.channel.set(channel);
    }

    /// Returns the largest number of sinks that existed at one time.
    pub fn most_sinks(&self) -> usize {
        self.sinks.most()
    }

    /// Whether a server of a ring has not received every line yet.
    pub fn is_behind(&self) -> bool {
        self.sinks.all_rings().iter().any(|(_, ring)| ring.is_behind())
    }

    /// Writes an event line in the sink's format. It never waits: if the sink has no free space, the line is dropped.
    pub fn tell(&self, sink: Sink, line: &[u8]) {
        match sink {
            Sink::Descriptor(number) => {
                let Some((_, output)) = self.event_outputs.iter().find(|known| known.0 == number) else { return };
                if output.write(&[line, b"\n"].concat()).is_err() {
                    self.count_dropped(1);
                }
            }
            Sink::Ring(number) => {
                let Some(ring) = self.sinks.ring(number) else { return };
                let (wall, mut now, mut event) = (rt::wall(), Timestamp::default(), Vec::new());
                now.set(wall.seconds, wall.nanos, rt::local_offset(wall.seconds));
                let format = ring.format().map_or(Format::Raw, header_format);
                format.write_event(self.newest().settings.named_host.as_deref(), &now, &mut event);
                event.extend_from_slice(line);
                self.count_dropped(ring.append(std::iter::once(event.as_slice())));
            }
        }
    }
}

/// Returns this host's name from the kernel; `localhost` if it cannot be read.
pub fn hostname() -> Box<str> {
    match std::fs::read_to_string("/proc/sys/kernel/hostname") {
        Ok(name) if !name.trim().is_empty() => name.trim().into(),
        _ => "localhost".into(),
    }
}
