//! Exchanges stick tables with other instances (configuration manual, section 11.2): one worker serves a section, with
//! a task for each connection. Must never decide which messages are sent: `live::peers` does.

mod connector;
mod conversation;
mod listening;
mod tasks;

use std::rc::Rc;
use std::sync::Arc;

use engine::peering::Exchange;
use engine::worker::Worker;
use live::peers::Section;
use rt::net::ListeningSocket;

use tasks::PeerTasks;

/// Maximum length of a message's class, type and length in bytes, rounded up.
const FRAME: usize = 16;

/// A socket that accepts peers.
#[derive(Debug)]
pub struct PeerSocket {
    /// The section: its index in [`policy::program::Program::peers`].
    pub section: usize,
    pub socket: Arc<ListeningSocket>,
}

/// Returns the worker that serves a section, by its index in [`policy::program::Program::peers`].
pub fn worker_of(section: usize, workers: usize) -> usize {
    section % workers.max(1)
}

/// Serves the sections of the calling worker, with their sockets.
pub fn start(mut sockets: Vec<PeerSocket>) {
    let Some(worker) = rt::local::<Worker>() else { return };
    let shared = &worker.process;
    for (place, party) in shared.service::<Exchange>().parties().iter().enumerate() {
        let index = party.plan.section.index;
        if worker_of(index, shared.workers()) != worker.id {
            continue;
        }
        let succeeds = shared.service::<Exchange>().expects_predecessor();
        let (limit, pid) = (worker.generation().program.global.bufsize.saturating_sub(FRAME), std::process::id());
        let Some(setting) = party.plan.setting(limit, pid, rt::random()) else { continue };
        *party.lock() = Some(Section::new(setting, rt::now(), succeeds));
        let own;
        (own, sockets) = sockets.into_iter().partition(|socket| socket.section == index);
        let circle = Rc::new(PeerTasks::new(Rc::clone(&worker), place));
        // The process waits for the end of this task, so that a successor is taught.
        worker.begin_accepting();
        rt::spawn(rt::Class::Normal, rt::NO_TAG, listening::listen(Rc::clone(&circle), own));
        rt::spawn(rt::Class::Normal, rt::NO_TAG, connector::keep(circle));
    }
}
