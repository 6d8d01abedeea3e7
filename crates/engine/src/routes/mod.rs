//! Log targets and formats of a configuration: compiled once for each that is served, and kept as long as a session uses it. Must
//! never hold anything of one worker.

pub(crate) mod ring;
mod sampling;
pub(crate) mod sinks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::AppendOnlyVec;
use config::spec::{LogFormatSpec, LogLevel, LogSteps, Mode, SyslogFormat};
use expression::log_format::LogFormat;
use policy::program::{LogAddress, LogLines, LogMoment, LogProfile, LogTarget, Program, Proxy};
use wire::syslog::Format;

use sampling::Sampling;
use sinks::{LogSink, LogSinks, OpenPhase, SinkError};

/// The log routes of one configuration.
#[derive(Debug)]
pub struct LogRoutes {
    /// Route of each proxy, by its index.
    proxies: AppendOnlyVec<Arc<LogRoute>>,
    /// Route of the process.
    pub(crate) process: Arc<LogRoute>,
    /// Routes of FastCGI applications, by section.
    applications: Box<[LogRoute]>,
    /// Routes of SPOE agents, by engine.
    agents: Box<[LogRoute]>,
    /// Keeps sinks open for backends that are added later.
    _spare: Box<[Destination]>,
    /// Settings that all routes share.
    pub(crate) settings: Arc<LogSettings>,
}

/// Settings that all routes of a configuration share.
#[derive(Debug, Default)]
pub(crate) struct LogSettings {
    /// `log-profile` sections, by their index in the program.
    pub(crate) profiles: Box<[LogProfile]>,
    /// Host name in headers; `None`: headers contain none.
    pub(crate) named_host: Option<Box<str>>,
    /// `tune.http.logurilen`.
    pub(crate) request_limit: usize,
    /// Default tag.
    tag: Box<str>,
}

/// Log targets and format of a proxy.
#[derive(Debug)]
pub struct LogRoute {
    /// Index of the proxy; `None`: the route of the process, an application or an agent.
    pub(crate) owner: Option<usize>,
    pub(crate) lines: LogLines,
    /// Time at which its lines are written.
    moment: LogMoment,
    pub(crate) tag: Box<str>,
    pub(crate) targets: Box<[Target]>,
    /// A format contains the destination address of the client's connection, which costs a system call.
    tells_destination: bool,
    /// A format contains the source address of the server connection, which costs another system call.
    tells_backend_source: bool,
    /// A format contains the unique ID.
    tells_identifier: bool,
    /// A format contains expressions.
    has_expressions: bool,
    /// A format contains the kernel's data about a connection (`TCP_INFO`).
    asks_kernel: bool,
    /// Line counter (`%lc`), continued over configurations.
    count: Arc<AtomicU32>,
    pub(crate) settings: Arc<LogSettings>,
}

/// One `log` line.
#[derive(Debug)]
pub(crate) struct Target {
    /// Destination of its lines.
    pub(crate) destination: Destination,
    pub(crate) length: usize,
    pub(crate) format: Format,
    pub(crate) facility: u8,
    /// Index of its log profile.
    pub(crate) profile: Option<usize>,
    max_level: LogLevel,
    min_level: LogLevel,
    sampling: Option<Arc<Sampling>>,
}

/// Destination of a `log` line.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// A sink.
    Sink(Arc<LogSink>),
    /// Index of a backend in `mode log`, which chooses a sink for each line.
    Backend(usize),
}

/// Logging configuration of a proxy, before its sinks are opened.
pub(crate) struct Plan<'a> {
    pub(crate) owner: Option<usize>,
    pub(crate) targets: &'a [LogTarget],
    pub(crate) tag: &'a str,
    pub(crate) lines: LogLines,
}

/// Context for opening the sinks of a configuration.
pub(crate) struct Opening<'a> {
    pub(crate) sinks: &'a LogSinks,
    pub(crate) when: OpenPhase,
    /// Default tag of the program.
    pub(crate) tag: &'a str,
    pub(crate) host: &'a str,
    /// Sinks that could not be opened; the route is usable without them.
    pub(crate) errors: Vec<SinkError>,
}

impl Opening<'_> {
    fn destination(&mut self, address: &LogAddress) -> Option<Destination> {
        Some(match address {
            LogAddress::Backend(proxy) => Destination::Backend(*proxy),
            other => Destination::Sink(self.sinks.open(other, self.when, &mut self.errors)?),
        })
    }
}

/// Format of messages that are not about traffic.
fn plain() -> LogLines {
    LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Tcp))
}

impl LogRoutes {
    /// Creates the routes of a program, continuing those of the previous one. The error: the owner of a target that can no longer
    /// be opened.
    pub(crate) fn of(program: &Program, former: Option<&Self>, opening: &mut Opening<'_>) -> Result<Self, String> {
        let (global, host) = (&program.global, opening.host);
        let named_host = global.log_send_hostname.as_ref().map(|given| given.clone().unwrap_or_else(|| host.into()));
        let tag = global.log_tag.clone().unwrap_or_else(|| opening.tag.into());
        let profiles = program.profiles.clone();
        let settings =
            Arc::new(LogSettings { profiles, named_host, request_limit: global.logurilen, tag: tag.clone() });
        let missing = |whose: &str| format!("log targets of {whose}, which cannot be opened any more");
        let process = Plan { owner: None, targets: &global.logs, tag: &tag, lines: plain() };
        let process = LogRoute::new(process, former.map(|former| &*former.process), &settings, opening);
        let process = process.ok_or_else(|| missing("the process"))?;
        let mut proxies = Vec::with_capacity(program.proxies.places());
        for index in 0..program.proxies.places() {
            let proxy = program.proxies.get(index).ok_or_else(|| missing("a proxy"))?;
            let before = former.and_then(|former| former.proxies.get(index)).map(|route| &**route);
            let route = LogRoute::new(Plan::of(proxy, &tag), before, &settings, opening);
            proxies.push(Arc::new(route.ok_or_else(|| missing(&format!("proxy {}", proxy.name)))?));
        }
        let mut others = |targets, tag, whose: &dyn Fn() -> String| {
            let plan = Plan { owner: None, targets, tag, lines: plain() };
            LogRoute::new(plan, None, &settings, opening).ok_or_else(|| missing(&whose()))
        };
        let applications = program
            .fcgi_logs
            .iter()
            .map(|log| others(&log.targets, &log.name, &|| format!("fcgi-app {}", log.name)))
            .collect::<Result<_, _>>()?;
        let agents = program
            .spoe_logs
            .iter()
            .map(|log| others(&log.targets, &tag, &|| format!("SPOE engine {}", log.engine)))
            .collect::<Result<_, _>>()?;
        let spare = program.spare_logs.iter().flatten().map(|target| opening.destination(&target.address));
        let spare = spare.collect::<Option<_>>().ok_or_else(|| missing("defaults"))?;
        Ok(Self { proxies: proxies.into(), process: Arc::new(process), applications, agents, _spare: spare, settings })
    }

    /// Creates routes without targets.
    pub(crate) fn nowhere() -> Self {
        let plan = Plan { owner: None, targets: &[], tag: "", lines: plain() };
        let settings = Arc::default();
        let process = Arc::new(LogRoute::made(plan, Box::default(), None, &settings));
        let (applications, agents, spare) = Default::default();
        Self { proxies: AppendOnlyVec::default(), process, applications, agents, _spare: spare, settings }
    }

    /// Returns the route of a proxy, by its index; `None`: the proxy was added by a later configuration.
    pub fn proxy(&self, index: usize) -> Option<&Arc<LogRoute>> {
        self.proxies.get(index)
    }

    /// Returns the route of a FastCGI application, by its section.
    pub fn application(&self, index: usize) -> Option<&LogRoute> {
        self.applications.get(index)
    }

    /// Returns the route of an SPOE agent, by its engine.
    pub fn agent(&self, engine: usize) -> Option<&LogRoute> {
        self.agents.get(engine)
    }

    /// Adds the route of a proxy that the runtime API adds. Returns false if a target is not open, or there is no capacity.
    pub(crate) fn add(&self, proxy: &Proxy, opening: &mut Opening<'_>) -> bool {
        let route = LogRoute::new(Plan::of(proxy, &self.settings.tag), None, &self.settings, opening);
        route.is_some_and(|route| self.proxies.push(|_| Arc::new(route)) == Ok(proxy.index))
    }

    /// Creates routes with a single proxy.
    #[cfg(test)]
    pub(crate) fn assemble(process: Plan<'_>, proxy: Plan<'_>, opening: &mut Opening<'_>) -> Self {
        let settings = Arc::new(LogSettings { request_limit: 1024, ..LogSettings::default() });
        let mut route = |plan| Arc::new(LogRoute::new(plan, None, &settings, opening).unwrap());
        let process = route(process);
        let proxies = vec![route(proxy)].into();
        Self { proxies, process, ..Self { settings, ..Self::nowhere() } }
    }
}

impl<'a> Plan<'a> {
    fn of(proxy: &'a Proxy, tag: &'a str) -> Self {
        let tag = proxy.log_tag.as_deref().unwrap_or(tag);
        Self { owner: Some(proxy.index), targets: &proxy.logs, tag, lines: proxy.log_lines.clone() }
    }
}

impl LogRoute {
    fn new(
        plan: Plan<'_>,
        former: Option<&Self>,
        settings: &Arc<LogSettings>,
        opening: &mut Opening<'_>,
    ) -> Option<Self> {
        let targets = plan.targets.iter().enumerate().map(|(place, target)| {
            let before = former.and_then(|former| former.targets.get(place));
            Target::new(target, before, opening)
        });
        let targets = targets.collect::<Option<_>>()?;
        Some(Self::made(plan, targets, former, settings))
    }

    fn made(plan: Plan<'_>, targets: Box<[Target]>, former: Option<&Self>, settings: &Arc<LogSettings>) -> Self {
        let (lines, tag) = (plan.lines, plan.tag.into());
        let moment = lines.moment();
        let mut route = Self {
            owner: plan.owner,
            moment,
            tag,
            targets,
            tells_destination: false,
            tells_backend_source: false,
            tells_identifier: false,
            has_expressions: false,
            asks_kernel: false,
            count: former.map(|former| Arc::clone(&former.count)).unwrap_or_default(),
            settings: Arc::clone(settings),
            lines,
        };
        let own = route.lines.clone();
        [Some(&own.format), own.error.as_ref(), own.structured_data.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|format| route.note(format, format.uses("ID")));
        // Rules can choose any profile.
        let formats = settings.profiles.iter().flat_map(LogProfile::formats);
        formats.for_each(|format| route.note(format, format.has_identifier()));
        route
    }

    /// Records the data that a format needs. Expressions may need any address.
    fn note(&mut self, format: &LogFormat, tells_identifier: bool) {
        let expressions = format.has_expressions();
        self.has_expressions |= expressions;
        self.asks_kernel |= format.asks_kernel();
        self.tells_destination |= expressions || format.uses("fi") || format.uses("fp");
        self.tells_backend_source |= expressions || format.uses("bi") || format.uses("bp");
        self.tells_identifier |= tells_identifier;
    }

    /// Whether it has any target.
    pub fn is_wanted(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Whether lines are written before the end of a stream, or contain an address that is queried before it.
    pub fn has_early_lines(&self) -> bool {
        self.is_wanted() && (self.tells_destination || self.lines.steps.is_some() || self.moment != LogMoment::End)
    }

    /// When its lines are written.
    pub fn moment(&self) -> LogMoment {
        self.moment
    }

    /// Whether its lines contain expressions.
    pub fn has_expressions(&self) -> bool {
        self.has_expressions
    }

    /// Whether its lines contain the unique ID of a request.
    pub fn tells_identifier(&self) -> bool {
        self.tells_identifier
    }

    /// Whether its lines contain the destination address of the client's connection.
    pub fn tells_destination(&self) -> bool {
        self.is_wanted() && self.tells_destination
    }

    /// Whether its lines contain the kernel's data about a connection.
    pub fn asks_kernel(&self) -> bool {
        self.asks_kernel
    }

    /// Whether its lines contain the source address of the server connection.
    pub fn tells_backend_source(&self) -> bool {
        self.is_wanted() && self.tells_backend_source
    }

    /// `log-steps`.
    pub fn steps(&self) -> Option<LogSteps> {
        self.lines.steps
    }

    /// Counts a line; returns the number of lines before it.
    pub(crate) fn count_line(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of lines so far.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Target {
    /// Creates a target, continuing the sampling of its predecessor.
    pub(crate) fn new(target: &LogTarget, former: Option<&Self>, opening: &mut Opening<'_>) -> Option<Self> {
        let sampling = target.sample.clone().map(|sample| {
            let before = former.and_then(|former| former.sampling.as_ref()).filter(|before| before.is_of(&sample));
            before.cloned().unwrap_or_else(|| Arc::new(Sampling::new(sample)))
        });
        Some(Self {
            destination: opening.destination(&target.address)?,
            length: target.length,
            format: header_format(target.format),
            facility: target.facility,
            profile: target.profile,
            max_level: target.max_level,
            min_level: target.min_level,
            sampling,
        })
    }

    /// Returns the severity of a line of that level for this target; `None`: the target does not get it.
    pub(crate) fn severity(&self, level: LogLevel) -> Option<u8> {
        let wanted = level <= self.max_level && self.sampling.as_ref().is_none_or(|sampling| sampling.takes());
        wanted.then(|| level.max(self.min_level) as u8)
    }
}

pub(crate) fn header_format(format: SyslogFormat) -> Format {
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
