//! What expressions see that the runtime API evaluates: the process and nothing of a stream. Must never lend a connection.

use std::cell::Cell;

use expression::sample::{Bytes, Context, Direction, Meter, Transaction};
use expression::variable::Variables;

use engine::generation::Generation;
use engine::probes::{Names, ProcessProbes};
use engine::worker::Worker;

/// Lends a context in which only the process is known.
pub(super) fn lend<T>((worker, generation): (&Worker, &Generation), with: impl FnOnce(&Context<'_>) -> T) -> T {
    let shared = &worker.process;
    worker.with_arena(|arena| {
        with(&Context {
            program: Some(&*generation.program),
            live: Some(&*shared.live),
            lists: Some(&generation.lists),
            arena,
            limit: generation.program.global.bufsize,
            now: rt::now(),
            probes: &ProcessProbes { worker, names: Names { frontend: "CLI", ..Names::default() }, identify: None },
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
            variables: Variables {
                process: Some(&shared.live.variables),
                limits: shared.live.variable_limits.as_ref(),
                ..Variables::default()
            },
            incomplete: Cell::new(false),
            exhausted: Cell::new(false),
            meter: &Meter::default(),
        })
    })
}
