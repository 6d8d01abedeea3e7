//! `balance first`: the first server with a free slot.

use super::heap::Heap;
use super::{Candidate, Load, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "first",
    doc: "The server with the lowest id that has a free slot, so that as few servers as possible are in use. Makes sense \
          with maxconn on the servers only; weights are ignored.",
    dynamic: true,
    hashes: false,
    make: |spec| matches!(spec, BalanceSpec::First).then(|| State::First(First::default())),
};

#[derive(Debug, Default)]
pub(super) struct First {
    /// Servers with a free slot, by rank.
    open: Heap<u32>,
    /// By server: its place in the order of the ids; `None` if it does not take part.
    ranks: Vec<Option<u32>>,
}

impl First {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.open = Heap::new(count);
        self.ranks = super::roomy(count);
        self.ranks.resize(count, None);
        let mut order: Vec<&Candidate> = candidates.iter().collect();
        order.sort_by_key(|candidate| candidate.id);
        for (rank, candidate) in order.into_iter().enumerate() {
            self.ranks[candidate.server] = Some(rank as u32);
            self.open.set(candidate.server, rank as u32);
        }
    }

    pub(super) fn pick(&mut self, pick: &Pick) -> Option<usize> {
        self.open.top_without(pick.avoid).map(|(_, server)| server)
    }

    pub(super) fn on_load(&mut self, server: usize, load: Load) {
        let Some(rank) = self.ranks[server] else { return };
        if !load.has_slot() {
            self.open.remove(server);
        } else if !self.open.contains(server) {
            self.open.set(server, rank);
        }
    }
}
