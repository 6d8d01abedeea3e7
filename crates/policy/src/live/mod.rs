//! What changes while requests flow, exact over all workers: connection counts, servers' load, queues. Every count is
//! a guard that gives its place back when it is dropped. Must never do I/O, wait, or read a clock.

mod backend;
mod gate;

pub use backend::{Assignment, Counts, PickContext, QueuePositions, QueueTicket, ServerSlot};
pub use gate::{BindSlot, FrontendSlot, Gate, ProcessSlot};

use crate::program::{Program, Proxy};
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
            process: Arc::new(ProcessState { gate: Gate::new(program.global.maxconn) }),
            proxies: program.proxies.iter().map(|proxy| Arc::new(ProxyState::new(proxy))).collect(),
        }
    }
}

/// The process's connections from clients, bounded by the global `maxconn`.
#[derive(Debug)]
pub struct ProcessState {
    gate: Gate,
}

/// One proxy's live state.
#[derive(Debug)]
pub struct ProxyState {
    frontend: Gate,
    /// By bind index; `None` where a line has no `maxconn` of its own.
    binds: Vec<Option<Gate>>,
    backend: backend::Backend,
}

impl ProxyState {
    fn new(proxy: &Proxy) -> Self {
        let binds = proxy.frontend.iter().flat_map(|frontend| &frontend.binds);
        Self {
            frontend: Gate::new(proxy.frontend.as_ref().map_or(0, |frontend| frontend.maxconn)),
            binds: binds.map(|bind| bind.maxconn.map(Gate::new)).collect(),
            backend: backend::Backend::new(proxy),
        }
    }
}
