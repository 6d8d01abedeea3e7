//! `balance leastconn`: the server with the fewest requests for its weight.

use super::board::Board;
use super::{Candidate, Change, Load, Loads, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "leastconn",
    doc: "The server with the fewest requests, served and queued, relative to its weight; equal servers are used in turn. \
          A full server is skipped unless it has a maxqueue with free slots.",
    dynamic: true,
    hashes: false,
    make: |spec, _| matches!(spec, BalanceSpec::LeastConn).then(|| State::LeastConn(LeastConn::default())),
};

#[derive(Debug, Default)]
pub(super) struct LeastConn {
    changes: u64,
    /// In a separate allocation, because workers only read this cache line, which the fields above would invalidate.
    tables: Box<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// Servers that may get a request, by load and by how long the load has been unchanged.
    open: Board,
    /// By server.
    weights: Vec<u32>,
    /// The load of one request on a server of weight 1.
    request: u64,
}

/// The load of one request on a server of weight 1. It is divided by the weight, and is large enough for the highest
/// weight.
const REQUEST: u64 = 256;

/// Returns a server's load with one more request. The load of an idle server is zero, regardless of its weight: each
/// gets its first request before any gets a second.
fn weigh(load: Load, weight: u32, request: u64) -> u64 {
    match load.in_flight() {
        0 => 0,
        requests => (u64::from(requests) + 1) * request / u64::from(weight),
    }
}

impl LeastConn {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        let request = candidates.first().map_or(1, |candidate| u64::from(candidate.scale)) * REQUEST;
        *self.tables = Tables { open: Board::new(count), weights: vec![1; count], request };
        for candidate in candidates {
            self.tables.weights[candidate.server] = candidate.weight;
        }
    }

    pub(super) fn pick(&mut self, pick: &Pick, _loads: &Loads) -> Option<usize> {
        self.tables.open.top_without(pick.avoid).map(|(_, server)| server)
    }

    pub(super) fn on_load(&mut self, server: usize, Change { load, .. }: Change) {
        if load.has_slot() || load.has_bounded_queue_room() {
            self.changes += 1;
            let key = u128::from(weigh(load, self.tables.weights[server], self.tables.request)) << 64
                | u128::from(self.changes);
            self.tables.open.set(server, key);
        } else {
            self.tables.open.remove(server);
        }
    }
}
