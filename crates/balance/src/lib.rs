//! Which server gets the next request, chosen from weights, loads and hashes (configuration manual, "balance"). One file is one algorithm: `rebuild` takes the
//! servers that take part, `on_load` hears of every change of a server's load, `pick` chooses. Each is called under its
//! backend's lock. Must never lock, wait, or read a clock or a source of randomness.
//!
//! To add an algorithm: its file with a `ROW`, a variant of [`State`], a line in [`TABLE`].

mod board;
mod bound;
mod ewma;
mod first;
mod hashed;
mod key;
mod leastconn;
mod loads;
mod map;
mod random;
mod ring;
mod roundrobin;
#[cfg(test)]
mod simulation;
mod static_rr;
mod sticky;
#[cfg(test)]
mod tests;

pub use key::{Recogniser, Subject};
pub use loads::{Load, Loads};

use base::moment::Moment;
use config::spec::{BalanceSpec, HashMethod, HashSpec};
use std::time::Duration;

/// A server that takes part in the balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its index in the backend.
    pub server: usize,
    /// Its weight, at least 1.
    pub weight: u32,
    /// What a whole unit of weight is in `weight`: more than 1 while some server has but a part of its own.
    pub scale: u32,
    /// Its `id`.
    pub id: u32,
    /// `hash-key`: what its places on the circle of a consistent hash are reckoned from.
    pub place: u32,
}

/// What a choice may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pick {
    /// The hash of what the request is recognised by, for algorithms that hash.
    pub hash: Option<u32>,
    /// A random number.
    pub random: u64,
    /// Requests that the backend has to do with, this one included.
    pub requests: u32,
    /// The server to leave out while another one will do.
    pub avoid: Option<usize>,
    /// When it is.
    pub now: Moment,
}

/// One algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its keyword.
    pub name: &'static str,
    /// What it does, for the reference.
    pub doc: &'static str,
    /// Whether a change of a server's weight has an effect while it runs. (Weight 0 always has.)
    pub dynamic: bool,
    /// Whether a request is bound to its server by what it carries, so that it waits in that server's queue.
    pub hashes: bool,
    /// A fresh state, if the specification asks for this algorithm.
    make: Make,
}

type Make = fn(&BalanceSpec, &HashSpec) -> Option<State>;

impl Row {
    /// Whether a change of a server's weight has an effect while it runs: a consistent hash follows it too.
    pub fn heeds_weights(&self, hash: &HashSpec) -> bool {
        self.dynamic || (self.hashes && hash.method == HashMethod::Consistent)
    }
}

/// Every algorithm, in the manual's order.
pub const TABLE: &[Row] = &[
    roundrobin::ROW,
    static_rr::ROW,
    leastconn::ROW,
    first::ROW,
    hashed::SOURCE,
    hashed::URI,
    hashed::URL_PARAM,
    hashed::EXPRESSION,
    hashed::HEADER,
    random::ROW,
    random::EWMA,
    hashed::RDP_COOKIE,
    hashed::LOG_HASH,
    sticky::ROW,
];

/// The row and a fresh state for what a configuration asks for.
pub fn find(spec: &BalanceSpec, hash: &HashSpec) -> (&'static Row, State) {
    let found = TABLE.iter().find_map(|row| (row.make)(spec, hash).map(|state| (row, state)));
    found.unwrap_or_else(|| (&TABLE[0], State::RoundRobin(roundrobin::RoundRobin::default())))
}

/// An algorithm's state.
#[derive(Debug)]
#[allow(missing_docs, private_interfaces)]
pub enum State {
    RoundRobin(roundrobin::RoundRobin),
    StaticRr(static_rr::StaticRr),
    LeastConn(leastconn::LeastConn),
    First(first::First),
    Mapped(hashed::Mapped),
    Ring(ring::Ring),
    Random(random::Random),
    Sticky(sticky::Sticky),
}

macro_rules! dispatch {
    ($state:expr, $algorithm:ident => $call:expr) => {
        match $state {
            State::RoundRobin($algorithm) => $call,
            State::StaticRr($algorithm) => $call,
            State::LeastConn($algorithm) => $call,
            State::First($algorithm) => $call,
            State::Mapped($algorithm) => $call,
            State::Ring($algorithm) => $call,
            State::Random($algorithm) => $call,
            State::Sticky($algorithm) => $call,
        }
    };
}

impl State {
    /// Starts anew with these servers out of `count`, ordered by index. They count as full until [`State::on_load`], which
    /// is called for every one of them afterwards, says otherwise.
    pub fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        dispatch!(self, algorithm => algorithm.rebuild(candidates, count));
    }

    /// The server for a request. `None`: all are full, the request waits in the backend's queue. A server that is full
    /// may be chosen too: then it waits in that server's.
    #[inline]
    pub fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        dispatch!(self, algorithm => algorithm.pick(pick, loads))
    }

    /// Hears how long a server took to answer, where that matters.
    #[inline]
    pub fn on_answer(&mut self, server: usize, took: Duration, now: Moment) {
        if let Self::Random(random) = self {
            random.note(server, took, now);
        }
    }

    /// Hears of a change of the load of a server that takes part.
    #[inline]
    pub fn on_load(&mut self, server: usize, change: Change) {
        dispatch!(self, algorithm => algorithm.on_load(server, change));
    }
}

/// A server's load has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// As it is now.
    pub load: Load,
    /// Whether it had no free slot before and has one now, or the other way round. Most algorithms care for nothing
    /// else, and so touch nothing of their own otherwise.
    pub turned: bool,
}

/// A vector with so much unused room behind its `count` elements that nothing else that is hot lies on its cache lines.
fn roomy<T>(count: usize) -> Vec<T> {
    const LINES: usize = 128;
    Vec::with_capacity(count + LINES.div_ceil(size_of::<T>().max(1)))
}
