//! Weir's own: announces addresses to routers while conditions hold (route health injection). One worker serves a section, with
//! one task that evaluates its conditions and one for each router. Must never decide what a session sends: `live::bgp` does.

mod connection;
mod error_text;
mod evaluation;
mod neighbor;
mod speakers;

use std::rc::Rc;

use engine::peering::Exchange;
use engine::worker::Worker;

pub(crate) use speakers::Speakers;

use speakers::SpeakerTasks;

/// Serves the sections of the calling worker.
pub fn start() {
    let Some(worker) = rt::local::<Worker>() else { return };
    let generation = worker.generation();
    let succeeds = worker.process.service::<Exchange>().expects_predecessor();
    worker.process.service::<Speakers>().start(&generation.program, succeeds);
    let sections = generation.program.bgp.len();
    for section in (0..sections).filter(|section| section % worker.process.workers().max(1) == worker.id) {
        let tasks = Rc::new(SpeakerTasks::new(Rc::clone(&worker), section));
        rt::spawn(rt::Class::Normal, rt::NO_TAG, evaluation::keep(Rc::clone(&tasks)));
        for neighbor in 0..tasks.neighbors() {
            // The process waits for the end of this task, so that routes are withdrawn.
            worker.begin_accepting();
            rt::spawn(rt::Class::Normal, rt::NO_TAG, neighbor::keep(Rc::clone(&tasks), neighbor));
        }
    }
}
