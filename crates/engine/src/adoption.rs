//! Goes from one configuration to the next while connections are served: what a reload in place does. Must never end a
//! session, nor change what a session that has begun is served by.

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::generation::Generation;
use crate::worker::Process;

/// Why a configuration cannot take the place of the one that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// What the process has open or counts was made of something that is different in it; what that is.
    Differs(String),
    /// Not every worker accepts with the one before yet.
    Underway,
    /// It was made to follow another one than that which is served.
    Outdated,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(what) => write!(f, "the new configuration differs in {what}, which needs a new process"),
            Self::Underway => f.write_str("the configuration before is still being taken up"),
            Self::Outdated => f.write_str("the configuration was changed meanwhile"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Process {
    /// Has new connections served by `next`, which was made by [`Generation::following`]. Each worker goes over to it at
    /// its next turn. Connections that were accepted before that stay with what they began with, to their last request;
    /// checks, agents and commands begin with the new one the next time. Counts, queues, stick tables, idle connections,
    /// the state of servers and what was set at run time go on. Variables of the process are not set anew.
    ///
    /// For a thread that runs a worker.
    ///
    /// # Errors
    /// Nothing has changed then. [`Refusal::Differs`]: see [`policy::program::Program::obstacle`].
    pub fn adopt(&self, next: Generation) -> Result<(), Refusal> {
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        if self.adopting.load(Ordering::Acquire) > 0 {
            return Err(Refusal::Underway);
        }
        if next.number() != newest.number().wrapping_add(1) {
            return Err(Refusal::Outdated);
        }
        if let Some(what) = newest.program.obstacle(&next.program) {
            return Err(Refusal::Differs(what));
        }
        self.live.names.write().unwrap_or_else(PoisonError::into_inner).extend(next.program.names.clone());
        if next.program.has_dashboard() {
            self.counters.measure_latency();
        }
        self.adopting.store(self.workers(), Ordering::Release);
        let stored = next.program.tls.stored.iter().map(|one| (one.name.to_string(), Some(one.clone())));
        self.certificates.lock().kept.extend(stored);
        let before = std::mem::replace(&mut *newest, next.into());
        drop(newest);
        drop(before);
        for worker in 0..self.workers() {
            rt::post(worker as rt::WorkerId, Box::new(|| crate::on_worker(|worker| worker.take_up())));
        }
        Ok(())
    }
}
