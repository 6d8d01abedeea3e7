//! Evaluations without a stream: lookups of the runtime API, keys of log lines. Must never know the caller.

use std::cell::RefCell;

use expression::sample::{Context, Meter};
use expression::variable::{Store, Variables};

use crate::generation::Generation;
use crate::probes::{Names, ProcessProbes};
pub use crate::service::program_probes::lend;
use crate::worker::Worker;

/// Calls `with` with a context of the process and its variables. Log formats use `name` as the frontend's name.
pub fn lend_process<T>(
    worker: &Worker,
    generation: &Generation,
    name: &str,
    with: impl FnOnce(&Context<'_>) -> T,
) -> T {
    lend_applet(worker, generation, name, None, with)
}

/// Same as [`lend_process`], with optional variables of scope `txn`.
pub fn lend_applet<T>(
    worker: &Worker,
    generation: &Generation,
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
