//! Reaction of a worker to scarce memory: logs it, and ends idle client connections. Must never end one with a pending request.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::memory::PROCESS;
use base::moment::Moment;
use config::spec::LogLevel;

use crate::worker::Worker;

/// Minimum interval between log lines.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Installs the reaction on the current worker.
pub fn start(worker: &Rc<Worker>) {
    let (worker, said) = (Rc::clone(worker), Cell::new(None::<Moment>));
    rt::set_scarcity_hook(Rc::new(move || {
        worker.wake_sessions();
        let now = rt::now();
        if said.get().is_none_or(|said| now >= said + SAY_AGAIN) {
            said.set(Some(now));
            worker.logger.message(None, LogLevel::Emerg, &sentence());
        }
    }));
}

fn sentence() -> String {
    let (used, budget) = (PROCESS.used() >> 20, PROCESS.budget() >> 20);
    format!(
        "Memory is scarce: {used} of {budget} MB are allocated. New connections and requests wait. Please check '-m', \
         'maxconn' and system limits."
    )
}
