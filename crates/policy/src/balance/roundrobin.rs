//! `balance roundrobin`: the servers in turn, each as often as its weight says and as evenly spread as that allows.
//!
//! Every server has a position on an endless line; the server with the smallest one is next, and moves forward by the
//! sum of all weights divided by its own. HAProxy does the same in whole numbers with the rest carried along; ties and
//! starting places follow its answers, so the sequences are the same.

use super::heap::Heap;
use super::{Candidate, Load, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "roundrobin",
    doc: "Each server in turn, as often as its weight says, the turns of a server spread evenly. A server that is full is \
          passed over and loses that turn. Weights may change at run time.",
    dynamic: true,
    hashes: false,
    make: |spec| matches!(spec, BalanceSpec::RoundRobin).then(|| State::RoundRobin(RoundRobin::default())),
};

/// What turns are ordered by: the position, then the part of it that is left over less the weight, then the order in
/// which the turns were set.
type Key = (u64, i64, u64);

/// A server's next turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Turn {
    position: u64,
    /// What is left over, in parts of `weight`.
    rest: u64,
    /// 0 if it does not take part.
    weight: u64,
}

impl Turn {
    /// Moves `times` turns ahead.
    fn advance(&mut self, times: u64, total: u64) {
        let rest = self.rest + times * (total % self.weight);
        self.position += times * (total / self.weight) + rest / self.weight;
        self.rest = rest % self.weight;
    }

    fn key(&self, order: u64) -> Key {
        (self.position, self.rest as i64 - self.weight as i64, order)
    }
}

#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    /// Servers with a free slot, by turn.
    open: Heap<Key>,
    /// By server.
    turns: Vec<Turn>,
    /// The sum of the weights.
    total: u64,
    /// The position of the last pick.
    now: u64,
    order: u64,
}

impl RoundRobin {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        let old_total = std::mem::replace(&mut self.total, candidates.iter().map(|c| u64::from(c.weight)).sum());
        let mut turns = super::roomy(count);
        turns.resize(count, Turn::default());
        let old = std::mem::replace(&mut self.turns, turns);
        self.open = Heap::new(count);
        if old.iter().all(|turn| turn.weight == 0) {
            self.start(candidates);
            return;
        }
        for candidate in candidates {
            let weight = u64::from(candidate.weight);
            // A server keeps the part of its interval that it has waited already; one that is new waits a whole one.
            let interval = self.total / weight;
            let wait = match old.get(candidate.server).filter(|turn| turn.weight > 0) {
                Some(turn) => {
                    let ahead = turn.position.saturating_sub(self.now) * turn.weight;
                    interval.min(ahead * self.total / (old_total * weight))
                }
                None => interval,
            };
            self.place(candidate.server, Turn { position: self.now + wait, rest: 0, weight });
        }
    }

    /// Finds where every server starts: the heaviest at once; each of the others, heavier ones first, at the first
    /// place where none of those that have started is due.
    fn start(&mut self, candidates: &[Candidate]) {
        let mut waiting: Vec<&Candidate> = candidates.iter().collect();
        waiting.sort_by_key(|candidate| std::cmp::Reverse(candidate.weight));
        let mut waiting = waiting.into_iter();
        let mut next = waiting.next();
        let mut starts = Vec::new();
        for position in 0.. {
            let Some(candidate) = next else { break };
            match self.open.top().filter(|((due, ..), _)| *due <= position) {
                Some((_, server)) => self.take(server),
                None => {
                    let turn = Turn { position, rest: 0, weight: u64::from(candidate.weight) };
                    starts.push((candidate.server, turn));
                    self.turns[candidate.server] = turn;
                    self.take(candidate.server);
                    next = waiting.next();
                }
            }
        }
        (self.now, self.order) = (0, 0);
        for (server, turn) in starts {
            self.place(server, turn);
        }
    }

    pub(super) fn pick(&mut self, pick: &Pick) -> Option<usize> {
        let ((position, ..), server) = self.open.top_without(pick.avoid)?;
        self.now = self.now.max(position);
        self.take(server);
        Some(server)
    }

    pub(super) fn on_load(&mut self, server: usize, load: Load) {
        if self.turns[server].weight == 0 {
            return;
        }
        if !load.has_slot() {
            self.open.remove(server);
        } else if !self.open.contains(server) {
            self.skip_lost_turns(server);
            self.place(server, self.turns[server]);
        }
    }

    /// A server that was full does not get the turns that went by: it would be flooded.
    fn skip_lost_turns(&mut self, server: usize) {
        let (now, total) = (self.now, self.total);
        let turn = &mut self.turns[server];
        if turn.position <= now {
            turn.advance((now - turn.position) * turn.weight / total, total);
            while turn.position <= now {
                turn.advance(1, total);
            }
        }
    }

    fn take(&mut self, server: usize) {
        let mut turn = self.turns[server];
        turn.advance(1, self.total);
        self.place(server, turn);
    }

    fn place(&mut self, server: usize, turn: Turn) {
        self.order += 1;
        self.turns[server] = turn;
        self.open.set(server, turn.key(self.order));
    }
}
