//! State of the `peers` sections, shared by all workers: the progress of each, and whether a predecessor may connect. Must never
//! do I/O: crate `control` does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use live::Live;
use live::peers::{Section, SectionStatus};
use policy::program::{PeersPlan, Program};

/// State of the exchange with peers.
#[derive(Debug, Default)]
pub struct Exchange {
    parties: Box<[PeersState]>,
    /// A predecessor process may connect and teach its entries.
    succeeds: AtomicBool,
}

/// A section that listens and connects.
#[derive(Debug)]
pub struct PeersState {
    /// Its configuration.
    pub plan: PeersPlan,
    /// Its state, once its worker has started it.
    section: Mutex<Option<Section>>,
}

impl Exchange {
    /// Creates the state of a program's sections, without connections.
    pub fn new(program: &Program, live: &Live) -> Self {
        let parties = PeersPlan::of(program, &live.tables).into_iter();
        let parties = parties.map(|plan| PeersState { plan, section: Mutex::new(None) });
        Self { parties: parties.collect(), succeeds: AtomicBool::new(false) }
    }

    /// Makes the sections wait some time for the predecessor of this process, which teaches its entries before it leaves. Call it
    /// before the workers start.
    pub fn expect_predecessor(&self) {
        self.succeeds.store(true, Ordering::Relaxed);
    }

    /// Whether a predecessor may connect.
    pub fn expects_predecessor(&self) -> bool {
        self.succeeds.load(Ordering::Relaxed)
    }

    /// Returns the sections that listen and connect.
    pub fn parties(&self) -> &[PeersState] {
        &self.parties
    }

    /// Returns the state of a section, by its index in [`Program::peers`]; `None`: it neither listens nor connects.
    pub fn status(&self, section: usize) -> Option<SectionStatus> {
        let party = self.parties.iter().find(|party| party.plan.section.index == section)?;
        party.lock().as_ref().map(Section::status)
    }

    /// Returns the number of peers that are connected and identified.
    pub fn connected(&self) -> u64 {
        let status = |party: &PeersState| party.lock().as_ref().map(Section::status);
        let sections = self.parties.iter().filter_map(status);
        sections.map(|section| section.peers.iter().filter(|peer| peer.running).count() as u64).sum()
    }
}

impl PeersState {
    /// Locks the section for one operation; `None` inside: its worker has not started it.
    pub fn lock(&self) -> MutexGuard<'_, Option<Section>> {
        self.section.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
