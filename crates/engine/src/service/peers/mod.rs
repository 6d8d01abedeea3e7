//! Speaks with other instances about stick tables (configuration manual, section 11.2): one worker serves a section, with
//! a task for each connection. Must never decide what is said: `live::peers` does.

mod calling;
mod circle;
mod conversation;
mod listening;

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use live::Live;
use live::peers::{Section, SectionStatus};
use policy::program::{PeersPlan, Program};
use rt::net::ListeningSocket;

use crate::worker::Worker;
use circle::Circle;

/// Bytes of a message's class, type and length at most, and some more.
const FRAME: usize = 16;

/// A socket that peers come in at.
#[derive(Debug)]
pub struct PeerSocket {
    /// The section: its place in [`Program::peers`].
    pub section: usize,
    /// It.
    pub socket: Arc<ListeningSocket>,
}

/// What all workers know of the exchange.
#[derive(Debug, Default)]
pub struct Exchange {
    parties: Box<[Party]>,
    /// An older process may come to teach this one.
    succeeds: AtomicBool,
}

/// A section that listens and connects.
#[derive(Debug)]
struct Party {
    plan: PeersPlan,
    /// From when its worker has begun.
    section: Mutex<Option<Section>>,
}

impl Exchange {
    /// As the program says; nobody is connected.
    pub fn new(program: &Program, live: &Live) -> Self {
        let parties = PeersPlan::of(program, &live.tables).into_iter();
        let parties = parties.map(|plan| Party { plan, section: Mutex::new(None) });
        Self { parties: parties.collect(), succeeds: AtomicBool::new(false) }
    }

    /// An older process of this instance is leaving for this one: it may come to teach what it knows, which is waited for
    /// a while. To be called before the workers begin.
    pub fn expect_predecessor(&self) {
        self.succeeds.store(true, Ordering::Relaxed);
    }

    /// What is told of a section, by its place in [`Program::peers`]; `None`: it neither listens nor connects.
    pub fn status(&self, section: usize) -> Option<SectionStatus> {
        let party = self.parties.iter().find(|party| party.plan.section.index == section)?;
        party.lock().as_ref().map(Section::status)
    }

    /// Peers that are connected and have said who they are.
    pub fn connected(&self) -> u64 {
        let status = |party: &Party| party.lock().as_ref().map(Section::status);
        let sections = self.parties.iter().filter_map(status);
        sections.map(|section| section.peers.iter().filter(|peer| peer.running).count() as u64).sum()
    }
}

impl Party {
    fn lock(&self) -> MutexGuard<'_, Option<Section>> {
        self.section.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which worker serves a section: its place in [`Program::peers`].
pub fn worker_of(section: usize, workers: usize) -> usize {
    section % workers.max(1)
}

/// Serves the sections that are the calling worker's, with the sockets of those.
pub fn start(mut sockets: Vec<PeerSocket>) {
    let Some(worker) = rt::local::<Worker>() else { return };
    let shared = &worker.process;
    for (place, party) in shared.exchange.parties.iter().enumerate() {
        let index = party.plan.section.index;
        if worker_of(index, shared.workers()) != worker.id {
            continue;
        }
        let succeeds = shared.exchange.succeeds.load(Ordering::Relaxed);
        let (limit, pid) = (worker.generation().program.global.bufsize.saturating_sub(FRAME), std::process::id());
        let Some(setting) = party.plan.setting(limit, pid) else { continue };
        *party.lock() = Some(Section::new(setting, rt::now(), succeeds));
        let own;
        (own, sockets) = sockets.into_iter().partition(|socket| socket.section == index);
        let circle = Rc::new(Circle::new(Rc::clone(&worker), place));
        // The end of the process waits until a successor was taught.
        worker.begin_accepting();
        rt::spawn(rt::Class::Normal, rt::NO_TAG, listening::listen(Rc::clone(&circle), own));
        rt::spawn(rt::Class::Normal, rt::NO_TAG, calling::keep(circle));
    }
}
