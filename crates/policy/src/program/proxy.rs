//! Compiled `frontend`, `backend` and `listen` sections (configuration manual, section 4). Must never hold a socket
//! or a counter.

use super::{
    BackendLimits, BindAddress, Compression, Connecting, ErrorPages, FcgiApp, Features, Filters, FlowSettings,
    FrontendLimits, Http, Listening, LogLines, LogServer, LogTarget, OtelTrace, ProgramContext, Reception, Resolving,
    ServerAddress, StatsPage, UniqueId,
};
use super::{MailAlert, MutableName, Tracking};
use crate::check::{AgentCheck, Check, ServerCheck};
use crate::rule::{Rules, ServerChoice, Switch};
use balance::Recogniser;
use base::AppendOnlyVec;
use base::append_only_vec::Iter;
use config::spec::{BalanceSpec, CloseMode, HashSpec, HttpReuse, Mode, ProxyKind, SocketKind, SpliceSpec};
use expression::capture::CapturePlan;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::sample::Context;
use expression::{Conversion, Expression};
use live::ServerPlace;
use live::persistence::PersistencePlan;
use std::sync::Arc;
use std::time::Duration;

/// `timeout …`; `None` for no limit. The fallbacks of `timeout http-request`, `http-keep-alive`, `queue` and `tarpit`
/// have methods of their own; those of `*-fin` and `tunnel` depend on the state of the connection and are applied by
/// the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    pub stream: Option<Duration>,
    pub tarpit: Option<Duration>,
    pub tunnel: Option<Duration>,
    pub check: Option<Duration>,
}

impl Timeouts {
    /// Returns the timeout of a complete request head: `timeout http-request`, else `timeout client`.
    pub fn request(&self) -> Option<Duration> {
        self.http_request.or(self.client)
    }

    /// Returns the timeout of a client's handshakes: `timeout client-hs`, else `timeout client`.
    pub fn client_handshake(&self) -> Option<Duration> {
        self.client_hs.or(self.client)
    }

    /// Returns the timeout of a client whose connection is being closed: `timeout client-fin`, else `timeout client`.
    pub fn client_closing(&self) -> Option<Duration> {
        self.client_fin.or(self.client)
    }

    /// Returns the maximum idle time between two requests: `timeout http-keep-alive`, else `timeout http-request`, else
    /// `timeout client`.
    pub fn keep_alive(&self) -> Option<Duration> {
        self.http_keep_alive.or(self.http_request).or(self.client)
    }

    /// Returns the maximum time of a request in the queue: `timeout queue`, else `timeout connect`.
    pub fn queued(&self) -> Option<Duration> {
        self.queue.or(self.connect)
    }
}

/// `option redispatch`: the retries that may use another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redispatch {
    Never,
    /// Every nth retry.
    Every(u32),
    /// The nth retry from the end: 1 is the last one.
    FromLast(u32),
}

/// Boolean options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// `option dontlognull`.
    pub dontlognull: bool,
    /// `option splice-*`; all disabled by the global `nosplice`.
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

#[derive(Debug, Clone, PartialEq)]
pub struct Proxy {
    /// Index in [`super::Program::proxies`].
    pub index: usize,
    /// The name. It changes if a backend takes over the index of a removed one.
    pub name: MutableName,
    /// `id`.
    pub id: u32,
    /// `id` is specified.
    pub id_is_written: bool,
    /// `guid`.
    pub guid: Option<Box<str>>,
    /// `description`.
    pub description: Option<Box<str>>,
    /// The kind of section.
    pub kind: ProxyKind,
    /// `mode`.
    pub mode: Mode,
    /// `disabled`: its sockets are not opened, and it receives no traffic.
    pub disabled: bool,
    /// `be-unpublished`: initially, rules that select the backend are skipped.
    pub unpublished: bool,
    /// The frontend part of `frontend` and `listen`.
    pub frontend: Option<Box<Frontend>>,
    /// The backend part of `backend` and `listen`.
    pub backend: Option<Backend>,
    /// It has addresses, or the configuration refers to it, so that it cannot be removed.
    pub fixed: bool,
    /// The optional features that it uses, derived from the other fields.
    pub features: Features,
    pub rules: Rules,
    pub filters: Filters,
    /// `compression` parameters; `None` if there are none.
    pub compression: Option<Box<Compression>>,
    /// Indices of the `userlist`s that its expressions use and that have crypt(3) password hashes.
    pub slow_userlists: Vec<usize>,
    /// Settings of the flows of a `udp-lb` section; `None`: it is another section.
    pub flows: Option<Box<FlowSettings>>,
    /// `timeout …`.
    pub timeouts: Timeouts,
    /// Boolean options.
    pub options: Options,
    /// The proxy's own close mode. Of a frontend and a backend the stronger one applies (section 4).
    pub close_mode: CloseMode,
    /// HTTP options.
    pub http: Http,
    /// `monitor-uri`.
    pub monitor_uri: Option<Box<[u8]>>,
    /// `monitor fail`: conditions for responding to monitoring requests with 503.
    pub monitor_fail: Box<[Condition]>,
    pub stats: Option<Box<StatsPage>>,
    /// Error pages.
    pub errors: ErrorPages,
    /// `log` lines.
    pub logs: Vec<LogTarget>,
    /// Log format and related options.
    pub log_lines: LogLines,
    /// `log-tag`; `None` for the global one.
    pub log_tag: Option<Box<str>>,
    /// Mail alerts about its servers; `None` for none.
    pub mail: Option<MailAlert>,
}

/// The client side of a proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct Frontend {
    /// `bind` lines, one entry per address.
    pub binds: Vec<Bind>,
    /// `maxconn`; the global one by default.
    pub maxconn: u32,
    /// Session rate and private connections.
    pub limits: FrontendLimits,
    /// `backlog` of the kernel; the frontend's `maxconn` by default.
    pub backlog: u32,
    /// `option abortonclose`; enabled in HTTP mode by default.
    pub abortonclose: bool,
    /// `use_backend`, in order.
    pub switching: Box<[Switch]>,
    /// Index of the proxy for requests without a matching rule: `default_backend`, else a `listen` itself. `None`: a
    /// frontend without any, which responds with 503.
    pub target: Option<usize>,
    /// Index of this proxy if it has servers (`listen`): used if no other backend is open.
    pub own: Option<usize>,
    /// Index of the proxy for every request while that one is open: the first `use_backend` has no condition, or there
    /// is none. `None` if the backend depends on the request.
    pub at_once: Option<usize>,
    /// Index of the proxy that the frontend belongs to.
    pub proxy: usize,
    /// `force-be-switch`: conditions for using disabled or unpublished backends.
    pub force_switching: Box<[Condition]>,
    /// Captures of requests and responses; `None` for none.
    pub captures: Option<CapturePlan>,
    /// Unique IDs of requests; `None` for none.
    pub unique_id: Option<UniqueId>,
    /// Tracing of streams; `None` for none.
    pub trace: Option<Box<OtelTrace>>,
    /// Parameters of accepted connections.
    pub reception: Reception,
}

impl Frontend {
    /// Returns the proxy that the switching rules select for a request, or the default one. Backends that are disabled
    /// or unpublished are skipped, unless the request matches `force-be-switch`.
    pub fn switch(&self, context: &Context<'_>) -> Option<usize> {
        self.switch_watched(context, &mut |_, _| {})
    }

    /// Like [`Self::switch`]; calls `watch` after each rule of `switching` with its index and whether it matched.
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

    /// Like [`Self::switch`], if the result does not depend on the request; `is_open` reports the live state of that
    /// proxy.
    #[inline]
    pub fn switch_at_once(&self, is_open: impl FnOnce(usize) -> bool) -> Option<usize> {
        self.at_once.filter(|target| *target == self.proxy || is_open(*target))
    }
}

/// A listening address.
#[derive(Debug, Clone, PartialEq)]
pub struct Bind {
    /// Index in the frontend.
    pub index: usize,
    /// The entry of a removed address: nothing new is accepted.
    pub is_removed: bool,
    pub address: BindAddress,
    /// The address as configured.
    pub text: Box<str>,
    /// `name`, else the `id` as text.
    pub name: Box<str>,
    /// It has a `name`.
    pub is_named: bool,
    /// `id`, else its position counted from 1.
    pub id: u32,
    /// `maxconn`; `None` if only the frontend's applies.
    pub maxconn: Option<u32>,
    /// `backlog`, else the frontend's.
    pub backlog: u32,
    /// `defer-accept`.
    pub defer_accept: bool,
    /// Whether an IPv6 wildcard excludes IPv4: `v6only` and `v4v6`; `None` for the system's default.
    pub v6only: Option<bool>,
    /// `shards`: number of sockets, at least 1; always 1 for UNIX, abstract and inherited ones. A QUIC address has one for each
    /// of its workers.
    pub shards: u32,
    /// `mode` of a UNIX socket.
    pub unix_mode: Option<u32>,
    /// Socket options and parameters of connections.
    pub listening: Listening,
    /// `ssl`: the TLS server.
    pub tls: Option<Arc<tls::Server>>,
}

impl Bind {
    /// Whether its sockets are those of datagrams: QUIC, or `udp-lb`.
    pub fn has_datagrams(&self) -> bool {
        let is_udp =
            matches!(self.address, BindAddress::Udp(_) | BindAddress::Descriptor { kind: SocketKind::Datagram, .. });
        is_udp || self.listening.quic.is_some()
    }
}

/// The server side of a proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct Backend {
    /// The servers of the configuration, followed by those that the runtime API adds.
    pub servers: AppendOnlyVec<Server>,
    /// `balance`.
    pub balance: BalanceSpec,
    /// `hash-type` and related keywords.
    pub hash: HashSpec,
    /// The property of a request that the balance algorithm hashes.
    pub recogniser: Option<Recogniser>,
    /// `balance hash`: the expression of a request's key.
    pub hash_key: Option<Expression>,
    /// `balance log-hash`: the converters of a line's key.
    pub log_key: Option<Conversion>,
    /// Rules that select servers.
    pub choice: ServerChoice,
    /// Cookie-based persistence.
    pub persistence: PersistencePlan,
    /// `option allbackups`: load is balanced over all backup servers instead of only the first one.
    pub allbackups: bool,
    /// `retries`.
    pub retries: u32,
    /// `option redispatch`. Its interval applies if a hash or a rule binds a request to its server.
    pub redispatch: Redispatch,
    /// `http-reuse`.
    pub http_reuse: HttpReuse,
    /// `option abortonclose`; enabled in HTTP mode by default.
    pub abortonclose: bool,
    /// Retry and connection parameters.
    pub limits: BackendLimits,
    /// `fullconn`; a tenth of the `maxconn` of the frontends that may use the backend by default.
    pub fullconn: u32,
    /// `fullconn` is specified.
    pub fullconn_is_written: bool,
    /// The FastCGI application of its servers.
    pub fcgi: Option<Arc<FcgiApp>>,
    /// The check of its servers.
    pub check: Check,
    /// Unique IDs of checks; `None` for none, or those of the frontend.
    pub check_id: Option<LogFormat>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Index in [`Backend::servers`].
    pub index: usize,
    /// Number among the servers of all backends.
    pub serial: usize,
    pub name: MutableName,
    /// `id`, else the position counted from 1.
    pub id: u32,
    /// `id` is specified.
    pub id_is_written: bool,
    /// The host name in its address, if there is one.
    pub host: Option<Box<str>>,
    /// Run-time resolution of the host name; `None` for none.
    pub resolving: Option<Box<Resolving>>,
    pub address: ServerAddress,
    /// `weight`, 0 to 256.
    pub weight: u32,
    /// `maxconn`; `None` for no limit.
    pub maxconn: Option<u32>,
    /// `minconn`: below `fullconn`, the limit increases from this to `maxconn` with the load.
    pub minconn: Option<u32>,
    /// `strict-maxconn`: `maxconn` includes idle connections.
    pub strict_maxconn: bool,
    /// `maxqueue`; `None` for no limit.
    pub maxqueue: Option<u32>,
    /// `non-stick`: not stored in stick tables.
    pub non_stick: bool,
    /// `cookie`: the cookie value of the server.
    pub cookie: Option<Box<[u8]>>,
    /// `disabled`: initially in maintenance.
    pub disabled: bool,
    /// `backup`.
    pub backup: bool,
    /// `guid`.
    pub guid: Option<Box<str>>,
    /// The configuration refers to it, so that it cannot be removed.
    pub fixed: bool,
    /// Location of its line, as in messages: file and line number.
    pub written: Box<str>,
    /// `hash-key`: base value of its positions on the consistent-hash ring.
    pub place: u32,
    /// `slowstart`.
    pub slowstart: Option<Duration>,
    /// `pool-max-conn`; `None` for no limit.
    pub pool_max_conn: Option<u32>,
    /// `pool-purge-delay`.
    pub pool_purge_delay: Duration,
    /// `pool-low-conn`: number of idle connections up to which workers do not use those of other workers.
    pub pool_low_conn: u32,
    /// `max-reuse`: maximum number of requests on a connection after the first; `None` for no limit.
    pub max_reuse: Option<u32>,
    /// `redir`: GET and HEAD are redirected to this URL followed by the request's target.
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

/// An empty list of servers.
static NONE: std::sync::LazyLock<AppendOnlyVec<Server>> = std::sync::LazyLock::new(AppendOnlyVec::default);

impl Backend {
    /// Whether the balance algorithm may hash a parameter of the request's body (`balance url_param … check_post`).
    #[inline]
    pub fn checks_post(&self) -> bool {
        matches!(self.balance, BalanceSpec::UrlParam { check_post: true, .. })
    }

    /// Whether the backend evaluates the results of requests.
    #[inline]
    pub fn heeds_answers(&self) -> bool {
        self.limits.outliers.is_some() || matches!(self.balance, BalanceSpec::Ewma { .. })
    }
}

impl Server {
    /// Whether responses of the server count for its health (`observe`).
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.check.as_ref().is_some_and(|check| check.observed.is_some())
    }

    /// Whether the server opens the connections (reverse HTTP).
    #[inline]
    pub fn is_reversed(&self) -> bool {
        self.address == ServerAddress::Reversed
    }
}

impl Proxy {
    /// Returns the place of one of its servers.
    pub fn place_of(&self, server: &Server) -> ServerPlace {
        ServerPlace { proxy: self.index, server: server.index }
    }

    /// Returns the servers that were not removed; empty for a frontend.
    pub fn servers(&self) -> Iter<'_, Server> {
        self.backend.as_ref().map_or_else(|| NONE.iter(), |backend| backend.servers.iter())
    }

    /// Returns the format of unique IDs of checks (`unique-id-format`).
    pub fn check_id(&self) -> Option<&LogFormat> {
        let of_frontend = || Some(&self.frontend.as_ref()?.unique_id.as_ref()?.format);
        self.backend.as_ref().and_then(|backend| backend.check_id.as_ref()).or_else(of_frontend)
    }

    /// Returns the server at an index, including removed ones.
    pub fn server(&self, index: usize) -> Option<&Server> {
        self.backend.as_ref()?.servers.get(index)
    }
}

impl Redispatch {
    /// Converts the interval of `option redispatch <interval>`; `None` if the option is absent.
    pub fn from_interval(interval: Option<i32>) -> Self {
        match interval {
            None | Some(0) => Self::Never,
            Some(every @ 1..) => Self::Every(every.unsigned_abs()),
            Some(last) => Self::FromLast(last.unsigned_abs()),
        }
    }

    /// Whether retry number `retry` (from 1) of at most `retries` uses another server.
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

    /// Very large configurations have ten thousands of these: a field that few of them use belongs into a box.
    #[test]
    fn proxies_and_servers_do_not_grow() {
        let rows = [
            ("Proxy", size_of::<Proxy>(), 1_856),
            ("Backend", size_of::<Backend>(), 776),
            ("Server", size_of::<Server>(), 400),
        ];
        for (what, size, most) in rows {
            assert!(size <= most, "{what}: {size} bytes, at most {most}");
        }
    }

    #[test]
    fn redispatch_intervals() {
        // The interval, the number of retries, and the retries that use another server.
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
