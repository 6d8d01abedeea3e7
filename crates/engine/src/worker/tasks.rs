//! Tasks of a worker, and the counts that the end of the process waits for. Must never end a task.

use std::sync::atomic::Ordering;

use base::slab::Key;
use rt::LocalRc;

use super::Worker;
use crate::session::task::StreamTask;

impl Worker {
    /// Adds a task that serves streams and was counted by `reserve`; the key is its tag.
    pub fn enter(&self, task: LocalRc<StreamTask>) -> Key {
        self.tasks.borrow_mut().insert(task)
    }

    /// Counts a task for one stream, beside that of its session.
    pub fn enter_stream(&self) {
        self.process.loads.enter(self.id);
    }

    /// Counts a session of a connection that stays on the worker that has received it.
    pub(crate) fn enter_session(&self) {
        self.process.loads.enter(self.id);
    }

    /// Returns the number of tasks that serve streams: sessions, and multiplexed streams.
    pub fn tasks_here(&self) -> usize {
        self.tasks.borrow().len()
    }

    /// Returns the task with that key.
    #[inline]
    pub fn task(&self, key: Key) -> Option<LocalRc<StreamTask>> {
        self.tasks.borrow().get(key).cloned()
    }

    /// Returns at most `most` tasks that follow a key, for iterating over all tasks in batches.
    pub fn tasks_behind(&self, from: Option<u64>, most: usize) -> Vec<(Key, LocalRc<StreamTask>)> {
        let tasks = self.tasks.borrow();
        // Keys of one slot differ by its generation; slots are in order.
        let place = |key: u64| key & 0xffff_ffff;
        let behind = tasks.iter().skip_while(|(key, _)| from.is_some_and(|from| place(key.to_bits()) <= place(from)));
        behind.take(most).map(|(key, task)| (key, task.clone())).collect()
    }

    /// Removes a task that has ended.
    pub fn leave(&self, key: Key) -> Option<LocalRc<StreamTask>> {
        let task = self.tasks.borrow_mut().remove(key)?;
        self.process.leave(self.id);
        self.tell_if_drained();
        Some(task)
    }

    /// Counts a connection without a session, of a log relay or to a reverse HTTP server: the end of the process waits for it as
    /// for a session.
    pub(crate) fn enter_relay(&self) {
        self.process.loads.enter(self.id);
    }

    /// Removes such a connection from the count.
    pub(crate) fn leave_relay(&self) {
        self.process.leave(self.id);
        self.tell_if_drained();
    }

    /// Counts a task that may accept connections: a soft stop lasts until it has ended.
    pub fn begin_accepting(&self) {
        self.process.listeners.accepting.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts down the tasks that may accept connections.
    pub fn end_accepting(&self) {
        self.process.listeners.accepting.fetch_sub(1, Ordering::AcqRel);
        self.tell_if_drained();
    }
}
