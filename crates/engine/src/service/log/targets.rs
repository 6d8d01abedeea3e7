//! Where the lines of each proxy go: compiled from the program once, then shared by all workers. Must never hold what
//! belongs to one worker.

use base::AppendOnlyVec;
use bumpalo::Bump;
use config::spec::{LogFormatSpec, LogHost, LogLevel, Mode, SyslogFormat};
use expression::log_format::LogFormat;
use expression::sample::Sink;
use live::Live;
use live::trace::TraceSink;
use policy::program::{
    self, LogAddress, LogForward, LogLines, LogMoment, LogProfile, LogServer, LogTarget, Proxy, Server,
};
use rt::Output;
use rt::net::Address;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wire::syslog::relay::HostStrategy;
use wire::syslog::{Format, Timestamp};

use crate::generation::Generation;
use crate::telemetry::Channel;

use super::balance::Balance;
use super::ring::Ring;
use super::sampling::Sampling;
use super::tap::Tap;
use super::telemetry::LogChannel;

/// All targets of a program.
#[derive(Debug)]
pub struct Targets {
    /// Each proxy's own, by its index.
    pub(super) proxies: AppendOnlyVec<Route>,
    /// The process's.
    pub(super) process: Route,
    /// Those of FastCGI applications, by section; then those of agents, by engine.
    pub(super) applications: Box<[Route]>,
    /// Where those of agents begin.
    pub(super) first_agent: usize,
    /// Those of agents that a reload in place has added.
    pub(super) later_agents: AppendOnlyVec<Route>,
    /// `log-profile` sections, as the program counts them.
    pub(super) profiles: Box<[LogProfile]>,
    /// Each place once, however many proxies send there.
    pub(super) places: AppendOnlyVec<LineTarget>,
    /// What the first of these stand for.
    pub(super) addresses: Box<[LogAddress]>,
    /// Rings, as the program counts them.
    pub(super) rings: Box<[Ring]>,
    /// Relays, as the program counts them.
    pub(crate) relays: Box<[Relay]>,
    /// Messages that relays have taken: the counter CumRecvLogs.
    received: AtomicU64,
    /// Backends in `mode log`, by the index of the proxy; nothing is set for other proxies.
    pub(super) backends: AppendOnlyVec<OnceLock<Balance>>,
    /// What headers call this host; `None`: they do not name it.
    pub(super) named_host: Option<Box<str>>,
    /// This host's name.
    pub(crate) hostname: Box<str>,
    /// `tune.http.logurilen`.
    pub(super) request_limit: usize,
    /// `tune.sndbuf.backend`, bytes.
    pub(super) send_buffer: Option<usize>,
    /// Descriptors that events go to, with their numbers.
    event_outputs: Box<[(i32, Output)]>,
    dropped: AtomicU64,
    /// Where log records go.
    pub(super) channel: LogChannel,
    /// For those who look at lines while they come.
    pub(super) tap: Tap,
}

/// Where the lines of a proxy or relay go, and what they look like.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) lines: LogLines,
    /// When its lines are written.
    pub(super) moment: LogMoment,
    pub(super) tag: Box<str>,
    pub(super) targets: Box<[Target]>,
    /// The format tells the address that the client connected to, which costs a system call to know.
    pub(super) tells_destination: bool,
    /// The format tells the address that the connection to the server comes from, which costs another one.
    pub(super) tells_backend_source: bool,
    /// A format tells the unique identifier.
    pub(super) tells_identifier: bool,
    /// A format holds expressions.
    pub(super) has_expressions: bool,
    /// A format tells what the kernel knows of a connection.
    pub(super) asks_kernel: bool,
    /// Lines so far (`%lc`).
    count: AtomicU32,
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
    fn new(written: &LogForward, places: &mut Places) -> Self {
        let targets = written.targets.iter();
        Self {
            targets: targets
                .map(|(target, format)| {
                    (Target::new(target, |address| places.destination(address)), format.map(header_format))
                })
                .collect(),
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

/// One `log` line.
#[derive(Debug)]
pub(super) struct Target {
    /// Where its lines go.
    pub(super) destination: Destination,
    pub(super) length: usize,
    pub(super) format: Format,
    pub(super) facility: u8,
    /// Index of its profile.
    pub(super) profile: Option<usize>,
    max_level: LogLevel,
    min_level: LogLevel,
    sampling: Option<Sampling>,
}

/// What a `log` line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// A target, by its index.
    Target(usize),
    /// A backend in `mode log`, by its index: it chooses one of its places for each line.
    Backend(usize),
}

/// One target of lines.
#[derive(Debug)]
pub(super) enum LineTarget {
    /// Datagrams to an address.
    Address(Address),
    /// A shared descriptor; `None`: it is not open.
    Output(Option<Output>),
    /// A ring, by its index.
    Ring(usize),
    /// A collector, as log records.
    Telemetry,
    /// Datagrams to a server of a backend in `mode log`, by its serial number: it may move.
    Server(usize, Mutex<Address>),
}

/// The places so far: each address once, then servers.
#[derive(Debug, Default)]
pub(super) struct Places {
    addresses: Vec<LogAddress>,
    opened: Vec<LineTarget>,
    problems: Vec<Problem>,
}

/// What could not be opened, and why.
#[derive(Debug)]
pub enum Problem {
    /// A descriptor, by its number: what would go there is dropped.
    Descriptor(i32, io::Error),
    /// The file behind a ring: its path, the ring's name. Nothing can be served then.
    Ring(Box<str>, Box<str>, io::Error),
}

/// What a proxy or relay logs, before the places are known.
pub(super) struct Plan<'a> {
    pub(super) targets: &'a [LogTarget],
    pub(super) tag: &'a str,
    pub(super) lines: LogLines,
}

impl Targets {
    /// The targets of a program. `name` is the tag where `log-tag` sets none. Descriptors are opened here, so that a
    /// daemon calls this once its standard streams are what they will be, and before it changes its root directory; the
    /// time zone's rules are read for the same reason. Problems come back beside the targets: what would go to such a
    /// descriptor is dropped.
    pub fn open(generation: &Generation, live: &Arc<Live>, name: &str) -> (Self, Vec<Problem>) {
        rt::local_offset(0);
        let program = &*generation.program;
        let global = &program.global;
        let tag = global.log_tag.as_deref().unwrap_or(name);
        let lines = LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Tcp));
        let process = Plan { targets: &global.logs, tag, lines };
        let proxies = program.proxies.iter().map(|proxy| Plan {
            targets: &proxy.logs,
            tag: proxy.log_tag.as_deref().unwrap_or(tag),
            lines: proxy.log_lines.clone(),
        });
        let hostname = hostname();
        let named_host =
            global.log_send_hostname.as_ref().map(|given| given.clone().unwrap_or_else(|| hostname.clone()));
        let spare = program.spare_logs.iter().flatten();
        let applications = program.fcgi_logs.iter().map(|log| Plan {
            targets: &log.targets,
            tag: &log.name,
            lines: LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Tcp)),
        });
        let agents = program.spoe_logs.iter().map(|log| Plan {
            targets: &log.targets,
            tag,
            lines: LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Tcp)),
        });
        let applications = applications.chain(agents);
        let (targets, mut problems) =
            Self::assemble(process, (proxies, applications), &program.rings, &program.log_forwards, spare, |places| {
                let backend = |proxy: &Proxy| {
                    let mut add = |place| Some(places.add(place));
                    (proxy.mode == Mode::Log).then(|| Balance::new(generation, live, proxy, &mut add))
                };
                program.proxies.iter().map(|proxy| &**proxy).map(backend).collect()
            });
        let send_buffer = global.datagram_send_buffer.map(|bytes| bytes as usize);
        let profiles = program.profiles.clone();
        let mut open = |number: &i32| match Output::open(*number) {
            Ok(output) => Some((*number, output)),
            Err(error) => {
                problems.push(Problem::Descriptor(*number, error));
                None
            }
        };
        let event_outputs = program.event_descriptors.iter().filter_map(&mut open).collect();
        let request_limit = global.logurilen;
        let first_agent = program.fcgi_logs.len();
        let mut targets =
            Self { profiles, first_agent, named_host, hostname, request_limit, send_buffer, event_outputs, ..targets };
        for place in 0..targets.proxies.places() {
            if let Some(route) = targets.proxies.get_mut(place) {
                route.note_profiles(&targets.profiles);
            }
        }
        (targets, problems)
    }

    /// The targets of a process and its proxies, without what only a configuration tells.
    pub(super) fn assemble<'a>(
        process: Plan<'a>,
        (proxies, applications): (impl Iterator<Item = Plan<'a>>, impl Iterator<Item = Plan<'a>>),
        rings: &[program::Ring],
        forwards: &[LogForward],
        spare: impl Iterator<Item = &'a LogTarget>,
        backends: impl FnOnce(&mut Places) -> Box<[Option<Balance>]>,
    ) -> (Self, Vec<Problem>) {
        let mut places = Places::default();
        let process = Route::new(process, |address| places.destination(address));
        let proxies = proxies.map(|plan| Route::new(plan, |address| places.destination(address))).collect();
        let applications = applications.map(|plan| Route::new(plan, |address| places.destination(address))).collect();
        // For backends that are added: nothing can be opened then.
        for target in spare {
            places.destination(&target.address);
        }
        let relays = forwards.iter().map(|forward| Relay::new(forward, &mut places)).collect();
        let backends =
            backends(&mut places).into_iter().map(|own| own.map_or_else(OnceLock::new, OnceLock::from)).collect();
        let Places { addresses, opened, mut problems } = places;
        let places = opened.into();
        let mut open = |ring: &program::Ring| {
            Ring::open(ring).unwrap_or_else(|error| {
                let path = ring.backing_file.clone().unwrap_or_default();
                problems.push(Problem::Ring(path, ring.name.clone(), error));
                Ring::new(ring)
            })
        };
        let rings = rings.iter().map(&mut open).collect();
        let (hostname, request_limit, dropped) = ("".into(), 1024, AtomicU64::new(0));
        (
            Self {
                profiles: Box::default(),
                proxies,
                process,
                applications,
                first_agent: 0,
                later_agents: AppendOnlyVec::default(),
                places,
                addresses: addresses.into(),
                rings,
                relays,
                received: AtomicU64::new(0),
                backends,
                named_host: None,
                hostname,
                request_limit,
                send_buffer: None,
                event_outputs: Box::default(),
                dropped,
                channel: LogChannel::default(),
                tap: Tap::new(),
            },
            problems,
        )
    }

    /// Lines that were dropped since the start: the counter DroppedLogs.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Messages that relays have taken since the start: the counter CumRecvLogs.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn count_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// Rings that have a name.
    pub fn named_rings(&self) -> impl Iterator<Item = &Ring> {
        self.rings.iter().filter(|ring| !ring.name().is_empty())
    }

    /// The sinks that events can go to: name, place, what it is.
    pub fn trace_sinks(&self) -> Vec<(String, TraceSink, String)> {
        let standard = [("stdout", 1), ("stderr", 2)];
        let standard = standard.map(|(name, number)| {
            (name.to_owned(), TraceSink::Descriptor(number), format!("standard output (fd#{number})"))
        });
        let rings = self.rings.iter().zip(0..).filter(|(ring, _)| !ring.name().is_empty());
        let rings = rings
            .map(|(ring, number)| (ring.name().to_owned(), TraceSink::Ring(number), ring.description().to_owned()));
        standard.into_iter().chain(rings).collect()
    }

    /// Log records go there from now on.
    pub(crate) fn set_channel(&self, channel: Option<Arc<Channel>>) {
        self.channel.set(channel);
    }

    /// Whether what goes to a place are log records.
    pub(super) fn takes_records(&self, place: usize) -> bool {
        matches!(self.places.get(place), Some(LineTarget::Telemetry))
    }

    /// Whether a server of a ring has not got every line yet.
    pub fn is_behind(&self) -> bool {
        self.rings.iter().any(Ring::is_behind)
    }

    /// The place that a line goes to; `None`: there is none for it.
    pub(super) fn place(&self, destination: Destination, line: &[u8], arena: &mut Bump) -> Option<usize> {
        match destination {
            Destination::Target(place) => Some(place),
            Destination::Backend(proxy) => self.backends.get(proxy)?.get()?.choose(line, arena),
        }
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
            Sink::Ring(index) => {
                let Some(ring) = self.rings.get(index) else { return };
                let (wall, mut now, mut event) = (rt::wall(), Timestamp::default(), Vec::new());
                now.set(wall.seconds, wall.nanos, rt::local_offset(wall.seconds));
                let format = ring.format().map_or(Format::Raw, header_format);
                format.write_event(self.named_host.as_deref(), &now, &mut event);
                event.extend_from_slice(line);
                self.count_dropped(ring.append(std::iter::once(event.as_slice())));
            }
        }
    }

    /// A server of log lines is somewhere else from now on: the next lines, or the next connection, go there.
    pub fn move_server(&self, server: &Server, address: SocketAddr) {
        if let Some(LogServer::Ring(ring)) = server.log {
            return self.rings.get(ring).into_iter().for_each(|ring| ring.move_server(0, address));
        }
        let moved = self.places.iter().find_map(|place| match place {
            LineTarget::Server(serial, address) if *serial == server.serial => Some(address),
            _ => None,
        });
        if let Some(moved) = moved {
            *moved.lock().unwrap_or_else(PoisonError::into_inner) = Address::Inet(address);
        }
    }

    pub(super) fn count_dropped(&self, lines: usize) {
        if lines > 0 {
            self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
}

impl Route {
    pub(super) fn new(plan: Plan<'_>, mut find: impl FnMut(&LogAddress) -> Destination) -> Self {
        let lines = plan.lines;
        let uses = |name: &str| {
            let others = [&lines.error, &lines.structured_data];
            std::iter::once(&lines.format).chain(others.into_iter().flatten()).any(|format| format.uses(name))
        };
        let others = [&lines.error, &lines.structured_data];
        let has_expressions =
            std::iter::once(&lines.format).chain(others.into_iter().flatten()).any(LogFormat::has_expressions);
        let targets = plan.targets.iter().map(|target| Target::new(target, &mut find)).collect();
        // Expressions may ask for either.
        let tells_destination = uses("fi") || uses("fp") || has_expressions;
        let tells_backend_source = uses("bi") || uses("bp") || has_expressions;
        let tells_identifier = uses("ID");
        let asks_kernel =
            std::iter::once(&lines.format).chain(others.into_iter().flatten()).any(LogFormat::asks_kernel);
        let moment = lines.moment();
        Self {
            lines,
            moment,
            tag: plan.tag.into(),
            targets,
            tells_destination,
            tells_backend_source,
            tells_identifier,
            has_expressions,
            asks_kernel,
            count: AtomicU32::new(0),
        }
    }

    /// Rules may choose any profile.
    pub(super) fn note_profiles(&mut self, profiles: &[LogProfile]) {
        profiles.iter().flat_map(LogProfile::formats).for_each(|format| self.note(format));
    }

    /// A profile's format may be used, too: what it asks for has to be known.
    fn note(&mut self, format: &LogFormat) {
        let expressions = format.has_expressions();
        self.has_expressions |= expressions;
        self.asks_kernel |= format.asks_kernel();
        self.tells_destination |= expressions || format.uses("fi") || format.uses("fp");
        self.tells_backend_source |= expressions || format.uses("bi") || format.uses("bp");
        self.tells_identifier |= format.has_identifier();
    }

    /// Lines before this one, which is counted.
    pub(super) fn count_line(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Lines so far.
    pub(super) fn lines(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Target {
    fn new(target: &LogTarget, mut find: impl FnMut(&LogAddress) -> Destination) -> Self {
        Self {
            destination: find(&target.address),
            length: target.length,
            format: header_format(target.format),
            facility: target.facility,
            profile: target.profile,
            max_level: target.max_level,
            min_level: target.min_level,
            sampling: target.sample.clone().map(Sampling::new),
        }
    }

    /// The severity with which a line of that level is sent to this target; `None`: it is not.
    pub(super) fn severity(&self, level: LogLevel) -> Option<u8> {
        let wanted = level <= self.max_level && self.sampling.as_ref().is_none_or(Sampling::takes);
        wanted.then(|| level.max(self.min_level) as u8)
    }
}

fn header_format(format: SyslogFormat) -> Format {
    match format {
        SyslogFormat::Rfc3164 => Format::Rfc3164,
        SyslogFormat::Rfc5424 => Format::Rfc5424,
        SyslogFormat::Local => Format::Local,
        SyslogFormat::Priority => Format::Priority,
        SyslogFormat::Short => Format::Short,
        SyslogFormat::Timed => Format::Timed,
        SyslogFormat::Iso => Format::Iso,
        SyslogFormat::Raw => Format::Raw,
    }
}

impl Places {
    /// What an address stands for. Backends keep their numbers as proxies until all places are known.
    fn destination(&mut self, address: &LogAddress) -> Destination {
        if let LogAddress::Backend(proxy) = address {
            return Destination::Backend(*proxy);
        }
        Destination::Target(self.addresses.iter().position(|known| known == address).unwrap_or_else(|| {
            let place = LineTarget::open(address.clone(), &mut self.problems);
            self.addresses.push(address.clone());
            self.add(place)
        }))
    }

    /// One place more; its index.
    pub(super) fn add(&mut self, place: LineTarget) -> usize {
        self.opened.push(place);
        self.opened.len() - 1
    }
}

impl LineTarget {
    fn open(address: LogAddress, problems: &mut Vec<Problem>) -> Self {
        match address {
            LogAddress::Inet(address) => Self::Address(Address::Inet(address)),
            LogAddress::Unix(path) => Self::Address(Address::Unix(path)),
            LogAddress::Abstract(name) => Self::Address(Address::Abstract(name)),
            LogAddress::Descriptor(number) => Self::Output(
                Output::open(number).map_err(|error| problems.push(Problem::Descriptor(number, error))).ok(),
            ),
            LogAddress::Ring(index) => Self::Ring(index),
            LogAddress::Telemetry => Self::Telemetry,
            // Its servers are the places.
            LogAddress::Backend(_) => Self::Output(None),
        }
    }

    /// A server that gets datagrams.
    pub(super) fn server(serial: usize, address: Address) -> Self {
        Self::Server(serial, Mutex::new(address))
    }
}

/// This host's name, as the kernel knows it.
fn hostname() -> Box<str> {
    match std::fs::read_to_string("/proc/sys/kernel/hostname") {
        Ok(name) if !name.trim().is_empty() => name.trim().into(),
        _ => "localhost".into(),
    }
}
