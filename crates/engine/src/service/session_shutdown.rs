//! Ends the sessions of a server on all workers: by a command of the runtime API, or because a check changed the server's state
//! (configuration manual, `on-marked-down`, `on-marked-up`). Must never choose a server.

use std::rc::Rc;

use live::ServerPlace;

use crate::session::task::StreamTask;
use crate::stream_state::Cause;
use crate::worker::{Process, Worker};

/// Sessions that are examined before the worker yields.
const BATCH: usize = 100;

/// Ends the sessions of a server.
pub async fn shut_sessions(shared: &Process, place: ServerPlace, why: Cause) {
    for number in 0..shared.workers() {
        let mut from = None;
        loop {
            let batch = crate::on_one_worker(number, move |worker| kill_some(worker, place, why, from)).await;
            match batch.flatten() {
                Some(last) => from = Some(last),
                None => break,
            }
        }
    }
}

/// Ends the sessions of a server within one batch. Returns the key at which to continue; `None`: all were examined.
fn kill_some(worker: &Rc<Worker>, place: ServerPlace, why: Cause, from: Option<u64>) -> Option<u64> {
    let sessions = worker.tasks_behind(from, BATCH);
    let is_there = |session: &StreamTask| {
        let state = session.current();
        let state = state.as_ref().and_then(|state| state.try_borrow().ok());
        state.is_some_and(|state| state.route.backend == Some(place.proxy) && state.route.server == Some(place.server))
    };
    for (_, session) in sessions.iter().filter(|(_, session)| is_there(session)) {
        session.kill(why);
    }
    if sessions.len() < BATCH { None } else { sessions.last().map(|(key, _)| key.to_bits()) }
}
