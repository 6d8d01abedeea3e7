//! What live state is made of: plain data, which the compiler of a configuration fills in. Must never hold anything that
//! changes, nor text that still has to be interpreted.

use crate::cache::CachePlan;
use crate::persistence::PersistencePlan;
use crate::table::StickTable;
use config::spec::{
    BalanceSpec, HashSpec, HedgeSpec, InitialState, Mode, OnError, OutlierSpec, RatesSpec, RetryBudgetSpec,
};
use expression::variable::{Known, Stored, Variable, VariableLimits};
use std::time::Duration;

/// A server, named by its proxy and its place in it.
pub type ServerPlace = (usize, usize);

/// A whole configuration.
#[derive(Debug, Clone, Default)]
pub struct LivePlan {
    /// Connections of the process at most (the global `maxconn`).
    pub maxconn: u32,
    /// What the process takes a second.
    pub rates: RatesSpec,
    /// Kilobytes a second that are compressed at most; `None`: no limit.
    pub compression_rate: Option<u32>,
    /// By their index.
    pub proxies: Vec<ProxyPlan>,
    /// Servers that track others, each behind the one that it tracks (`track`), and behind that one's own pair.
    pub followers: Vec<(ServerPlace, ServerPlace)>,
    /// How much variables may hold; `None`: what they like.
    pub variable_limits: Option<VariableLimits>,
    /// Variables of the process that the configuration sets, in order.
    pub variables: Vec<(Variable, Stored)>,
    /// The names of variables.
    pub names: Known,
    /// Stick tables.
    pub tables: Vec<StickTable>,
    /// Caches.
    pub caches: Vec<CachePlan>,
}

/// A proxy.
#[derive(Debug, Clone, Default)]
pub struct ProxyPlan {
    /// Its place among the proxies.
    pub index: usize,
    /// Its name.
    pub name: Box<str>,
    /// `mode`.
    pub mode: Mode,
    /// `disabled`.
    pub disabled: bool,
    /// `be-unpublished`: at first, rules that lead to it are passed over.
    pub unpublished: bool,
    /// What it is as a frontend.
    pub frontend: FrontendPlan,
    /// What it is as a backend; `None`: it is none.
    pub backend: Option<BackendPlan>,
}

/// A proxy's client side.
#[derive(Debug, Clone, Default)]
pub struct FrontendPlan {
    /// `maxconn`; 0: it takes none.
    pub maxconn: u32,
    /// `rate-limit sessions`; `None`: no limit.
    pub sessions_a_second: Option<u32>,
    /// The `maxconn` of each `bind` line, where it has one of its own.
    pub binds: Vec<Option<u32>>,
    /// Whether each `bind` line speaks TLS (`maxsslrate`).
    pub secure_binds: Vec<bool>,
}

/// A proxy's server side.
#[derive(Debug, Clone, Default)]
pub struct BackendPlan {
    /// Its servers, each at its place.
    pub servers: Vec<ServerPlan>,
    /// `balance`.
    pub balance: BalanceSpec,
    /// `hash-type` and its kin.
    pub hash: HashSpec,
    /// `option allbackups`.
    pub allbackups: bool,
    /// `fullconn`.
    pub fullconn: u32,
    /// Cookies that bind clients to servers.
    pub persistence: PersistencePlan,
    /// `eject-outliers`.
    pub outliers: Option<OutlierSpec>,
    /// `retry-budget`.
    pub retry_budget: Option<RetryBudgetSpec>,
    /// `hedge-requests`.
    pub hedge: Option<HedgeSpec>,
}

/// A server.
#[derive(Debug, Clone, Copy)]
pub struct ServerPlan {
    /// Its place in its backend.
    pub index: usize,
    /// `id`.
    pub id: u32,
    /// What its places on the circle of a consistent hash are reckoned from (`hash-key`).
    pub place: u32,
    /// `weight`, 0 to 256.
    pub weight: u32,
    /// `maxconn`; `None`: no limit.
    pub maxconn: Option<u32>,
    /// `minconn`.
    pub minconn: Option<u32>,
    /// `maxqueue`; `None`: no limit.
    pub maxqueue: Option<u32>,
    /// In maintenance from the start.
    pub disabled: bool,
    /// `backup`.
    pub backup: bool,
    /// `slowstart`.
    pub slowstart: Option<Duration>,
    /// It has an address.
    pub resolved: bool,
    /// It tracks another server.
    pub follows: bool,
    /// How its health is judged; `None`: it is not checked.
    pub check: Option<CheckPlan>,
    /// It has an agent.
    pub has_agent: bool,
    /// The level of health that is told of it for as long as nothing checks it and nothing has stopped it.
    pub unchecked_level: u32,
}

impl Default for ServerPlan {
    /// A server without limits that nothing checks.
    fn default() -> Self {
        Self {
            index: 0,
            id: 1,
            place: 1,
            weight: 1,
            maxconn: None,
            minconn: None,
            maxqueue: None,
            disabled: false,
            backup: false,
            slowstart: None,
            resolved: true,
            follows: false,
            check: None,
            has_agent: false,
            unchecked_level: 0,
        }
    }
}

/// How the reports of checks add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckPlan {
    /// `rise`.
    pub rise: u32,
    /// `fall`.
    pub fall: u32,
    /// `init-state`.
    pub initial: InitialState,
}

/// What traffic says about a server (`observe`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// Answers count as well as connections (`layer7`).
    pub answers: bool,
    /// `error-limit`.
    pub limit: u32,
    /// `on-error`.
    pub on_error: OnError,
}
