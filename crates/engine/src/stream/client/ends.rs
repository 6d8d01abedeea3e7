//! The end of streams, tasks and sessions: statistics, log lines, and released slots. Must never decide that one ends.

use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::conclude;
use crate::stream::exchange::filter;
use crate::stream::record::{metrics, tracking};
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::{SharedStreamState, Worker};

impl StreamTask {
    /// Concludes the stream of a task that was killed. Unlike a truncated stream, it is always logged in the same
    /// phase, as in HAProxy.
    pub fn conclude_killed(&self) {
        let Some(state) = self.current() else { return };
        if let Ok(mut known) = state.try_borrow_mut() {
            known.outcome = Outcome::new(self.killed.get().unwrap_or(Cause::Killed), Phase::Connect);
            if self.is_http() {
                known.answer.status = 500;
            }
        }
        conclude::conclude(self, state);
    }

    /// Concludes the stream of a task that panicked and was dropped: it is counted, and logged as an internal error
    /// with its last known state.
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
    /// Whether the answer that is being sent has to announce that it is the last one on the connection.
    pub fn is_leaving(&self) -> bool {
        self.is_stopping() && self.departure().is_some_and(|at| rt::now() >= at) || tracking::exceeds_glitches(self)
    }

    /// Ends a stream, and releases its state.
    pub fn end(&self, state: SharedStreamState) {
        end(&self.worker, state);
    }

    /// Ends the session after its connection has ended.
    pub(super) fn close(&self) {
        self.release();
        if let Some(tracking) = self.known_tracking() {
            tracking::end(&mut tracking.borrow_mut());
        }
        metrics::session_ended(self);
    }
}

/// Ends a stream, releases its state, and detaches it from its task.
fn end(worker: &Worker, state: SharedStreamState) {
    // Filters see the final state.
    let filters = state.try_borrow_mut().ok().and_then(|mut known| known.filters.take());
    if let Some(filters) = filters {
        filter::end(worker, filters);
    }
    if let Ok(mut known) = state.try_borrow_mut() {
        if let Some(task) = known.info.task.take().and_then(|key| worker.task(key)) {
            task.state.set(None);
        }
        tracking::end(known.accounting.tracking.get_mut());
    }
    worker.keep_stream_state(state);
}
