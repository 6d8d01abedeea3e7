//! What a worker does when memory becomes scarce: it says so, and idle connections of clients end. Must never end one that
//! has asked for something.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::memory::PROCESS;
use base::moment::Moment;
use config::spec::LogLevel;

use crate::worker::Worker;

/// How often it is said again, where memory comes and goes.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Begins to watch for it on the current worker.
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
