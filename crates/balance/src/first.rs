//! `balance first`: the first server with a free slot.

use super::board::Board;
use super::{Candidate, Change, Loads, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "first",
    doc: "The server with the lowest id that has a free slot, so that as few servers as possible are in use. Useful with \
          maxconn on the servers only; weights are ignored.",
    dynamic: true,
    hashes: false,
    make: |spec, _| matches!(spec, BalanceSpec::First).then(|| State::First(First::default())),
};

#[derive(Debug, Default)]
pub(super) struct First {
    /// In a separate allocation, because workers only read this cache line.
    tables: Box<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// Servers with a free slot, by rank.
    open: Board,
    /// By server: its position in the order of IDs.
    ranks: Vec<u32>,
}

impl First {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        *self.tables = Tables { open: Board::new(count), ranks: vec![0; count] };
        let mut order: Vec<&Candidate> = candidates.iter().collect();
        order.sort_by_key(|candidate| candidate.id);
        for (rank, candidate) in (0..).zip(order) {
            self.tables.ranks[candidate.server] = rank;
        }
    }

    pub(super) fn pick(&mut self, pick: &Pick, _loads: &Loads) -> Option<usize> {
        self.tables.open.top_without(pick.avoid).map(|(_, server)| server)
    }

    pub(super) fn on_load(&mut self, server: usize, change: Change) {
        if !change.turned {
            return;
        }
        if change.load.has_slot() {
            self.tables.open.set(server, u128::from(self.tables.ranks[server]));
        } else {
            self.tables.open.remove(server);
        }
    }
}
