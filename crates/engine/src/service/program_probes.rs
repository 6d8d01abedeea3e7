//! Evaluations that know the program alone. Must never look at a stream.

use std::net::SocketAddr;

use base::moment::WallTime;
use bumpalo::Bump;
use expression::pattern::ListStates;
use expression::sample::{Context, Meter, Probes, Transport, Value};
use live::Live;
use policy::program::Program;

/// Probes without a connection.
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

/// Calls `with` with a context that contains only the program and the live state.
pub fn lend<T>(
    program: &Program,
    lists: &ListStates,
    live: &Live,
    arena: &Bump,
    with: impl FnOnce(&Context<'_>) -> T,
) -> T {
    with(&Context {
        program: Some(program),
        live: Some(live),
        lists: Some(lists),
        ..Context::blank(arena, program.global.bufsize, rt::now(), &NoProbes, &Meter::default())
    })
}
