//! Connections of a worker to agents, and the counts of the process for each engine. Must never ask an agent.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conn::spop::Requests;
use policy::program::SpoeAgent;

/// The agent connections of one worker.
#[derive(Default)]
pub(crate) struct AgentLinks {
    pub(crate) links: RefCell<Vec<AgentLink>>,
    /// Engine ID of each agent section on this worker (SPOE.txt, "engine-id").
    pub(crate) identifiers: RefCell<Vec<(Arc<SpoeAgent>, Box<str>)>>,
}

pub(crate) struct AgentLink {
    pub(crate) agent: Arc<SpoeAgent>,
    /// Serial number of the server.
    pub(crate) server: usize,
    pub(crate) requests: Requests,
}

/// Counters of an engine since the start of the process, for its log lines.
#[derive(Debug, Default)]
pub struct AgentCounters {
    errors: AtomicU64,
    processed: AtomicU64,
}

impl AgentCounters {
    /// Counts an event or group, and returns the numbers of errors and of all so far.
    pub(crate) fn count(&self, failed: bool) -> (u64, u64) {
        let errors = self.errors.fetch_add(u64::from(failed), Ordering::Relaxed) + u64::from(failed);
        (errors, self.processed.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
