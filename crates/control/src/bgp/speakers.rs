//! State of the `bgp` sections, shared with the commands that show it, and the wakers of their tasks. Must never hold the lock
//! while anything is awaited.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};

use config::spec::LogLevel;
use engine::worker::Worker;
use live::bgp::{RoutePlan, Routes, Session};
use policy::program::{BgpSpeaker, Program};

/// The speakers of a process, by section.
#[derive(Debug, Default)]
pub(crate) struct Speakers(OnceLock<Box<[Mutex<SpeakerState>]>>);

/// State of a speaker.
#[derive(Debug)]
pub(crate) struct SpeakerState {
    pub(crate) routes: Routes,
    /// By neighbor.
    pub(crate) sessions: Vec<Session>,
}

impl SpeakerState {
    fn new(speaker: &BgpSpeaker, succeeds: bool) -> Self {
        let session = |plan: &policy::program::BgpNeighbor| {
            Session::new(plan.session.clone(), Arc::clone(&speaker.routes), succeeds, rt::now())
        };
        let sessions = speaker.neighbors.iter().map(session).collect();
        Self { routes: Routes::new(speaker.routes.len()), sessions }
    }
}

impl Speakers {
    /// Creates the state of all sections. `succeeds`: an older process has sessions with their routers.
    pub(super) fn start(&self, program: &Program, succeeds: bool) {
        let state = |speaker| Mutex::new(SpeakerState::new(speaker, succeeds));
        self.0.get_or_init(|| program.bgp.iter().map(state).collect());
    }

    /// Locks the state of a section for one operation; `None`: there is no such section, or it was not started.
    pub(crate) fn lock(&self, section: usize) -> Option<MutexGuard<'_, SpeakerState>> {
        let states = self.0.get()?;
        states.get(section).map(|state| state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The tasks of one section.
pub(super) struct SpeakerTasks {
    pub(super) worker: Rc<Worker>,
    pub(super) section: usize,
    /// Wakers of the tasks of routers.
    wakers: RefCell<Vec<Option<Waker>>>,
}

impl SpeakerTasks {
    pub(super) fn new(worker: Rc<Worker>, section: usize) -> Self {
        let neighbors = worker.generation().program.bgp.get(section).map_or(0, |speaker| speaker.neighbors.len());
        Self { worker, section, wakers: RefCell::new(vec![None; neighbors]) }
    }

    /// Whether the sessions end: that is before `grace`, so that routers send no new clients, and a newer process can connect.
    pub(super) fn is_over(&self) -> bool {
        self.worker.process.is_leaving()
    }

    /// Returns the number of routers.
    pub(super) fn neighbors(&self) -> usize {
        self.wakers.borrow().len()
    }

    /// Calls `work` with the locked state. `None`: there is none.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut SpeakerState) -> T) -> Option<T> {
        let mut state = self.worker.process.service::<Speakers>().lock(self.section)?;
        Some(work(&mut state))
    }

    /// Calls `work` with the session of a router.
    pub(super) fn with_session<T>(&self, neighbor: usize, work: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.with(|state| state.sessions.get_mut(neighbor).map(work)).flatten()
    }

    /// Registers the task of a router, to be woken when routes change.
    pub(super) fn wait(&self, neighbor: usize, cx: &Context<'_>) {
        if let Some(place) = self.wakers.borrow_mut().get_mut(neighbor) {
            match place {
                Some(waker) if waker.will_wake(cx.waker()) => {}
                place => *place = Some(cx.waker().clone()),
            }
        }
    }

    /// Called when routes have changed.
    pub(super) fn wake_neighbors(&self) {
        self.wakers.borrow().iter().flatten().for_each(Waker::wake_by_ref);
    }

    /// Logs a line about the section.
    pub(super) fn log(&self, level: LogLevel, text: &str) {
        let generation = self.worker.generation();
        let Some(speaker) = generation.program.bgp.get(self.section) else { return };
        self.worker.logger.message(None, level, &format!("bgp {}: {text}", speaker.name));
    }

    /// Returns the plans of the routes.
    pub(super) fn routes(&self) -> Arc<[RoutePlan]> {
        self.worker.generation().program.bgp.get(self.section).map_or_else(|| [].into(), |one| Arc::clone(&one.routes))
    }
}
