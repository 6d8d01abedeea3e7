//! Where the lines of a configuration go, and what they look like: compiled once for each that is served, and kept as long as
//! a session has it. Must never hold what belongs to one worker.

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

/// The routes of one configuration.
#[derive(Debug)]
pub struct LogRoutes {
    /// Each proxy's own, by its index.
    proxies: AppendOnlyVec<Arc<LogRoute>>,
    /// The process's.
    pub(crate) process: Arc<LogRoute>,
    /// Those of FastCGI applications, by section.
    applications: Box<[LogRoute]>,
    /// Those of agents, by engine.
    agents: Box<[LogRoute]>,
    /// For backends that are added: what is open stays so.
    _spare: Box<[Destination]>,
    /// What all of them have in common.
    pub(crate) settings: Arc<LogSettings>,
}

/// What all routes of a configuration have in common.
#[derive(Debug, Default)]
pub(crate) struct LogSettings {
    /// `log-profile` sections, as the program counts them.
    pub(crate) profiles: Box<[LogProfile]>,
    /// What headers call this host; `None`: they do not name it.
    pub(crate) named_host: Option<Box<str>>,
    /// `tune.http.logurilen`.
    pub(crate) request_limit: usize,
    /// The tag where nothing else is written.
    tag: Box<str>,
}

/// Where the lines of a proxy go, and what they look like.
#[derive(Debug)]
pub struct LogRoute {
    /// The index of the proxy; `None`: it is the process's, or that of an application.
    pub(crate) owner: Option<usize>,
    pub(crate) lines: LogLines,
    /// When its lines are written.
    moment: LogMoment,
    pub(crate) tag: Box<str>,
    pub(crate) targets: Box<[Target]>,
    /// The format tells the address that the client connected to, which costs a system call to know.
    tells_destination: bool,
    /// The format tells the address that the connection to the server comes from, which costs another one.
    tells_backend_source: bool,
    /// A format tells the unique identifier.
    tells_identifier: bool,
    /// A format holds expressions.
    has_expressions: bool,
    /// A format tells what the kernel knows of a connection.
    asks_kernel: bool,
    /// Lines so far (`%lc`), also those of configurations before.
    count: Arc<AtomicU32>,
    pub(crate) settings: Arc<LogSettings>,
}

/// One `log` line.
#[derive(Debug)]
pub(crate) struct Target {
    /// Where its lines go.
    pub(crate) destination: Destination,
    pub(crate) length: usize,
    pub(crate) format: Format,
    pub(crate) facility: u8,
    /// Index of its profile.
    pub(crate) profile: Option<usize>,
    max_level: LogLevel,
    min_level: LogLevel,
    sampling: Option<Arc<Sampling>>,
}

/// What a `log` line names.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// What takes its lines.
    Sink(Arc<LogSink>),
    /// A backend in `mode log`, by its index: it chooses one of its sinks for each line.
    Backend(usize),
}

/// What a proxy or relay logs, before the sinks are known.
pub(crate) struct Plan<'a> {
    pub(crate) owner: Option<usize>,
    pub(crate) targets: &'a [LogTarget],
    pub(crate) tag: &'a str,
    pub(crate) lines: LogLines,
}

/// What opens the sinks of a configuration.
pub(crate) struct Opening<'a> {
    pub(crate) sinks: &'a LogSinks,
    pub(crate) when: OpenPhase,
    /// The tag where the configuration sets none.
    pub(crate) tag: &'a str,
    /// This host's name.
    pub(crate) host: &'a str,
    /// What could not be opened, though it may be used.
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

/// How lines of sentences look.
fn plain() -> LogLines {
    LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Tcp))
}

impl LogRoutes {
    /// Those of a program, behind those of the one before. `Err`: what something logs to that cannot be opened any more.
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

    /// Those of a process that logs nothing.
    pub(crate) fn nowhere() -> Self {
        let plan = Plan { owner: None, targets: &[], tag: "", lines: plain() };
        let settings = Arc::default();
        let process = Arc::new(LogRoute::made(plan, Box::default(), None, &settings));
        let (applications, agents, spare) = Default::default();
        Self { proxies: AppendOnlyVec::default(), process, applications, agents, _spare: spare, settings }
    }

    /// That of a proxy, by its index; `None`: the proxy came with a later configuration.
    pub fn proxy(&self, index: usize) -> Option<&Arc<LogRoute>> {
        self.proxies.get(index)
    }

    /// That of a FastCGI application, by its section.
    pub fn application(&self, index: usize) -> Option<&LogRoute> {
        self.applications.get(index)
    }

    /// That of an agent, by its engine.
    pub fn agent(&self, engine: usize) -> Option<&LogRoute> {
        self.agents.get(engine)
    }

    /// Adds that of a proxy which the runtime API adds. False: it logs to what is not open, or there is no room.
    pub(crate) fn add(&self, proxy: &Proxy, opening: &mut Opening<'_>) -> bool {
        let route = LogRoute::new(Plan::of(proxy, &self.settings.tag), None, &self.settings, opening);
        route.is_some_and(|route| self.proxies.push(|_| Arc::new(route)) == Ok(proxy.index))
    }

    /// The same with one proxy alone.
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
        // Rules may choose any profile.
        let formats = settings.profiles.iter().flat_map(LogProfile::formats);
        formats.for_each(|format| route.note(format, format.has_identifier()));
        route
    }

    /// A format may be used: what it asks for has to be known. Expressions may ask for any address.
    fn note(&mut self, format: &LogFormat, tells_identifier: bool) {
        let expressions = format.has_expressions();
        self.has_expressions |= expressions;
        self.asks_kernel |= format.asks_kernel();
        self.tells_destination |= expressions || format.uses("fi") || format.uses("fp");
        self.tells_backend_source |= expressions || format.uses("bi") || format.uses("bp");
        self.tells_identifier |= tells_identifier;
    }

    /// Whether its lines go anywhere.
    pub fn is_wanted(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Whether lines are written before the end of a stream, or tell facts that have to be asked for before it.
    pub fn has_early_lines(&self) -> bool {
        self.is_wanted() && (self.tells_destination || self.lines.steps.is_some() || self.moment != LogMoment::End)
    }

    /// When its lines are written.
    pub fn moment(&self) -> LogMoment {
        self.moment
    }

    /// Whether its lines hold expressions.
    pub fn has_expressions(&self) -> bool {
        self.has_expressions
    }

    /// Whether its lines tell the unique identifier of a request.
    pub fn tells_identifier(&self) -> bool {
        self.tells_identifier
    }

    /// Whether its lines tell the address that the client connected to.
    pub fn tells_destination(&self) -> bool {
        self.is_wanted() && self.tells_destination
    }

    /// Whether its lines tell what the kernel knows of a connection.
    pub fn asks_kernel(&self) -> bool {
        self.asks_kernel
    }

    /// Whether its lines tell the address that the connection to the server comes from.
    pub fn tells_backend_source(&self) -> bool {
        self.is_wanted() && self.tells_backend_source
    }

    /// `log-steps`.
    pub fn steps(&self) -> Option<LogSteps> {
        self.lines.steps
    }

    /// Lines before this one, which is counted.
    pub(crate) fn count_line(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Lines so far.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Target {
    /// Goes on in the round of samples that the one before it is in.
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

    /// The severity with which a line of that level is sent to this target; `None`: it is not.
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
