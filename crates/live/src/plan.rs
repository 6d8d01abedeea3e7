//! The configuration of live state: plain data, created by the compiler of a configuration. Must never contain anything
//! that changes, nor text that must still be parsed.

use crate::cache::CachePlan;
use crate::lease::LimitPlan;
use crate::lease::slots::SlotPlan;
use crate::persistence::PersistencePlan;
use crate::table::StickTable;
use config::spec::{
    BalanceSpec, HashSpec, HedgeSpec, InitialState, Mode, OnError, OutlierSpec, RatesSpec, RetryBudgetSpec,
};
use expression::variable::{StoredValue, Variable, VariableLimits, VariableNames};
use std::time::Duration;

/// A server, by the index of its proxy and its index in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerPlace {
    pub proxy: usize,
    pub server: usize,
}

/// A whole configuration.
#[derive(Debug, Clone, Default)]
pub struct LivePlan {
    /// Maximum number of connections of the process (the global `maxconn`).
    pub maxconn: u32,
    /// The rate limits of the process.
    pub rates: RatesSpec,
    /// Maximum input of compression in kilobytes per second; `None`: unlimited.
    pub compression_rate: Option<u32>,
    /// By index.
    pub proxies: Vec<ProxyPlan>,
    /// Pairs of a tracked and a tracking server (`track`). If the tracked server tracks another one itself, that pair
    /// comes first.
    pub followers: Vec<(ServerPlace, ServerPlace)>,
    /// Memory limits of variables; `None`: unlimited.
    pub variable_limits: Option<VariableLimits>,
    /// Variables of the process set by the configuration, in order.
    pub variables: Vec<(Variable, StoredValue)>,
    pub names: VariableNames,
    pub tables: Vec<StickTable>,
    pub caches: Vec<CachePlan>,
    pub limits: Vec<LimitPlan>,
    pub slots: Vec<SlotPlan>,
}

#[derive(Debug, Clone, Default)]
pub struct ProxyPlan {
    /// Its index.
    pub index: usize,
    pub name: Box<str>,
    /// `mode`.
    pub mode: Mode,
    /// `disabled`.
    pub disabled: bool,
    /// `be-unpublished`: rules skip it until it is published.
    pub unpublished: bool,
    /// Its frontend part; `None`: it has none.
    pub frontend: Option<FrontendPlan>,
    /// Its backend part; `None`: it has none.
    pub backend: Option<BackendPlan>,
}

/// A proxy's client side.
#[derive(Debug, Clone, Default)]
pub struct FrontendPlan {
    /// `maxconn`; 0: accepts no connections.
    pub maxconn: u32,
    /// `rate-limit sessions`; `None`: unlimited.
    pub sessions_a_second: Option<u32>,
    /// The `maxconn` of each `bind` line; `None`: it has none.
    pub binds: Vec<Option<u32>>,
    /// Whether each `bind` line uses TLS (`maxsslrate`).
    pub secure_binds: Vec<bool>,
}

/// A proxy's server side.
#[derive(Debug, Clone, Default)]
pub struct BackendPlan {
    /// Its servers, by index.
    pub servers: Vec<ServerPlan>,
    /// `balance`.
    pub balance: BalanceSpec,
    /// `hash-type` and related keywords.
    pub hash: HashSpec,
    /// `option allbackups`.
    pub allbackups: bool,
    /// `fullconn`.
    pub fullconn: u32,
    /// Persistence cookies.
    pub persistence: PersistencePlan,
    /// `eject-outliers`.
    pub outliers: Option<OutlierSpec>,
    /// `retry-budget`.
    pub retry_budget: Option<RetryBudgetSpec>,
    /// `hedge-requests`.
    pub hedge: Option<HedgeSpec>,
}

#[derive(Debug, Clone, Copy)]
pub struct ServerPlan {
    /// Its index in its backend.
    pub index: usize,
    /// `id`.
    pub id: u32,
    /// The seed of its positions in a consistent hash (`hash-key`).
    pub place: u32,
    /// `weight`, 0 to 256.
    pub weight: u32,
    /// `maxconn`; `None`: unlimited.
    pub maxconn: Option<u32>,
    /// `minconn`.
    pub minconn: Option<u32>,
    /// `maxqueue`; `None`: unlimited.
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
    /// The thresholds of its checks; `None`: it has no checks.
    pub check: Option<CheckPlan>,
    /// It has an agent.
    pub has_agent: bool,
    /// The health level reported for it while it has no checks and has not been stopped.
    pub unchecked_level: u32,
}

impl Default for ServerPlan {
    /// A server without limits and checks.
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

/// The thresholds of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckPlan {
    /// `rise`.
    pub rise: u32,
    /// `fall`.
    pub fall: u32,
    /// `init-state`.
    pub initial: InitialState,
}

/// The observation of traffic (`observe`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservePlan {
    /// Responses count as well as connections (`layer7`).
    pub answers: bool,
    /// `error-limit`.
    pub limit: u32,
    /// `on-error`.
    pub on_error: OnError,
}
