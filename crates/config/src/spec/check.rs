//! Health checks as written: the options of a `server` line (configuration manual, section 5.2), and the method of
//! a backend ("option httpchk", "tcp-check" and related keywords). Must never parse a rule.

use super::{AddressSpec, RuleLineSpec};
use crate::span::Spanned;

/// Health check settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCheckSpec {
    /// `check`.
    pub enabled: bool,
    /// `inter`, milliseconds; default 2000.
    pub interval: u64,
    /// `fastinter`, milliseconds; `None`: as `inter`.
    pub fast_interval: Option<u64>,
    /// `downinter`, milliseconds; `None`: as `inter`.
    pub down_interval: Option<u64>,
    /// `rise`; default 2.
    pub rise: u32,
    /// A `default-server` line precedes it: the health of an unchecked server is then reported.
    pub has_defaults: bool,
    /// `fall`; default 3.
    pub fall: u32,
    /// `addr`: target of checks instead of the server's address.
    pub address: Option<Spanned<AddressSpec>>,
    /// `port`: the port of checks; `None` or 0: the port of the address.
    pub port: Option<u16>,
    /// `check-send-proxy`.
    pub send_proxy: bool,
    /// `check-via-socks4`.
    pub via_socks4: bool,
    /// `check-reuse-pool`.
    pub reuse_pool: bool,
    /// `check-pool-conn-name`.
    pub pool_conn_name: Option<String>,
    /// `init-state`.
    pub initial: InitialState,
    /// `on-marked-down shutdown-sessions`.
    pub down_shuts_sessions: bool,
    /// `on-marked-up shutdown-backup-sessions`.
    pub up_shuts_backups: bool,
    /// `error-limit`; default 10.
    pub error_limit: u32,
    /// `on-error`.
    pub on_error: OnError,
    /// `healthcheck`: the section that defines the check.
    pub healthcheck: Option<Spanned<String>>,
    /// `check-proto`: `h1` or `none`.
    pub protocol: Option<Spanned<String>>,
    /// `observe`.
    pub observe: Observe,
    /// `track`: another server whose state this one shares.
    pub track: Option<Spanned<String>>,
    /// Agent check.
    pub agent: AgentSpec,
}

/// `observe`: traffic that affects the health of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Observe {
    /// Nothing.
    #[default]
    None,
    /// Connections.
    Layer4,
    /// Connections and responses.
    Layer7,
}

/// Agent check of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    /// `agent-check`.
    pub enabled: bool,
    /// `agent-check http`, Weir's own: the target of the request; `None`: the agent sends its line at once.
    pub uri: Option<String>,
    /// `agent-addr`; `None`: the server's address.
    pub address: Option<Spanned<AddressSpec>>,
    /// `agent-port`; 0: not set.
    pub port: u16,
    /// `agent-inter`, milliseconds; default 2000.
    pub interval: u64,
    /// `agent-send`.
    pub send: String,
}

impl Default for AgentSpec {
    fn default() -> Self {
        Self { enabled: false, uri: None, address: None, port: 0, interval: 2_000, send: String::new() }
    }
}

impl Default for ServerCheckSpec {
    fn default() -> Self {
        Self {
            enabled: false,
            interval: 2_000,
            fast_interval: None,
            down_interval: None,
            rise: 2,
            has_defaults: false,
            fall: 3,
            address: None,
            port: None,
            send_proxy: false,
            via_socks4: false,
            reuse_pool: false,
            pool_conn_name: None,
            initial: InitialState::default(),
            down_shuts_sessions: false,
            up_shuts_backups: false,
            error_limit: 10,
            on_error: OnError::default(),
            healthcheck: None,
            protocol: None,
            observe: Observe::default(),
            track: None,
            agent: AgentSpec::default(),
        }
    }
}

/// `init-state`: state of a server before its first check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialState {
    /// `none`: up; down if the first check fails, or, once `rise` checks have passed, after `fall` failed ones.
    #[default]
    None,
    /// `fully-up`: up until all of `fall` checks have failed.
    FullyUp,
    /// `up`: up; down if the first check fails, fully up if it passes.
    Up,
    /// `down`: up after the first passed check.
    Down,
    /// `fully-down`: up after `rise` passed checks.
    FullyDown,
}

/// `on-error`: action after `error-limit` consecutive errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Checks use `fastinter`.
    FastInterval,
    /// Counts as a failed check.
    #[default]
    FailCheck,
    /// The next failed check marks the server down.
    SuddenDeath,
    /// The server is marked down.
    MarkDown,
}

/// Scheduling of all health checks (configuration manual, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlobalChecksSpec {
    /// `spread-checks`: random variation of an interval in per cent, 0 to 50.
    pub spread: Option<u32>,
    /// `max-spread-checks`: maximum time over which the first checks of a backend are spread, in milliseconds.
    pub longest_spread: Option<u64>,
    /// `pp2-never-send-local`: PROXY headers of checks contain addresses in version 2 too.
    pub proxied: bool,
    /// `external-check`: programs may check servers.
    pub programs: bool,
    /// `external-check preserve-env`: such programs inherit the process's environment.
    pub preserve_environment: bool,
}

/// Health check method of a backend.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckSpec {
    pub method: CheckMethod,
    /// `http-check` rules, from the step's name on.
    pub http: Vec<RuleLineSpec>,
    /// Number of these rules, from the first one on, that were read before `option httpchk`: their order is not
    /// checked.
    pub http_unjudged: usize,
    /// `tcp-check` rules, from the step's name on.
    pub tcp: Vec<RuleLineSpec>,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `http-check send-state`.
    pub send_state: bool,
    /// `option log-health-checks`.
    pub log: bool,
    /// `external-check command`.
    pub command: Option<String>,
    /// `external-check path`: the `PATH` of that program.
    pub path: Option<String>,
    /// Settings written in the section itself so far.
    pub own: OwnCheckSpec,
}

/// Check settings written in a section itself, not inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnCheckSpec {
    /// `option httpchk`, or an `http-check` rule.
    pub http: bool,
    /// `option tcp-check`, or a `tcp-check` rule.
    pub tcp: bool,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `http-check send-state`.
    pub send_state: bool,
}

impl CheckSpec {
    /// Adds an `http-check` rule.
    pub(crate) fn push_http(&mut self, line: RuleLineSpec) {
        self.http.push(line);
        if !matches!(self.method, CheckMethod::Http(_)) {
            self.http_unjudged = self.http.len();
        }
    }

    /// Marks all rules as inherited from the `defaults` section: they apply until the proxy has one of its own.
    pub(crate) fn inherit(&mut self) {
        self.http.iter_mut().chain(&mut self.tcp).for_each(|line| line.inherited = true);
        self.own = OwnCheckSpec::default();
    }

    /// Starts the section's own HTTP check, which replaces everything inherited of one: request, rules and related
    /// settings.
    pub(crate) fn begin_http(&mut self) {
        if std::mem::replace(&mut self.own.http, true) {
            return;
        }
        self.http.retain(|known| !known.inherited);
        self.http_unjudged = 0;
        if let CheckMethod::Http(line) = &mut self.method {
            line.words.clear();
        }
        (self.disable_on_404, self.send_state) = (self.own.disable_on_404, self.own.send_state);
    }

    /// Starts the section's own TCP check, which replaces the inherited rules.
    pub(crate) fn begin_tcp(&mut self) {
        if !std::mem::replace(&mut self.own.tcp, true) {
            self.tcp.retain(|known| !known.inherited);
        }
    }
}

/// The option that selected the method; the last one applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CheckMethod {
    /// None: only a connection is opened.
    #[default]
    Connect,
    /// `option tcp-check`.
    Tcp,
    /// `option httpchk`: method, target, version and host, as far as written.
    Http(RuleLineSpec),
    /// `option external-check`: a program.
    Program,
    /// `option udp-check`: a datagram with these contents. If there are any, an answer is expected.
    Udp(Vec<u8>),
    /// An option that names a protocol.
    Protocol(ProtocolCheck),
}

/// Checks that use the protocol of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtocolCheck {
    /// `redis-check`.
    Redis,
    /// `smtpchk`.
    Smtp {
        /// `HELO` or `EHLO`.
        hello: String,
        /// The domain sent to the server.
        domain: String,
    },
    /// `pgsql-check`.
    Postgres {
        /// User name.
        user: String,
    },
    /// `ldap-check`.
    Ldap,
    /// `mysql-check`.
    Mysql {
        /// User name and version for the login, if configured.
        user: Option<(String, MysqlVersion)>,
        /// `query`, Weir only: a statement for the server after the login.
        query: Option<String>,
    },
    /// `ssl-hello-chk`.
    SslHello,
    /// `spop-check`.
    Spop,
    /// `grpc-check`, Weir only.
    Grpc {
        /// `service`; empty: the server as a whole.
        service: String,
        /// `authority`; `None`: the name of the backend.
        authority: Option<String>,
    },
}

/// Server version that the login is compatible with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MysqlVersion {
    /// Before 4.1.
    Pre41,
    /// 4.1 and later.
    #[default]
    Post41,
    /// 8.0 and later, with the legacy authentication plugin.
    Post80,
}

/// A `healthcheck` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthcheckSpec {
    pub name: Spanned<String>,
    /// Unusable without a type.
    pub check: CheckSpec,
    /// The section has a `type` line.
    pub typed: bool,
}
