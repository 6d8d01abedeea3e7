//! `balance leastconn`: the server with the fewest requests for its weight.

use super::heap::Heap;
use super::{Candidate, Load, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "leastconn",
    doc: "The server with the fewest requests, served and queued, for its weight; among equals the one that has waited \
          longest for a change, so that they are used in turn. A full server is passed over unless it has a maxqueue \
          with room in it.",
    dynamic: true,
    hashes: false,
    make: |spec| matches!(spec, BalanceSpec::LeastConn).then(|| State::LeastConn(LeastConn::default())),
};

#[derive(Debug, Default)]
pub(super) struct LeastConn {
    /// Servers that may get a request, by load and by how long their load has stood.
    open: Heap<(u64, u64)>,
    /// By server; 0 if it does not take part.
    weights: Vec<u32>,
    changes: u64,
}

/// What a request counts on a server of weight 1. Divided by the weight, fine enough for the greatest weight.
const REQUEST: u64 = 256;

/// A server's load as it will be with one more request. An idle server counts as nothing, whatever its weight: each
/// gets its first request before any gets a second.
fn weigh(load: Load, weight: u32) -> u64 {
    match load.in_flight() {
        0 => 0,
        requests => (u64::from(requests) + 1) * REQUEST / u64::from(weight),
    }
}

impl LeastConn {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.open = Heap::new(count);
        self.weights = super::roomy(count);
        self.weights.resize(count, 0);
        for candidate in candidates {
            self.weights[candidate.server] = candidate.weight;
            self.on_load(candidate.server, Load::IDLE);
        }
    }

    pub(super) fn pick(&mut self, pick: &Pick) -> Option<usize> {
        self.open.top_without(pick.avoid).map(|(_, server)| server)
    }

    pub(super) fn on_load(&mut self, server: usize, load: Load) {
        let weight = self.weights[server];
        if weight == 0 {
            return;
        }
        let waits_here = load.maxqueue.is_some_and(|most| load.queued < most);
        if load.has_slot() || waits_here {
            self.changes += 1;
            self.open.set(server, (weigh(load, weight), self.changes));
        } else {
            self.open.remove(server);
        }
    }
}
