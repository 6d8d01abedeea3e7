//! What changes while requests flow, exact over all workers: connection counts, servers' load, queues. Every count is
//! a guard that gives its place back when it is dropped. Must never do I/O, wait, or read a clock.

mod backend;
pub mod counters;
mod entrance;
mod gate;
mod queue;
mod ramp;
mod rate;
mod servers;
mod status;
#[cfg(test)]
mod tests;
mod warming;

pub use backend::{Assignment, Handle, Local, QueueTicket, ServerSlot};
pub use entrance::Entry;
pub use gate::{BindSlot, FrontendSlot, Gate, ProcessSlot};
pub use rate::{Admission, Throttle};
pub use status::{Admin, ServerStatus};

use crate::program::{Program, Proxy};
use config::spec::RatesSpec;
use std::sync::Arc;

/// The live state of a whole program.
#[derive(Debug)]
pub struct Live {
    /// The process's connections.
    pub process: Arc<ProcessState>,
    /// By proxy index.
    pub proxies: Vec<Arc<ProxyState>>,
}

impl Live {
    /// Fresh state: nothing is connected, nothing is queued.
    pub fn new(program: &Program) -> Self {
        Self {
            process: Arc::new(ProcessState::new(program.global.maxconn, &program.global.rates)),
            proxies: program.proxies.iter().map(|proxy| Arc::new(ProxyState::new(proxy))).collect(),
        }
    }
}

/// The process's connections from clients, bounded by the global `maxconn`.
#[derive(Debug)]
pub struct ProcessState {
    gate: Gate,
    connections_a_second: Throttle,
    sessions_a_second: Throttle,
}

impl ProcessState {
    fn new(maxconn: u32, rates: &RatesSpec) -> Self {
        Self {
            gate: Gate::new(maxconn),
            connections_a_second: Throttle::new(rates.connections),
            sessions_a_second: Throttle::new(rates.sessions),
        }
    }
}

/// One proxy's live state.
#[derive(Debug)]
pub struct ProxyState {
    frontend: Gate,
    sessions_a_second: Throttle,
    /// By bind index; `None` where a line has no `maxconn` of its own.
    binds: Vec<Option<Gate>>,
    backend: backend::Backend,
}

impl ProxyState {
    fn new(proxy: &Proxy) -> Self {
        let binds = proxy.frontend.iter().flat_map(|frontend| &frontend.binds);
        Self {
            frontend: Gate::new(proxy.frontend.as_ref().map_or(0, |frontend| frontend.maxconn)),
            sessions_a_second: Throttle::new(proxy.frontend.as_ref().and_then(|front| front.limits.sessions_a_second)),
            binds: binds.map(|bind| bind.maxconn.map(Gate::new)).collect(),
            backend: backend::Backend::new(proxy),
        }
    }
}

/// What choosing a server may depend on.
#[derive(Debug, Clone, Copy, Default)]
pub struct PickContext {
    /// The hash of what the request is recognised by, for algorithms that hash.
    pub hash: Option<u32>,
    /// A random number, for `balance random`.
    pub random: u64,
    /// The server to avoid while another one will do: the one that failed, on a redispatch.
    pub exclude: Option<usize>,
    /// The server it has to be: a retry on the same server, later persistence. Ignored when that server is disabled.
    pub server: Option<usize>,
    /// The server it had better be: the one that the session has a connection to. Ignored where the balance binds
    /// requests to servers, and where that server does not take part.
    pub prefer: Option<Preference>,
}

/// A server that a request prefers (`option prefer-last-server`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preference {
    /// Its index in the backend.
    pub server: usize,
    /// It is not preferred any more where so many wait for it (`max-keep-alive-queue`).
    pub waiting: u32,
}

/// A request's place in the queues that it went through, as HAProxy logs it (configuration manual, section 8.2.3): how
/// many requests left the queue to be served from when it joined until it left, itself included; 0 if it was in none.
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
    /// Requests that the backend holds, served or waiting (`beconn`).
    pub beconn: u32,
    /// Requests that the server serves (`srv_conn`).
    pub srv_conn: u32,
}

/// What is set of a server and may change while it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Not in maintenance.
    pub enabled: bool,
    /// Its weight, 0 to 256.
    pub weight: u32,
}
