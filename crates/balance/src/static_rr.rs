//! `balance static-rr`: the servers in turn by a fixed map.

use super::map::Map;
use super::{Candidate, Change, Loads, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "static-rr",
    doc: "Each server in turn, in proportion to its weight, by a map that is built once. A full server is skipped. \
          Changing a weight at run time has no effect.",
    dynamic: false,
    hashes: false,
    make: |spec, _| matches!(spec, BalanceSpec::StaticRr).then(|| State::StaticRr(StaticRr::default())),
};

#[derive(Debug, Default)]
pub(super) struct StaticRr {
    pub(super) map: Map,
    cursor: usize,
    /// Servers with a free slot.
    open: u32,
}

impl StaticRr {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], _count: usize) {
        *self = Self { map: Map::new(candidates), ..Self::default() };
    }

    pub(super) fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        // Otherwise each request that is queued for a full backend would cause a search of the whole map.
        if self.open == 0 {
            return None;
        }
        self.map.next_open(&mut self.cursor, pick.avoid, loads)
    }

    pub(super) fn on_load(&mut self, _server: usize, change: Change) {
        if change.turned {
            self.open = if change.load.has_slot() { self.open + 1 } else { self.open - 1 };
        }
    }
}
