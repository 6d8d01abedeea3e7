//! The state that changes while requests are served, exact over all workers: connection counts, server load, queues.
//! Every count is a guard that is released when dropped. Must never do I/O, wait, or read a clock.

mod added;
mod admission;
mod availability;
mod backend;
pub mod bgp;
mod budget;
pub mod cache;
mod compression;
mod cookies;
pub mod counters;
pub mod decisions;
mod gate;
pub mod health;
mod hedging;
pub mod history;
pub mod lease;
mod load_limits;
mod mirroring;
mod observation;
mod outages;
mod passwords;
pub mod peers;
pub mod persistence;
mod plan;
mod queue;
mod rate;
mod resumption;
pub mod saved_state;
mod server;
mod server_transitions;
mod servers;
mod slow_start;
mod status;
mod stream_shares;
pub mod table;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod trace;
mod undecided;

pub use added::AddedNames;
pub use admission::Entry;
pub use availability::{Availability, ServerCounts};
pub use backend::{Assignment, Handle, Local, QueueTicket, ServerSlot};
pub use compression::{CompressionLimits, ReservedMemory};
pub use cookies::{Change as CookieChange, LiveCookies};
pub use gate::{Gate, Inside};
pub use hedging::{HedgeCounts, Hedged};
pub use mirroring::{MirrorCounts, Mirrored};
pub use observation::{Ejection, Observation, Reason};
pub use outages::{LastChange, OutageReport};
pub use passwords::{Passwords, Proof};
pub use plan::{BackendPlan, CheckPlan, FrontendPlan, LivePlan, ObservePlan, ProxyPlan, ServerPlace, ServerPlan};
pub use rate::{Admission, Throttle};
pub use server_transitions::Checker;
pub use status::{Admin, AdoptedState, Removal, ServerStatus, TrackedState, Transition};
pub use stream_shares::{StreamShare, StreamShares};

use base::AppendOnlyVec;
use base::moment::Moment;
use config::spec::RatesSpec;
use expression::sample::LiveState;
use expression::variable::{Store, StoredValue, Variable, VariableLimits, VariableNames, Variables};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, RwLock};

/// The live state of a whole program.
#[derive(Debug)]
pub struct Live {
    /// The process's connections.
    pub process: Arc<ProcessState>,
    /// By proxy index.
    pub proxies: AppendOnlyVec<Arc<ProxyState>>,
    /// Added backends, by name.
    pub added: AddedNames,
    /// Variables of the process (`proc`).
    pub variables: RwLock<Store>,
    /// Memory limits of variables; `None`: unlimited.
    pub variable_limits: Option<VariableLimits>,
    /// The names of variables, including those added by the runtime API.
    pub names: RwLock<VariableNames>,
    /// Verified passwords.
    pub passwords: Passwords,
    /// Stick tables, by their index in the program.
    pub tables: table::Tables,
    /// Trace settings.
    pub traces: trace::Traces,
    /// Caches, by their index in the program.
    pub caches: cache::Caches,
    /// Limits of stores, by their index in the program.
    pub limits: lease::Limits,
    /// Servers whose slots are leased from stores (`maxconn-store`).
    pub slots: lease::slots::LeasedServers,
    /// Streams granted to multiplexed connections.
    pub stream_shares: Arc<StreamShares>,
}

impl LiveState for Live {}

impl Live {
    /// Creates the initial state, without connections and requests. `random` keys the hashes of entries added by
    /// requests.
    pub fn new(plan: LivePlan, random: u64) -> Self {
        let limits = plan.variable_limits;
        let process = Arc::new(ProcessState::new(plan.maxconn, &plan.rates, plan.compression_rate));
        let live = Self {
            proxies: plan.proxies.iter().map(|proxy| Arc::new(ProxyState::new(proxy, &process))).collect(),
            process,
            added: AddedNames::default(),
            variables: first_variables(&plan.variables, limits.as_ref()),
            variable_limits: limits,
            names: RwLock::new(plan.names),
            passwords: Passwords::new(random.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15),
            traces: trace::Traces::default(),
            tables: table::Tables::new(&plan.tables, random.rotate_left(16) ^ 0xd6e8_feb8_6659_fd93),
            caches: cache::Caches::new(&plan.caches, random.rotate_left(48) ^ 0xa076_1d64_78bd_642f),
            limits: lease::Limits::new(&plan.limits, random.rotate_left(8) ^ 0xc2b2_ae3d_27d4_eb4f),
            slots: lease::slots::LeasedServers::new(plan.slots),
            stream_shares: Arc::default(),
        };
        live.slots.begin(&live.proxies);
        // Tracking servers start in the state of the tracked ones.
        for (leader, follower) in plan.followers {
            live.follow(leader, follower, Moment::default());
        }
        live
    }

    /// Applies the state of a tracked server to a tracking one;
    /// returns what changed. If the tracked server changes concurrently, the call detects it and repeats.
    pub fn follow(&self, leader: ServerPlace, follower: ServerPlace, now: Moment) -> Option<Transition> {
        const ATTEMPTS: usize = 64;
        let standing = || self.proxies.get(leader.proxy)?.standing(leader.server);
        let mut all: Option<Transition> = None;
        for _ in 0..ATTEMPTS {
            let seen = standing()?;
            let change = self.proxies.get(follower.proxy)?.follow(follower.server, seen, now)?;
            let before = all.map_or(change.before, |all| all.before);
            all = Some(Transition { before, after: change.after });
            if standing()? == seen {
                break;
            }
        }
        all
    }
}

/// The variables set by the configuration.
fn first_variables(written: &[(Variable, StoredValue)], limits: Option<&VariableLimits>) -> RwLock<Store> {
    let store = RwLock::default();
    let variables = Variables { process: Some(&store), limits, ..Variables::default() };
    for (variable, stored) in written {
        variables.set(variable, stored.value());
    }
    store
}

/// The process's connections from clients, limited by the global `maxconn`.
#[derive(Debug)]
pub struct ProcessState {
    gate: Gate,
    connections_a_second: Throttle,
    sessions_a_second: Throttle,
    tls_sessions_a_second: Throttle,
    /// The client side of all backends.
    unused: Arc<FrontState>,
    /// Limits of compression.
    pub compression: Arc<CompressionLimits>,
}

impl ProcessState {
    fn new(maxconn: u32, rates: &RatesSpec, compression_rate: Option<u32>) -> Self {
        Self {
            gate: Gate::new(maxconn),
            connections_a_second: Throttle::new(rates.connections),
            sessions_a_second: Throttle::new(rates.sessions),
            tls_sessions_a_second: Throttle::new(rates.tls_sessions),
            unused: Arc::new(FrontState::new(&FrontendPlan::default())),
            compression: Arc::new(CompressionLimits::new(compression_rate)),
        }
    }
}

/// The live state of a proxy's client side.
#[derive(Debug)]
struct FrontState {
    gate: Gate,
    sessions_a_second: Throttle,
    /// By bind index; `None`: the line has no `maxconn` of its own.
    binds: Vec<Option<Gate>>,
    secure_binds: Vec<bool>,
}

impl FrontState {
    fn new(front: &FrontendPlan) -> Self {
        Self {
            gate: Gate::new(front.maxconn),
            sessions_a_second: Throttle::new(front.sessions_a_second),
            binds: front.binds.iter().map(|maxconn| maxconn.map(Gate::new)).collect(),
            secure_binds: front.secure_binds.clone(),
        }
    }
}

/// One proxy's live state.
#[derive(Debug)]
pub struct ProxyState {
    /// The process's connections: a connection of the frontend is also one of the process.
    process: Arc<ProcessState>,
    /// Whether it is disabled or unpublished.
    publication: added::Publication,
    /// The client side; all backends without one have the same, which is never entered.
    front: Arc<FrontState>,
    backend: backend::Backend,
    /// Number of tasks registered for advancing `slowstart`.
    attendants: AtomicU32,
    /// Consecutive errors of each server (`observe`).
    symptoms: AppendOnlyVec<AtomicU32>,
    /// The values of its persistence cookies.
    pub cookies: LiveCookies,
    /// `retry-budget`.
    budget: Option<budget::Budget>,
    /// `hedge-requests`.
    hedging: Option<Box<hedging::Hedging>>,
    /// Counters of mirrored requests.
    mirroring: mirroring::Mirroring,
    /// Reports about requests without a decision.
    undecided: undecided::Undecided,
}

impl ProxyState {
    fn new(proxy: &ProxyPlan, process: &Arc<ProcessState>) -> Self {
        let (front, back) = (&proxy.frontend, proxy.backend.as_ref());
        Self {
            process: Arc::clone(process),
            publication: added::Publication::new(proxy),
            front: front.as_ref().map_or_else(|| Arc::clone(&process.unused), |front| Arc::new(FrontState::new(front))),
            backend: backend::Backend::new(back),
            attendants: AtomicU32::new(0),
            symptoms: back.iter().flat_map(|back| &back.servers).map(|_| AtomicU32::new(0)).collect(),
            cookies: LiveCookies::new(back.map(|back| &back.persistence)),
            budget: back.and_then(|back| back.retry_budget).map(budget::Budget::new),
            hedging: back.and_then(|back| back.hedge).map(|hedge| Box::new(hedging::Hedging::new(hedge))),
            mirroring: mirroring::Mirroring::default(),
            undecided: undecided::Undecided::default(),
        }
    }
}

/// The inputs for selecting a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct PickContext {
    /// The hash of the request, for hash-based algorithms.
    pub hash: Option<u32>,
    /// A random number, for `balance random`.
    pub random: u64,
    /// The server to avoid if another one is available: the one that failed, on a redispatch.
    pub exclude: Option<usize>,
    /// The server that must be used: by `use-server` or persistence. Ignored when that server is disabled.
    pub server: Option<usize>,
    /// That server must be used even when it is disabled (`force-persist`, `option persist`).
    pub forced: bool,
    /// Its priority in the queue.
    pub priority: Priority,
    /// The preferred server: the one that the session has a connection to. Ignored if the algorithm binds requests to
    /// servers, or that server is unavailable.
    pub prefer: Option<Preference>,
}

/// The priority of a request in the queue (`set-priority-class`, `set-priority-offset`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Priority {
    /// Lower classes go first.
    pub class: i16,
    /// Milliseconds added to its arrival time.
    pub offset: i32,
    /// Its arrival time.
    pub now: Moment,
}

/// A server that a request prefers (`option prefer-last-server`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preference {
    /// Its index in the backend.
    pub server: usize,
    /// The preference is dropped if that many requests are queued for it (`max-keep-alive-queue`).
    pub waiting: u32,
}

/// A request's positions in the queues that it passed, as HAProxy logs them (configuration manual, section 8.2.3): the
/// number of requests dequeued from when it joined until it left, including itself; 0 if it was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueuePositions {
    /// `srv_queue`.
    pub server: u32,
    /// `backend_queue`.
    pub backend: u32,
}

/// Counts for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests of the backend, served or queued (`beconn`).
    pub beconn: u32,
    /// Requests being served by the server (`srv_conn`).
    pub srv_conn: u32,
}

/// The settings of a server that may change at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Not in maintenance.
    pub enabled: bool,
    /// Its weight, 0 to 256.
    pub weight: u32,
}
