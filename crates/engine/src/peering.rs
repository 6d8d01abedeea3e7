//! What all workers share of the sections of peers: what each has learnt, and whether an older process may come. Must never
//! speak with anybody: crate `control` does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use live::Live;
use live::peers::{Section, SectionStatus};
use policy::program::{PeersPlan, Program};

/// What all workers know of the exchange.
#[derive(Debug, Default)]
pub struct Exchange {
    parties: Box<[Party]>,
    /// An older process may come to teach this one.
    succeeds: AtomicBool,
}

/// A section that listens and connects.
#[derive(Debug)]
pub struct Party {
    /// What its program says of it.
    pub plan: PeersPlan,
    /// From when its worker has begun.
    section: Mutex<Option<Section>>,
}

impl Exchange {
    /// As the program says; no peer is connected.
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

    /// Whether an older process may come to teach this one.
    pub fn expects_predecessor(&self) -> bool {
        self.succeeds.load(Ordering::Relaxed)
    }

    /// The sections that listen and connect.
    pub fn parties(&self) -> &[Party] {
        &self.parties
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
    /// The section, for one look or one step; `None` inside: its worker has not begun.
    pub fn lock(&self) -> MutexGuard<'_, Option<Section>> {
        self.section.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
