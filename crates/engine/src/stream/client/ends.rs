//! Ends of streams, tasks and sessions: counts, log lines, and places that are given back. Must never decide that one ends.

use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::{conclude, filter, metrics, tracking};
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::{SharedStreamState, Worker};

impl StreamTask {
    /// Concludes the stream of a task that was killed. It ends like none that was cut off: always in the same proxy_state, as
    /// HAProxy logs it.
    pub fn conclude_killed(&self) {
        let Some(state) = self.current() else { return };
        if let Ok(mut known) = state.try_borrow_mut() {
            known.outcome = Outcome::new(self.killed.get().unwrap_or(Cause::Killed), Phase::Connect);
            if self.is_http() {
                known.status = 500;
            }
        }
        conclude::conclude(self, state);
    }

    /// Concludes the stream of a task that panicked and was dropped: what is known of it is counted and logged as internal.
    pub fn conclude_panicked(&self) {
        let Some(state) = self.current() else { return };
        if let Ok(mut state) = state.try_borrow_mut() {
            state.outcome = Outcome::new(Cause::Internal, Phase::Done);
        }
        self.state.set(None);
        conclude::conclude(self, state);
    }
}

impl Session {
    /// Whether the answer that goes out now has to tell the client that it is the last one.
    pub fn is_leaving(&self) -> bool {
        self.is_stopping() && self.departure().is_some_and(|at| rt::now() >= at) || tracking::wears_out(self)
    }

    /// Ends a stream: its state is given back.
    pub fn end(&self, state: SharedStreamState) {
        end(&self.worker, state);
    }

    /// Its connection has ended.
    pub(super) fn close(&self) {
        self.release();
        if let Some(tracking) = self.known_tracking() {
            tracking::end(&mut tracking.borrow_mut());
        }
        metrics::session_ended(self);
    }
}

/// Ends a stream: its state is given back, and its task serves none any more.
fn end(worker: &Worker, state: SharedStreamState) {
    // Filters see the state as it ends.
    let filters = state.try_borrow_mut().ok().and_then(|mut known| known.filters.take());
    if let Some(filters) = filters {
        filter::end(worker, filters);
    }
    if let Ok(mut known) = state.try_borrow_mut() {
        if let Some(task) = known.task.take().and_then(|key| worker.task(key)) {
            task.state.set(None);
        }
        tracking::end(known.tracking.get_mut());
    }
    worker.keep_stream_state(state);
}
