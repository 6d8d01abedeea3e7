//! Evaluations that no stream stands behind: look-ups of the runtime API, keys of log lines. Must never know who asks.

use std::cell::Cell;
use std::net::SocketAddr;

use base::moment::WallTime;
use bumpalo::Bump;
use expression::pattern::ListStates;
use expression::sample::{Bytes, Context, Direction, Meter, Probes, Transaction, Transport, Value};
use expression::variable::Variables;
use live::Live;
use policy::program::Program;

/// Nothing is known but what is looked at.
struct NoProbes;

impl Probes for NoProbes {
    fn source(&self) -> Option<SocketAddr> {
        None
    }

    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    fn wall(&self) -> WallTime {
        rt::wall()
    }

    fn random(&self) -> u64 {
        rt::random()
    }

    fn transport(&self, _: Transport) -> Option<Value<'static>> {
        None
    }
}

/// Lends an evaluation what there is without a stream.
pub fn lend<T>(
    (program, lists): (&Program, &ListStates),
    live: &Live,
    arena: &Bump,
    with: impl FnOnce(&Context<'_>) -> T,
) -> T {
    with(&Context {
        program: Some(program),
        live: Some(live),
        lists: Some(lists),
        arena,
        limit: program.global.bufsize,
        now: rt::now(),
        probes: &NoProbes,
        direction: Direction::Request,
        frontend: None,
        backend: None,
        server: None,
        request: None,
        unread: None,
        response: None,
        bytes: Bytes::new(&[], true),
        transaction: Transaction::default(),
        captures: None,
        variables: Variables::default(),
        incomplete: Cell::new(false),
        exhausted: Cell::new(false),
        meter: &Meter::default(),
    })
}
