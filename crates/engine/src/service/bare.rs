//! Evaluations without a stream: lookups of the runtime API, keys of log lines. Must never know the caller.

use std::cell::RefCell;
use std::net::SocketAddr;

use base::moment::WallTime;
use bumpalo::Bump;
use expression::pattern::ListStates;
use expression::sample::{Context, Meter, Probes, Transport, Value};
use expression::variable::{Store, Variables};
use live::Live;
use policy::program::Program;

use crate::generation::Generation;
use crate::probes::{Names, ProcessProbes};
use crate::worker::Worker;

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
    (program, lists): (&Program, &ListStates),
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

/// Calls `with` with a context of the process and its variables. Log formats use `name` as the frontend's name.
pub fn lend_process<T>(
    (worker, generation): (&Worker, &Generation),
    name: &str,
    with: impl FnOnce(&Context<'_>) -> T,
) -> T {
    lend_applet((worker, generation), name, None, with)
}

/// Same as [`lend_process`], with optional variables of scope `txn`.
pub fn lend_applet<T>(
    (worker, generation): (&Worker, &Generation),
    name: &str,
    store: Option<&RefCell<Store>>,
    with: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let live = &worker.process.live;
    let probes = ProcessProbes { worker, names: Names { frontend: name, ..Names::default() }, identify: None };
    worker.with_arena(|arena| {
        with(&Context {
            program: Some(&*generation.program),
            live: Some(&**live),
            lists: Some(&generation.lists),
            variables: Variables {
                process: Some(&live.variables),
                limits: live.variable_limits.as_ref(),
                stream: store,
                ..Variables::default()
            },
            ..Context::blank(arena, generation.program.global.bufsize, rt::now(), &probes, &Meter::default())
        })
    })
}
