//! `balance roundrobin`: the servers in turn, in proportion to their weights and spread as evenly as possible.
//!
//! Every server has a position on an infinite line; the server with the smallest one is next, and advances by the sum
//! of all weights divided by its own. HAProxy does the same in whole numbers with the remainder carried over; ties and
//! starting positions follow its results, so the sequences are the same.

use super::board::Board;
use super::{Candidate, Change, Loads, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "roundrobin",
    doc: "Each server in turn, in proportion to its weight, with the turns of a server spread evenly. A full server is \
          skipped and loses that turn. Weights may change at run time.",
    dynamic: true,
    hashes: false,
    make: |spec, _| matches!(spec, BalanceSpec::RoundRobin).then(|| State::RoundRobin(RoundRobin::default())),
};

/// The next turn of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct NextTurn {
    position: u64,
    /// The remainder, as a fraction of the server's weight.
    rest: u64,
}

/// Turns are ordered by position, then by the remainder minus the weight, then by when they were set.
const ORDER_BITS: u32 = 40;

/// Keeps the second part of the order positive; more than the highest weight.
const BIAS: u64 = 1 << 13;

impl NextTurn {
    /// Advances by `times` turns.
    fn advance(&mut self, times: u64, weight: u64, total: u64) {
        let rest = self.rest + times * (total % weight);
        self.position += times * (total / weight) + rest / weight;
        self.rest = rest % weight;
    }

    fn key(&self, weight: u64, order: u64) -> u128 {
        let tie = (BIAS + self.rest - weight) << ORDER_BITS | (order & ((1 << ORDER_BITS) - 1));
        u128::from(self.position) << 64 | u128::from(tie)
    }

    fn from_key(key: u128, weight: u64) -> Self {
        Self { position: (key >> 64) as u64, rest: (key as u64 >> ORDER_BITS) + weight - BIAS }
    }
}

#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    /// The position of the last selection.
    now: u64,
    order: u64,
    total: u64,
    /// In a separate allocation, because workers only read this cache line, which the fields above would invalidate.
    tables: Box<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// The next turns, except of servers that were full at their turn.
    board: Board,
    /// By server; 0 if it is not available.
    weights: Vec<u64>,
    /// By server: the turn at which it was full.
    lost: Vec<Option<NextTurn>>,
}

impl RoundRobin {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        let mut old = std::mem::take(self);
        *self = Self {
            now: old.now,
            order: old.order,
            total: candidates.iter().map(|candidate| u64::from(candidate.weight)).sum(),
            tables: Box::new(Tables { board: Board::new(count), weights: vec![0; count], lost: vec![None; count] }),
        };
        for candidate in candidates {
            self.tables.weights[candidate.server] = u64::from(candidate.weight);
        }
        if old.total == 0 {
            self.start(candidates);
            return;
        }
        for candidate in candidates {
            let weight = u64::from(candidate.weight);
            // A server keeps the part of its interval that has passed already; a new one waits a whole interval.
            let interval = self.total / weight;
            let wait = match old.turn(candidate.server) {
                Some((turn, old_weight)) => {
                    let ahead = turn.position.saturating_sub(self.now) * old_weight;
                    interval.min(ahead * self.total / (old.total * weight))
                }
                None => interval,
            };
            self.place(candidate.server, NextTurn { position: self.now + wait, rest: 0 });
        }
    }

    /// Returns a server's next turn and its weight, if it is available.
    fn turn(&mut self, server: usize) -> Option<(NextTurn, u64)> {
        let weight = *self.tables.weights.get(server).filter(|weight| **weight > 0)?;
        self.bring_back(server);
        self.tables.board.key(server).map(|key| (NextTurn::from_key(key, weight), weight))
    }

    /// Determines the starting position of every server: the heaviest starts immediately; each of the others, heavier
    /// ones first, at the first position at which no started server is due.
    fn start(&mut self, candidates: &[Candidate]) {
        let mut waiting: Vec<usize> = candidates.iter().map(|candidate| candidate.server).collect();
        waiting.sort_by_key(|server| std::cmp::Reverse(self.tables.weights[*server]));
        let mut starts = Vec::new();
        let mut waiting = waiting.into_iter().peekable();
        for position in 0.. {
            let due = self.tables.board.top().filter(|(key, _)| (key >> 64) as u64 <= position);
            match (due, waiting.peek()) {
                (_, None) => break,
                (Some((key, server)), _) => self.take(server, key),
                (None, Some(&server)) => {
                    let turn = NextTurn { position, rest: 0 };
                    starts.push((server, turn));
                    self.take(server, turn.key(self.tables.weights[server], 0));
                    waiting.next();
                }
            }
        }
        (self.now, self.order) = (0, 0);
        for (server, turn) in starts {
            self.place(server, turn);
        }
    }

    pub(super) fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        loop {
            let (key, server) = self.tables.board.top_without(pick.avoid)?;
            if loads[server].has_slot() {
                self.now = self.now.max((key >> 64) as u64);
                self.take(server, key);
                return Some(server);
            }
            self.tables.lost[server] = Some(NextTurn::from_key(key, self.tables.weights[server]));
            self.tables.board.remove(server);
        }
    }

    pub(super) fn on_load(&mut self, server: usize, change: Change) {
        if change.turned && change.load.has_slot() {
            self.bring_back(server);
        }
    }

    /// Skips the turns that a full server has missed: otherwise it would be flooded.
    fn bring_back(&mut self, server: usize) {
        let Some(mut turn) = self.tables.lost[server].take() else { return };
        let (weight, total) = (self.tables.weights[server], self.total);
        if turn.position <= self.now {
            turn.advance((self.now - turn.position) * weight / total, weight, total);
            while turn.position <= self.now {
                turn.advance(1, weight, total);
            }
        }
        self.place(server, turn);
    }

    fn take(&mut self, server: usize, key: u128) {
        let weight = self.tables.weights[server];
        let mut turn = NextTurn::from_key(key, weight);
        turn.advance(1, weight, self.total);
        self.place(server, turn);
    }

    fn place(&mut self, server: usize, turn: NextTurn) {
        self.order += 1;
        self.tables.board.set(server, turn.key(self.tables.weights[server], self.order));
    }
}
