//! Health checks as they are written: what a `server` line says of its own (configuration manual, section 5.2), and what
//! a backend says of the method ("option httpchk", "tcp-check" and their kin). Must never look into a rule.

use super::{AddressSpec, RuleLineSpec};
use crate::span::Spanned;

/// How the health of a server is checked.
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
    /// A `default-server` line came before it: then the health of an unchecked server is reported.
    pub has_defaults: bool,
    /// `fall`; default 3.
    pub fall: u32,
    /// `addr`: where checks go instead of the server's address.
    pub address: Option<Spanned<AddressSpec>>,
    /// `port`: the port of checks; `None` or 0: the one of the address.
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
    /// `healthcheck`: the section to check with.
    pub healthcheck: Option<Spanned<String>>,
    /// `check-proto`: `h1` or `none`.
    pub protocol: Option<Spanned<String>>,
    /// `observe`.
    pub observe: Observe,
    /// `track`: another server whose state this one shares.
    pub track: Option<Spanned<String>>,
    /// The auxiliary check.
    pub agent: AgentSpec,
}

/// `observe`: what of its traffic says something about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Observe {
    /// Nothing.
    #[default]
    None,
    /// Connections.
    Layer4,
    /// Connections and answers.
    Layer7,
}

/// How an agent is asked about its server.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    /// `agent-check`.
    pub enabled: bool,
    /// `agent-addr`; `None`: the server's address.
    pub address: Option<Spanned<AddressSpec>>,
    /// `agent-port`; 0: none.
    pub port: u16,
    /// `agent-inter`, milliseconds; default 2000.
    pub interval: u64,
    /// `agent-send`.
    pub send: String,
}

impl Default for AgentSpec {
    fn default() -> Self {
        Self { enabled: false, address: None, port: 0, interval: 2_000, send: String::new() }
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

/// `init-state`: what a server is before its first check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialState {
    /// `none`: up until its first check that fails, or until `rise` have passed and `fall` have failed behind them.
    #[default]
    None,
    /// `fully-up`: up until all of `fall` checks have failed.
    FullyUp,
    /// `up`: up, down if the first check fails; one that passes is enough.
    Up,
    /// `down`: up with the first good check.
    Down,
    /// `fully-down`: up once all of `rise` checks were good.
    FullyDown,
}

/// `on-error`: what happens when `error-limit` signs of illness came in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Checks come at `fastinter`.
    FastInterval,
    /// As if a check had failed.
    #[default]
    FailCheck,
    /// One more failed check, and the server is down.
    SuddenDeath,
    /// The server is down.
    MarkDown,
}

/// When the checks of all servers come (configuration manual, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlobalChecksSpec {
    /// `spread-checks`: per cent of an interval that is added or taken away, 0 to 50.
    pub spread: Option<u32>,
    /// `max-spread-checks`, milliseconds: over how much time the first checks of a backend are spread at most.
    pub longest_spread: Option<u64>,
    /// `pp2-never-send-local`: the PROXY headers of checks have addresses in version 2, too.
    pub proxied: bool,
    /// `external-check`: programs may check servers.
    pub programs: bool,
    /// `external-check preserve-env`: such programs see the process's environment.
    pub preserve_environment: bool,
}

/// What the servers of a backend are checked with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckSpec {
    /// The method.
    pub method: CheckMethod,
    /// `http-check` rules, from the step's name on.
    pub http: Vec<RuleLineSpec>,
    /// How many of them, from the first one on, were read before `option httpchk`: their order is not judged.
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
    /// What the section says itself so far.
    pub own: OwnCheckSpec,
}

/// What a section says of checks itself, whatever it has inherited.
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

    /// Marks all rules as the `defaults` section's: they hold until the proxy has one of its own.
    pub(crate) fn inherit(&mut self) {
        self.http.iter_mut().chain(&mut self.tcp).for_each(|line| line.inherited = true);
        self.own = OwnCheckSpec::default();
    }

    /// A section's own script of HTTP takes the place of all that it inherited of one: request, rules and what goes with
    /// them.
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

    /// The same of a script of bytes.
    pub(crate) fn begin_tcp(&mut self) {
        if !std::mem::replace(&mut self.own.tcp, true) {
            self.tcp.retain(|known| !known.inherited);
        }
    }
}

/// The option that chose how servers are checked; the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CheckMethod {
    /// None: a connection is all that is asked for.
    #[default]
    Connect,
    /// `option tcp-check`.
    Tcp,
    /// `option httpchk`: method, target, version and host, as many as were written.
    Http(RuleLineSpec),
    /// `option external-check`: a program.
    Program,
    /// An option that names a protocol.
    Protocol(ProtocolCheck),
}

/// Checks that speak the protocol of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtocolCheck {
    /// `redis-check`.
    Redis,
    /// `smtpchk`.
    Smtp {
        /// `HELO` or `EHLO`.
        hello: String,
        /// What the client calls itself.
        domain: String,
    },
    /// `pgsql-check`.
    Postgres {
        /// Who is said to come.
        user: String,
    },
    /// `ldap-check`.
    Ldap,
    /// `mysql-check`.
    Mysql {
        /// Who logs in, if anybody.
        user: Option<(String, MysqlVersion)>,
    },
    /// `ssl-hello-chk`.
    SslHello,
    /// `spop-check`.
    Spop,
    /// `grpc-check`, Weir's own.
    Grpc {
        /// `service`: what is asked for; empty: the server as a whole.
        service: String,
        /// `authority`; `None`: the name of the backend.
        authority: Option<String>,
    },
}

/// Which server a login is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MysqlVersion {
    /// Before 4.1.
    Pre41,
    /// 4.1 and later.
    #[default]
    Post41,
    /// 8.0 and later, with the plugin of old.
    Post80,
}

/// A `healthcheck` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthcheckSpec {
    /// Its name.
    pub name: Spanned<String>,
    /// What it says; without a type it cannot be used.
    pub check: CheckSpec,
    /// There was a `type` line.
    pub typed: bool,
}
