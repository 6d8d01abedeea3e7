//! What the process has of its log, whatever configuration is served: its sinks, relays, backends of lines, and counts.
//! Shared by all workers. Must never hold what belongs to one worker, or to one configuration.

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
    /// What takes lines.
    pub(super) sinks: LogSinks,
    /// Where the lines of the newest configuration go.
    newest: RwLock<Arc<LogRoutes>>,
    /// Relays, as the program counts them.
    pub(crate) relays: Box<[Relay]>,
    /// Messages that relays have taken: the counter CumRecvLogs.
    received: AtomicU64,
    /// Backends in `mode log`, by the index of the proxy; nothing is set for other proxies.
    backends: AppendOnlyVec<OnceLock<Box<Balance>>>,
    /// The tag where no configuration sets one.
    name: Box<str>,
    /// This host's name.
    pub(crate) hostname: Box<str>,
    /// `tune.sndbuf.backend`, bytes.
    pub(super) send_buffer: Option<usize>,
    /// Descriptors that events go to, with their numbers.
    event_outputs: Box<[(i32, Output)]>,
    /// Where log records go.
    pub(super) channel: LogChannel,
    /// For those who look at lines while they come.
    pub(super) tap: Tap,
}

/// A relay of log lines.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Its targets, and the form in which each gets messages; `None`: their own.
    pub(super) targets: Box<[(Target, Option<Format>)]>,
    /// Messages are not looked into.
    pub(super) unparsed: bool,
    pub(super) strategy: HostStrategy,
    /// Connections that are open.
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
                // Nothing is known of a name in what is not looked into.
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
    /// The log of a process that begins with that configuration. `name` is the tag where `log-tag` sets none. Descriptors are
    /// opened here, so that a daemon calls this once its standard streams are what they will be, and before it changes its root
    /// directory; the time zone's rules are read for the same reason. Problems come back beside the targets: what would go to such
    /// a descriptor is dropped.
    pub fn open(generation: &Generation, live: &Arc<Live>, name: &str) -> (Self, Vec<SinkError>) {
        rt::local_offset(0);
        let program = &*generation.program;
        let (mut targets, mut errors) = Self::assemble(&program.rings, name);
        targets.hostname = hostname();
        targets.send_buffer = program.global.datagram_send_buffer.map(|bytes| bytes as usize);
        let mut opening = targets.opening(OpenPhase::Start);
        // Everything can be opened at the start.
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

    /// A log without any sink but its rings.
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

    /// Where the lines of the newest configuration go. It locks.
    pub fn newest(&self) -> Arc<LogRoutes> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the lines of a configuration go that is to be served; nothing goes there yet.
    ///
    /// # Errors
    /// What cannot be opened any more.
    pub(crate) fn prepare(&self, program: &Program) -> Result<Arc<LogRoutes>, String> {
        let mut opening = self.opening(OpenPhase::Serving);
        LogRoutes::of(program, Some(&self.newest()), &mut opening).map(Arc::new)
    }

    /// The newest configuration is another one.
    pub(crate) fn follow(&self, routes: Arc<LogRoutes>) {
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = routes;
    }

    /// Where a backend logs that the runtime API adds. False: what it logs to is not open, or there is no room.
    pub fn add(&self, proxy: &Proxy) -> bool {
        let mut opening = self.opening(OpenPhase::Serving);
        self.newest().add(proxy, &mut opening) && self.add_backend(proxy.index)
    }

    /// Makes room for the lines of a proxy that comes. False: it is not the next one.
    pub(crate) fn add_backend(&self, index: usize) -> bool {
        self.backends.push(|_| OnceLock::new()) == Ok(index)
    }

    /// Has a proxy that was added, in `mode log`, get lines from now on.
    pub(crate) fn begin(&self, generation: &Generation, live: &Arc<Live>, proxy: &Proxy) {
        if let Some(backend) = self.backends.get(proxy.index).filter(|_| proxy.mode == Mode::Log) {
            backend.get_or_init(|| Box::new(Balance::new(generation, live, proxy, &self.sinks, OpenPhase::Serving)));
        }
    }

    /// Gives a server that is added a sink, where its proxy is in `mode log`. False: there is no room.
    pub(crate) fn add_server(&self, proxy: &Proxy, server: &Server) -> bool {
        let Some(balance) = self.backends.get(proxy.index).and_then(OnceLock::get) else { return true };
        balance.add(server.index, self.sinks.server(server, OpenPhase::Serving))
    }

    /// A server that was removed gets no more lines: what waits for it is sent, and its connection ends.
    pub(crate) fn forget_server(&self, (proxy, server): ServerPlace) {
        if let Some(balance) = self.backends.get(proxy).and_then(OnceLock::get) {
            balance.forget(server);
        }
    }

    /// A server of log lines is somewhere else from now on: the next lines, or the next connection, go there.
    pub fn move_server(&self, (proxy, server): ServerPlace, address: SocketAddr) {
        let sink = self.backends.get(proxy).and_then(OnceLock::get).and_then(|balance| balance.sink(server));
        sink.into_iter().for_each(|sink| sink.move_to(address));
    }

    /// The sink of a backend in `mode log` that a line goes to; `None`: there is none for it.
    pub(super) fn choose(&self, backend: usize, line: &[u8], arena: &mut Bump) -> Option<Arc<LogSink>> {
        self.backends.get(backend)?.get()?.choose(line, arena)
    }

    /// Lines that were dropped since the start: the counter DroppedLogs.
    pub fn dropped(&self) -> u64 {
        self.sinks.dropped.load(Ordering::Relaxed)
    }

    /// Messages that relays have taken since the start: the counter CumRecvLogs.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn count_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, lines: usize) {
        self.sinks.count_dropped(lines);
    }

    /// Rings that have a name.
    pub fn named_rings(&self) -> impl Iterator<Item = Arc<Ring>> {
        self.numbered_rings().map(|(_, ring)| ring)
    }

    fn numbered_rings(&self) -> impl Iterator<Item = (usize, Arc<Ring>)> {
        let rings = self.sinks.all_rings().into_iter();
        rings.filter(|(_, ring)| !ring.name().is_empty() && !ring.is_closed())
    }

    /// The sinks that events can go to: name, sink, what it is.
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

    /// Log records go there from now on.
    pub(crate) fn set_channel(&self, channel: Option<Arc<Channel>>) {
        self.channel.set(channel);
    }

    /// How many sinks that take lines there were at one time, at most: what a worker may have lines for.
    pub fn most_sinks(&self) -> usize {
        self.sinks.most()
    }

    /// Whether a server of a ring has not got every line yet.
    pub fn is_behind(&self) -> bool {
        self.sinks.all_rings().iter().any(|(_, ring)| ring.is_behind())
    }

    /// Writes a line about an event, as the sink wants it. It never waits: a sink without free space gets none.
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

/// This host's name, as the kernel knows it; `localhost` where it cannot be read.
pub fn hostname() -> Box<str> {
    match std::fs::read_to_string("/proc/sys/kernel/hostname") {
        Ok(name) if !name.trim().is_empty() => name.trim().into(),
        _ => "localhost".into(),
    }
}
