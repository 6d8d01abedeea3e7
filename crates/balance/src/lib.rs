//! Load balancing algorithms: select the server for the next request from weights, loads and hashes (configuration
//! manual, "balance"). One file per algorithm: `rebuild` takes the available servers, `on_load` receives every change
//! of a server's load, `pick` selects. Each is called under its backend's lock. Must never lock, wait, or read a clock
//! or a source of randomness.
//!
//! To add an algorithm: a file with a `ROW`, a variant of [`State`], a line in [`TABLE`].

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

/// A server available for load balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its index in the backend.
    pub server: usize,
    /// Its weight, at least 1.
    pub weight: u32,
    /// The value in `weight` of one configured unit: more than 1 while some server has a fraction of its configured
    /// weight.
    pub scale: u32,
    /// Its `id`.
    pub id: u32,
    /// `hash-key`: the base of its positions on the ring of a consistent hash.
    pub place: u32,
}

/// The parameters of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pick {
    /// The hash of the request's key, for algorithms that hash.
    pub hash: Option<u32>,
    /// A random number.
    pub random: u64,
    /// The number of the backend's requests, including this one.
    pub requests: u32,
    /// A server to avoid if another one is available.
    pub avoid: Option<usize>,
    /// The current time.
    pub now: Moment,
}

/// The description of an algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    /// Its description, for the reference.
    pub doc: &'static str,
    /// Whether a change of a server's weight takes effect at run time. (Weight 0 always does.)
    pub dynamic: bool,
    /// Whether a request is bound to its server by its hash, so that it waits in that server's queue.
    pub hashes: bool,
    /// Creates a new state, if the specification is of this algorithm.
    make: Make,
}

type Make = fn(&BalanceSpec, &HashSpec) -> Option<State>;

impl Row {
    /// Whether a change of a server's weight takes effect at run time: a consistent hash follows it too.
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

/// Returns the row and a new state of the configured algorithm.
pub fn find(spec: &BalanceSpec, hash: &HashSpec) -> (&'static Row, State) {
    let found = TABLE.iter().find_map(|row| (row.make)(spec, hash).map(|state| (row, state)));
    found.unwrap_or_else(|| (&TABLE[0], State::RoundRobin(roundrobin::RoundRobin::default())))
}

/// The state of an algorithm.
#[derive(Debug)]
#[allow(private_interfaces)]
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
    /// Restarts with these servers out of `count`, ordered by index. They count as full until [`State::on_load`], which
    /// is called afterwards for each of them.
    pub fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        dispatch!(self, algorithm => algorithm.rebuild(candidates, count));
    }

    /// Selects the server for a request. `None`: all are full, and the request waits in the backend's queue. A full
    /// server may be selected too: then the request waits in that server's queue.
    #[inline]
    pub fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        dispatch!(self, algorithm => algorithm.pick(pick, loads))
    }

    /// Records a server's response time, if the algorithm uses it.
    #[inline]
    pub fn on_answer(&mut self, server: usize, took: Duration, now: Moment) {
        if let Self::Random(random) = self {
            random.note(server, took, now);
        }
    }

    /// Records a change of an available server's load.
    #[inline]
    pub fn on_load(&mut self, server: usize, change: Change) {
        dispatch!(self, algorithm => algorithm.on_load(server, change));
    }
}

/// A change of a server's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The new load.
    pub load: Load,
    /// Whether it gained its first free slot or lost its last one. Most algorithms only need this, and otherwise touch
    /// none of their own data.
    pub turned: bool,
}

/// Creates a vector with enough spare capacity after its `count` elements that no other hot data shares its cache
/// lines.
fn roomy<T>(count: usize) -> Vec<T> {
    const LINES: usize = 128;
    Vec::with_capacity(count + LINES.div_ceil(size_of::<T>().max(1)))
}
