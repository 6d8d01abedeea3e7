//! A `frontend`, `backend` or `listen`, ready to run (configuration manual, section 4).

use super::{
    BackendLimits, BindAddress, Compression, Connecting, ErrorPages, FcgiApp, Filters, FrontendLimits, Http, Lent,
    Listening, LogLines, LogServer, LogTarget, OtelTrace, Reception, Resolving, ServerAddress, StatsPage, UniqueId,
};
use super::{MailAlert, MutableName, Tracking};
use crate::check::{AgentCheck, Check, ServerCheck};
use crate::rule::{Rules, ServerChoice, Switch};
use balance::Recogniser;
use base::AppendOnlyVec;
use base::append_only_vec::Iter;
use config::spec::{BalanceSpec, CloseMode, HashSpec, HttpReuse, Mode, ProxyKind, SpliceSpec};
use expression::capture::CapturePlan;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::sample::Context;
use expression::{Conversion, Expression};
use live::persistence::PersistencePlan;
use std::sync::Arc;
use std::time::Duration;

/// `timeout …`; `None` means no limit. The fall-backs of `timeout http-request`, `http-keep-alive`, `queue` and
/// `tarpit` have their own methods; those of `*-fin` and `tunnel` depend on the connection's state and are left to the
/// engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Timeouts {
    pub client: Option<Duration>,
    pub client_fin: Option<Duration>,
    pub client_hs: Option<Duration>,
    pub connect: Option<Duration>,
    pub http_request: Option<Duration>,
    pub http_keep_alive: Option<Duration>,
    pub queue: Option<Duration>,
    pub server: Option<Duration>,
    pub server_fin: Option<Duration>,
    pub tarpit: Option<Duration>,
    pub tunnel: Option<Duration>,
    pub check: Option<Duration>,
}

impl Timeouts {
    /// How long a whole request head may take: `timeout http-request`, else `timeout client`.
    pub fn request(&self) -> Option<Duration> {
        self.http_request.or(self.client)
    }

    /// How long a client may stay silent between two requests: `timeout http-keep-alive`, else `timeout
    /// http-request`, else `timeout client`.
    pub fn keep_alive(&self) -> Option<Duration> {
        self.http_keep_alive.or(self.http_request).or(self.client)
    }

    /// How long a request may wait for a server: `timeout queue`, else `timeout connect`.
    pub fn queued(&self) -> Option<Duration> {
        self.queue.or(self.connect)
    }
}

/// `option redispatch`: when a retry may go to another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redispatch {
    /// Never.
    Never,
    /// On every nth retry.
    Every(u32),
    /// On the nth retry before the last one is through: 1 is the last.
    FromLast(u32),
}

/// The boolean options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// `option dontlognull`.
    pub dontlognull: bool,
    /// `option splice-*`; all off with the global `nosplice`.
    pub splice: SpliceSpec,
    /// `option clitcpka`.
    pub clitcpka: bool,
    /// `option srvtcpka`.
    pub srvtcpka: bool,
    /// `option nolinger`.
    pub nolinger: bool,
    /// `option idle-close-on-response`.
    pub idle_close_on_response: bool,
    /// `option independent-streams`.
    pub independent_streams: bool,
}

/// One proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct Proxy {
    /// Its place in [`super::Program::proxies`].
    pub index: usize,
    /// Its name. It changes where a backend gets the place of one that was removed.
    pub name: MutableName,
    /// `id`.
    pub id: u32,
    /// That was written.
    pub id_is_written: bool,
    /// `guid`.
    pub guid: Option<Box<str>>,
    /// `description`.
    pub description: Option<Box<str>>,
    /// Which section it was.
    pub kind: ProxyKind,
    /// `mode`.
    pub mode: Mode,
    /// `disabled`: its sockets are not opened and nothing is sent to it.
    pub disabled: bool,
    /// `be-unpublished`: at first, rules that lead to it are passed over.
    pub unpublished: bool,
    /// What it does as a frontend: `frontend` and `listen`.
    pub frontend: Option<Frontend>,
    /// What it does as a backend: `backend` and `listen`.
    pub backend: Option<Backend>,
    /// It has addresses, or a line of the configuration names it, so that it cannot be removed.
    pub fixed: bool,
    /// Its rules.
    pub rules: Rules,
    /// Its filters.
    pub filters: Filters,
    /// What its `compression` lines say; `None`: there are none.
    pub compression: Option<Box<Compression>>,
    /// The `userlist`s that its expressions ask and that have passwords hidden by crypt(3).
    pub slow_userlists: Vec<usize>,
    /// `timeout …`.
    pub timeouts: Timeouts,
    /// The boolean options.
    pub options: Options,
    /// Its own close mode. Of a frontend and a backend the stronger one holds (section 4).
    pub close_mode: CloseMode,
    /// The options about HTTP.
    pub http: Http,
    /// `monitor-uri`.
    pub monitor_uri: Option<Box<[u8]>>,
    /// `monitor fail`: when monitoring requests are answered with 503.
    pub monitor_fail: Box<[Condition]>,
    /// The statistics page.
    pub stats: Option<Box<StatsPage>>,
    /// The answers to errors.
    pub errors: ErrorPages,
    /// `log` lines.
    pub logs: Vec<LogTarget>,
    /// What a line looks like.
    pub log_lines: LogLines,
    /// `log-tag`; `None`: the global one.
    pub log_tag: Option<Box<str>>,
    /// Mails about its servers; `None`: none.
    pub mail: Option<MailAlert>,
}

/// A proxy's client side.
#[derive(Debug, Clone, PartialEq)]
pub struct Frontend {
    /// `bind` lines, one an address.
    pub binds: Vec<Bind>,
    /// `maxconn`; the global one where none was written.
    pub maxconn: u32,
    /// Sessions a second, and what a session keeps.
    pub limits: FrontendLimits,
    /// `backlog`: connections that the kernel holds ready; the frontend's `maxconn` where none was written.
    pub backlog: u32,
    /// `option abortonclose`; on in HTTP mode where nothing was written.
    pub abortonclose: bool,
    /// `use_backend`, in order.
    pub switching: Box<[Switch]>,
    /// Index of the proxy that gets the requests that no rule sends elsewhere: `default_backend`, else a `listen` itself.
    /// `None`: a frontend without any, which answers 503.
    pub target: Option<usize>,
    /// Index of the same proxy where it has servers itself (`listen`): it serves what no other backend is open for.
    pub own: Option<usize>,
    /// Index of the proxy that every request goes to while that one is open: the first `use_backend` has no condition, or
    /// there is none. `None`: it depends on the request.
    pub at_once: Option<usize>,
    /// Its own index.
    pub proxy: usize,
    /// `force-be-switch`: which requests get to backends that are disabled or unpublished.
    pub force_switching: Box<[Condition]>,
    /// What is kept of requests and answers for the log; `None`: nothing.
    pub captures: Option<CapturePlan>,
    /// How its requests are named; `None`: they are not.
    pub unique_id: Option<UniqueId>,
    /// Which of its streams are traced; `None`: none.
    pub trace: Option<Box<OtelTrace>>,
    /// What it says about the connections that it takes.
    pub reception: Reception,
}

impl Frontend {
    /// The proxy that the switching rules send a request to, or the one where no rule does. Backends that are disabled or
    /// unpublished are passed over, but for requests that are forced.
    pub fn switch(&self, context: &Context<'_>) -> Option<usize> {
        self.switch_watched(context, &mut |_, _| {})
    }

    /// The same; `watch` is called after each rule of `switching`, with its index and whether it was taken.
    #[inline]
    pub fn switch_watched(&self, context: &Context<'_>, watch: &mut impl FnMut(usize, bool)) -> Option<usize> {
        let forced = self.force_switching.iter().any(|condition| condition.holds(context));
        let is_open = |proxy: usize| {
            let state = context.live().and_then(|live| live.proxies.get(proxy));
            forced || proxy == self.proxy || state.is_none_or(|state| state.is_open())
        };
        let taken = self.switching.iter().enumerate().find_map(|(at, rule)| {
            let taken = rule.take(context, is_open);
            watch(at, taken.is_some());
            taken
        });
        taken.flatten().or(self.target.filter(|target| is_open(*target))).or(self.own)
    }

    /// The same where it does not depend on the request, with what the live state says of that proxy.
    #[inline]
    pub fn switch_at_once(&self, is_open: impl FnOnce(usize) -> bool) -> Option<usize> {
        self.at_once.filter(|target| *target == self.proxy || is_open(*target))
    }
}

/// One listening address.
#[derive(Debug, Clone, PartialEq)]
pub struct Bind {
    /// Its number in the frontend, from 0.
    pub index: usize,
    /// It keeps the place of an address that is listened at no more: nothing new comes in there.
    pub is_removed: bool,
    /// The address.
    pub address: BindAddress,
    /// The address as written.
    pub text: Box<str>,
    /// `name`, else its `id` as text.
    pub name: Box<str>,
    /// It has a `name`.
    pub is_named: bool,
    /// `id`, else its position counted from 1.
    pub id: u32,
    /// `maxconn`; `None`: the frontend's alone.
    pub maxconn: Option<u32>,
    /// `backlog`, else the frontend's.
    pub backlog: u32,
    /// `defer-accept`.
    pub defer_accept: bool,
    /// Whether an IPv6 wildcard leaves IPv4 alone: `v6only` and `v4v6`; `None`: the system's choice.
    pub v6only: Option<bool>,
    /// `shards`: number of sockets, at least 1; always 1 for UNIX, abstract and inherited ones.
    pub shards: u32,
    /// `mode` of a UNIX socket.
    pub unix_mode: Option<u32>,
    /// Its sockets' options, and what comes in through them.
    pub listening: Listening,
    /// `ssl`: what it offers to clients.
    pub tls: Option<Arc<tls::Server>>,
}

/// A proxy's server side.
#[derive(Debug, Clone, PartialEq)]
pub struct Backend {
    /// Its servers: those of the configuration, then those that the runtime API adds.
    pub servers: AppendOnlyVec<Server>,
    /// `balance`.
    pub balance: BalanceSpec,
    /// `hash-type` and its kin.
    pub hash: HashSpec,
    /// What a request is recognised by, where the balance hashes.
    pub recogniser: Option<Recogniser>,
    /// `balance hash`: what makes the key of a request.
    pub hash_key: Option<Expression>,
    /// `balance log-hash`: what makes the key of a line.
    pub log_key: Option<Conversion>,
    /// What binds requests to servers.
    pub choice: ServerChoice,
    /// Cookies that bind clients to servers.
    pub persistence: PersistencePlan,
    /// `option allbackups`: all backup servers share the work, not the first one alone.
    pub allbackups: bool,
    /// `retries`.
    pub retries: u32,
    /// `option redispatch`. Its interval counts where something binds a request to its server: a hash, or a rule.
    pub redispatch: Redispatch,
    /// `http-reuse`.
    pub http_reuse: HttpReuse,
    /// `option abortonclose`; on in HTTP mode where nothing was written.
    pub abortonclose: bool,
    /// Retries beside those of connections, kept connections.
    pub limits: BackendLimits,
    /// `fullconn`; a tenth of the `maxconn` of the frontends that lead here where nothing was written.
    pub fullconn: u32,
    /// That was written.
    pub fullconn_is_written: bool,
    /// The FastCGI application behind its servers.
    pub fcgi: Option<Arc<FcgiApp>>,
    /// What its servers are checked with.
    pub check: Check,
    /// How checks are named; `None`: they are not, or as the requests of the frontend are.
    pub check_id: Option<LogFormat>,
}

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its place in [`Backend::servers`].
    pub index: usize,
    /// Its number over all backends.
    pub serial: usize,
    /// Its name.
    pub name: MutableName,
    /// `id`, else its position counted from 1.
    pub id: u32,
    /// `id` was written.
    pub id_is_written: bool,
    /// The name that its address was written by, if it was one.
    pub host: Option<Box<str>>,
    /// How that is followed while it serves; `None`: not at all.
    pub resolving: Option<Box<Resolving>>,
    /// Where it listens.
    pub address: ServerAddress,
    /// `weight`, 0 to 256.
    pub weight: u32,
    /// `maxconn`; `None` means no limit.
    pub maxconn: Option<u32>,
    /// `minconn`: with less load than `fullconn` the limit is on the ramp between this and `maxconn`.
    pub minconn: Option<u32>,
    /// `strict-maxconn`: never more connections than `maxconn`, idle ones included.
    pub strict_maxconn: bool,
    /// `maxqueue`; `None` means no limit.
    pub maxqueue: Option<u32>,
    /// `non-stick`: no stick table remembers it.
    pub non_stick: bool,
    /// `cookie`: the value that leads to it.
    pub cookie: Option<Box<[u8]>>,
    /// `disabled`: in maintenance from the start.
    pub disabled: bool,
    /// `backup`.
    pub backup: bool,
    /// `guid`.
    pub guid: Option<Box<str>>,
    /// A line of the configuration names it, so that it cannot be removed.
    pub fixed: bool,
    /// Its line, as messages name it: file and number.
    pub written: Box<str>,
    /// `hash-key`: what its places on the circle of a consistent hash are reckoned from.
    pub place: u32,
    /// `slowstart`.
    pub slowstart: Option<Duration>,
    /// `pool-max-conn`; `None` means no limit.
    pub pool_max_conn: Option<u32>,
    /// `pool-purge-delay`.
    pub pool_purge_delay: Duration,
    /// `pool-low-conn`: idle connections up to which workers leave each other's alone.
    pub pool_low_conn: u32,
    /// `max-reuse`: requests on a connection beyond the first; `None` means no limit.
    pub max_reuse: Option<u32>,
    /// `redir`: GET and HEAD are answered with a redirect to this, followed by the request's target.
    pub redirect: Option<Box<[u8]>>,
    /// How connections to it are made.
    pub connecting: Arc<Connecting>,
    /// How it gets log lines, where its backend is in `mode log`.
    pub log: Option<LogServer>,
    /// How its health is checked; `None`: not at all.
    pub check: Option<Box<ServerCheck>>,
    /// The level of health that is told of it for as long as nothing checks it and nothing has stopped it.
    pub unchecked_level: u32,
    /// How its agent is asked; `None`: it has none.
    pub agent: Option<Box<AgentCheck>>,
    /// The server whose state it shares, and those that share its own.
    pub tracking: Tracking,
    /// `on-marked-down shutdown-sessions`.
    pub down_shuts_sessions: bool,
    /// `on-marked-up shutdown-backup-sessions`.
    pub up_shuts_backups: bool,
}

/// No server.
static NONE: std::sync::LazyLock<AppendOnlyVec<Server>> = std::sync::LazyLock::new(AppendOnlyVec::default);

impl Backend {
    /// Whether anything depends on what becomes of requests at its servers.
    #[inline]
    pub fn heeds_answers(&self) -> bool {
        self.limits.outliers.is_some() || matches!(self.balance, BalanceSpec::Ewma { .. })
    }
}

impl Server {
    /// Whether it opens the connections to itself (reverse HTTP).
    #[inline]
    pub fn is_reversed(&self) -> bool {
        self.address == ServerAddress::Reversed
    }
}

impl Proxy {
    /// Its servers that were not removed; none where it is no backend.
    pub fn servers(&self) -> Iter<'_, Server> {
        self.backend.as_ref().map_or_else(|| NONE.iter(), |backend| backend.servers.iter())
    }

    /// How its checks are named (`unique-id-format`).
    pub fn check_id(&self) -> Option<&LogFormat> {
        let of_frontend = || Some(&self.frontend.as_ref()?.unique_id.as_ref()?.format);
        self.backend.as_ref().and_then(|backend| backend.check_id.as_ref()).or_else(of_frontend)
    }

    /// The server at a place, be it removed.
    pub fn server(&self, index: usize) -> Option<&Server> {
        self.backend.as_ref()?.servers.get(index)
    }
}

impl Redispatch {
    /// What `option redispatch <interval>` means; `None` is the option's absence.
    pub fn from_interval(interval: Option<i32>) -> Self {
        match interval {
            None | Some(0) => Self::Never,
            Some(every @ 1..) => Self::Every(every.unsigned_abs()),
            Some(last) => Self::FromLast(last.unsigned_abs()),
        }
    }

    /// Whether retry number `retry` (from 1) of at most `retries` goes to another server.
    pub fn applies(self, retry: u32, retries: u32) -> bool {
        match self {
            Self::Never => false,
            Self::Every(every) => retry.is_multiple_of(every),
            Self::FromLast(last) => retry + last == retries + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redispatch_intervals() {
        // The interval, the number of retries, and the retries that go to another server.
        let rows: &[(Option<i32>, u32, &[u32])] = &[
            (None, 3, &[]),
            (Some(0), 3, &[]),
            (Some(-1), 3, &[3]),
            (Some(-1), 1, &[1]),
            (Some(-2), 3, &[2]),
            (Some(-9), 3, &[]),
            (Some(1), 3, &[1, 2, 3]),
            (Some(2), 5, &[2, 4]),
            (Some(3), 2, &[]),
        ];
        for (interval, retries, expected) in rows {
            let redispatch = Redispatch::from_interval(*interval);
            let found: Vec<u32> = (1..=*retries).filter(|retry| redispatch.applies(*retry, *retries)).collect();
            assert_eq!(found, *expected, "{interval:?} of {retries}");
        }
    }

    #[test]
    fn timeouts_fall_back_as_the_manual_says() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let mut timeouts = Timeouts { client: seconds(1), connect: seconds(2), ..Timeouts::default() };
        assert_eq!([timeouts.request(), timeouts.keep_alive(), timeouts.queued()], [1, 1, 2].map(seconds));
        timeouts.http_request = seconds(3);
        assert_eq!([timeouts.request(), timeouts.keep_alive()], [3, 3].map(seconds));
        (timeouts.http_keep_alive, timeouts.queue) = (seconds(4), seconds(5));
        assert_eq!([timeouts.request(), timeouts.keep_alive(), timeouts.queued()], [3, 4, 5].map(seconds));
    }
}
