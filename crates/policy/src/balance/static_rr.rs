//! `balance static-rr`: the servers in turn by a fixed map.

use super::map::Map;
use super::{Candidate, Load, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "static-rr",
    doc: "Each server in turn, as often as its weight says, by a map that is built once. A server that is full is passed \
          over. Changing a weight at run time has no effect.",
    dynamic: false,
    hashes: false,
    make: |spec| matches!(spec, BalanceSpec::StaticRr).then(|| State::StaticRr(StaticRr::default())),
};

#[derive(Debug, Default)]
pub(super) struct StaticRr {
    map: Map,
    cursor: usize,
}

impl StaticRr {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.map = Map::new(candidates, count);
        self.cursor = 0;
    }

    pub(super) fn pick(&mut self, pick: &Pick) -> Option<usize> {
        self.map.next_open(&mut self.cursor, pick.avoid)
    }

    pub(super) fn on_load(&mut self, server: usize, load: Load) {
        self.map.on_load(server, load);
    }
}
