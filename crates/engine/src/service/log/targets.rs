//! Where the lines of each proxy go: compiled from the program once, then shared by all workers. Must never hold what
//! belongs to one worker.

use config::spec::{LogFormatSpec, LogLevel, Mode, SyslogFormat};
use policy::log_format::LogFormat;
use policy::program::{self, LogAddress, LogLines, LogMoment, LogTarget, Program};
use rt::Output;
use rt::net::Address;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use wire::syslog::Format;

use super::ring::Ring;
use super::sampling::Sampling;

/// All targets of a program.
#[derive(Debug)]
pub struct Targets {
    /// Each proxy's own, by its index.
    pub(super) proxies: Box<[Route]>,
    /// The process's.
    pub(super) process: Route,
    /// Each place once, however many proxies send there.
    pub(super) places: Box<[Place]>,
    /// Rings, as the program counts them.
    pub(super) rings: Box<[Ring]>,
    /// What headers call this host; `None`: they do not name it.
    pub(super) named_host: Option<Box<str>>,
    /// This host's name.
    pub(super) hostname: Box<str>,
    /// `tune.http.logurilen`.
    pub(super) request_limit: usize,
    /// `tune.sndbuf.backend`, bytes.
    pub(super) send_buffer: Option<usize>,
    dropped: AtomicU64,
}

/// Where somebody's lines go, and what they look like.
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
    /// Lines so far, where the format tells them (`%lc`).
    count: Option<AtomicU32>,
}

/// One `log` line.
#[derive(Debug)]
pub(super) struct Target {
    /// Index of its place.
    pub(super) place: usize,
    pub(super) length: usize,
    pub(super) format: Format,
    pub(super) facility: u8,
    max_level: LogLevel,
    min_level: LogLevel,
    sampling: Option<Sampling>,
}

/// A place that takes lines.
#[derive(Debug)]
pub(super) enum Place {
    /// Datagrams to an address.
    Address(Address),
    /// A shared descriptor; `None`: it is not open.
    Output(Option<Output>),
    /// A ring, by its index.
    Ring(usize),
}

/// A descriptor that could not be opened, and why.
pub type Problem = (i32, io::Error);

/// What somebody logs, before the places are known.
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
    pub fn open(program: &Program, name: &str) -> (Self, Vec<Problem>) {
        rt::local_offset(0);
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
        let (targets, problems) = Self::assemble(process, proxies, &program.rings);
        let send_buffer = global.datagram_send_buffer.map(|bytes| bytes as usize);
        (Self { named_host, hostname, request_limit: global.logurilen, send_buffer, ..targets }, problems)
    }

    /// The targets of a process and its proxies, without what only a configuration tells.
    pub(super) fn assemble<'a>(
        process: Plan<'a>,
        proxies: impl Iterator<Item = Plan<'a>>,
        rings: &[program::Ring],
    ) -> (Self, Vec<Problem>) {
        let mut addresses = Addresses::default();
        let mut problems = Vec::new();
        let process = Route::new(process, &mut addresses);
        let proxies = proxies.map(|plan| Route::new(plan, &mut addresses)).collect();
        let places = addresses.0.into_iter().map(|address| Place::open(address, &mut problems)).collect();
        let rings = rings.iter().map(Ring::new).collect();
        let (hostname, request_limit, dropped) = ("".into(), 1024, AtomicU64::new(0));
        (
            Self {
                proxies,
                process,
                places,
                rings,
                named_host: None,
                hostname,
                request_limit,
                send_buffer: None,
                dropped,
            },
            problems,
        )
    }

    /// Lines that were dropped since the start: the counter DroppedLogs.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Whether a server of a ring has not got every line yet.
    pub fn is_behind(&self) -> bool {
        self.rings.iter().any(Ring::is_behind)
    }

    pub(super) fn count_dropped(&self, lines: usize) {
        if lines > 0 {
            self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
}

impl Route {
    fn new(plan: Plan<'_>, addresses: &mut Addresses) -> Self {
        let lines = plan.lines;
        let uses = |name: &str| {
            let others = [&lines.error, &lines.structured_data];
            std::iter::once(&lines.format).chain(others.into_iter().flatten()).any(|format| format.uses(name))
        };
        let count = uses("lc").then(AtomicU32::default);
        let targets = plan.targets.iter().map(|target| Target::new(target, addresses)).collect();
        let tells_destination = uses("fi") || uses("fp");
        let tells_backend_source = uses("bi") || uses("bp");
        let moment = lines.moment();
        Self { lines, moment, tag: plan.tag.into(), targets, tells_destination, tells_backend_source, count }
    }

    /// Lines before this one, which is counted.
    pub(super) fn count_line(&self) -> u32 {
        self.count.as_ref().map_or(0, |lines| lines.fetch_add(1, Ordering::Relaxed))
    }
}

impl Target {
    fn new(target: &LogTarget, addresses: &mut Addresses) -> Self {
        Self {
            place: addresses.index_of(&target.address),
            length: target.length,
            format: header_format(target.format),
            facility: target.facility,
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

/// The distinct addresses met so far.
#[derive(Default)]
struct Addresses(Vec<LogAddress>);

impl Addresses {
    fn index_of(&mut self, address: &LogAddress) -> usize {
        self.0.iter().position(|known| known == address).unwrap_or_else(|| {
            self.0.push(address.clone());
            self.0.len() - 1
        })
    }
}

impl Place {
    fn open(address: LogAddress, problems: &mut Vec<Problem>) -> Self {
        match address {
            LogAddress::Inet(address) => Self::Address(Address::Inet(address)),
            LogAddress::Unix(path) => Self::Address(Address::Unix(path)),
            LogAddress::Abstract(name) => Self::Address(Address::Abstract(name)),
            LogAddress::Descriptor(number) => {
                Self::Output(Output::open(number).map_err(|error| problems.push((number, error))).ok())
            }
            LogAddress::Ring(index) => Self::Ring(index),
        }
    }
}

/// This host's name, as the kernel knows it.
fn hostname() -> Box<str> {
    match std::fs::read_to_string("/proc/sys/kernel/hostname") {
        Ok(name) if !name.trim().is_empty() => name.trim().into(),
        _ => "localhost".into(),
    }
}
