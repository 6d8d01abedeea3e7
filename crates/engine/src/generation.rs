//! One configuration that the process serves, and each worker's view of it. A process goes from one to the next; a session keeps
//! the one that it began with. Must never hold state that outlives a configuration: that belongs to the process.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use config::spec::Spec;
use expression::Conversion;
use expression::pattern::Key;
use expression::pattern::ListStates;
use live::counters::{FrontCounters, WorkerCounters};
use policy::Resolver;
use policy::compile::ScriptMap;
use policy::program::{Features, Program, Proxy};

use crate::decision_caches::DecisionCaches;
use crate::routes::{LogRoute, LogRoutes};
use crate::telemetry::{self, Channel};

/// Name and contents of a configuration file.
pub type NamedText = (String, Vec<u8>);

/// One configuration that the process serves.
pub struct Generation {
    /// Number of configurations that the process had before it.
    number: u32,
    /// The compiled configuration.
    pub program: Arc<Program>,
    /// State of its pattern lists, with runtime changes.
    pub lists: Arc<ListStates>,
    /// Its log routes.
    pub logs: Arc<LogRoutes>,
    /// Its telemetry channels, by index of the exporter in the program.
    pub channels: Box<[Arc<Channel>]>,
    /// Permissions that rules reuse.
    pub decisions: DecisionCaches,
    /// Key for the hashes of pattern lists.
    key: u64,
    /// Specification that the program was compiled from, for additions; `None`: nothing can be added.
    written: Mutex<Option<Spec>>,
    /// Configuration text by file; empty unless a dashboard shows it.
    text: OnceLock<Box<[NamedText]>>,
}

impl Generation {
    /// Creates the first configuration of a process; `random` keys the hashes of list entries. Nothing can be added to the
    /// program before [`Generation::know_specification`].
    pub fn new(program: Arc<Program>, random: u64) -> Self {
        let lists = Arc::new(ListStates::new(&program.lists, Key::new(random)));
        let channels = telemetry::channels(&program, &[]);
        let decisions = DecisionCaches::new(&program, random);
        let (logs, written, text) = (Arc::new(LogRoutes::nowhere()), Mutex::new(None), OnceLock::new());
        Self { number: 0, program, lists, logs, channels, decisions, key: random, written, text }
    }

    /// Creates a configuration that follows `before`. Pattern lists whose files are unchanged keep their runtime changes.
    pub fn following(program: Arc<Program>, before: &Self) -> Self {
        let key = Key::new(before.key);
        let lists = Arc::new(ListStates::following(&program.lists, &before.program.lists, &before.lists, key));
        Self {
            number: before.number.wrapping_add(1),
            channels: telemetry::channels(&program, &before.channels),
            decisions: DecisionCaches::following(&program, &before.program, &before.decisions, before.key),
            program,
            lists,
            logs: Arc::new(LogRoutes::nowhere()),
            key: before.key,
            written: Mutex::new(None),
            text: OnceLock::new(),
        }
    }

    /// Adds a map that a script loads before the process serves.
    ///
    /// # Errors
    /// The reason why the map cannot be loaded.
    pub fn add_script_map(&self, map: ScriptMap<'_>, resolver: &mut dyn Resolver) -> Result<Conversion, String> {
        policy::compile::add_script_map(map, &self.program, &self.lists, Key::new(self.key), resolver)
    }

    /// Replaces its log routes.
    pub(crate) fn logging(self, logs: Arc<LogRoutes>) -> Self {
        Self { logs, ..self }
    }

    /// Stores the specification that the program was compiled from, which is required for adding servers and backends.
    pub fn know_specification(&self, written: Spec) {
        *self.written() = Some(written);
    }

    /// Stores the configuration text, if a dashboard shows it.
    pub fn know_text(&self, files: impl Iterator<Item = NamedText>) {
        if self.program.has_dashboard() {
            self.text.get_or_init(|| files.collect());
        }
    }

    /// Returns the configuration text by file.
    pub fn text(&self) -> &[NamedText] {
        self.text.get().map_or(&[], |files| files)
    }

    /// Returns the specification that the program was compiled from.
    pub fn written(&self) -> MutexGuard<'_, Option<Spec>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of configurations that the process had before it; it wraps.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the proxy with that index, removed ones included.
    pub fn proxy(&self, index: usize) -> &Proxy {
        &self.program.proxies[index]
    }
}

/// The configurations of a process.
pub(crate) struct ProcessGenerations {
    /// The configuration of new connections.
    pub(crate) newest: RwLock<Arc<Generation>>,
    /// Previous configurations, while sessions use them.
    pub(crate) past: Mutex<Vec<Weak<Generation>>>,
    /// Number of workers that have not adopted the newest configuration yet.
    pub(crate) adopting: AtomicUsize,
}

impl ProcessGenerations {
    /// Creates the state with a first configuration.
    pub(crate) fn new(first: Generation) -> Self {
        Self { newest: RwLock::new(Arc::new(first)), past: Mutex::default(), adopting: AtomicUsize::new(0) }
    }

    /// Returns the newest configuration.
    pub(crate) fn newest(&self) -> Arc<Generation> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A worker's view of a frontend in one generation: data that sessions need, without access to state that workers share.
pub struct FrontendHandle {
    /// The generation of its sessions.
    pub generation: Arc<Generation>,
    pub proxy: Arc<Proxy>,
    /// This worker's counters of the frontend.
    pub counters: Arc<FrontCounters>,
    /// Whether its streams can have log lines.
    pub is_logged: bool,
    /// The optional features of its streams before they have a backend.
    pub features: Features,
    /// Where those go.
    pub log: Arc<LogRoute>,
}

/// A worker's view of one generation.
pub struct WorkerGeneration {
    generation: Arc<Generation>,
    /// By the index of the proxy, removed ones included; backends added at run time have none.
    frontends: Box<[Rc<FrontendHandle>]>,
    /// Frontends that only the previous generation has: clients that connect before their addresses are closed are served by
    /// them.
    leaving: RefCell<Vec<Rc<FrontendHandle>>>,
    /// Number of workers that accept with a newer generation and hand over no more connections of this one.
    passed: Cell<usize>,
}

impl WorkerGeneration {
    /// Creates the view of a worker that counts in `counters`; `before`: its previous view.
    pub(crate) fn new(generation: Arc<Generation>, before: Option<&Self>, counters: &WorkerCounters) -> Self {
        let places = 0..generation.program.proxies.places();
        let frontends = places.filter_map(|place| generation.program.proxies.get(place)).map(|proxy| {
            let log = generation.logs.proxy(proxy.index).unwrap_or(&generation.logs.process);
            let acme = &generation.program.acme;
            let proofs = !acme.certificates.is_empty() || !acme.sections.is_empty();
            let features = proxy.features.with_if(proofs, Features::PROOFS);
            let features = features.with_if(log.tells_backend_source(), Features::SOURCE_LOG);
            Rc::new(FrontendHandle {
                log: Arc::clone(log),
                is_logged: log.is_wanted(),
                features: features.with_if(log.has_early_lines(), Features::EARLY_LOG),
                generation: Arc::clone(&generation),
                proxy: Arc::clone(proxy),
                counters: Arc::clone(counters.proxies[proxy.index].facing()),
            })
        });
        let frontends = frontends.collect();
        let known = before.into_iter().flat_map(|before| before.frontends.iter().map(move |known| (before, known)));
        let leaving = known.filter(|(before, known)| {
            let index = known.proxy.index;
            before.program.proxies.is_present(index) && !generation.program.proxies.is_present(index)
        });
        let leaving = leaving.map(|(_, known)| Rc::clone(known)).filter(|known| known.proxy.frontend.is_some());
        let leaving = RefCell::new(leaving.collect());
        Self { generation, frontends, leaving, passed: Cell::new(0) }
    }

    /// Returns the view of a frontend.
    pub fn frontend(&self, index: usize) -> Rc<FrontendHandle> {
        let found = &self.frontends[index];
        if found.proxy.frontend.is_none()
            && let Some(leaving) = self.leaving.borrow().iter().find(|one| one.proxy.index == index)
        {
            return Rc::clone(leaving);
        }
        Rc::clone(found)
    }
}

impl Deref for WorkerGeneration {
    type Target = Generation;

    fn deref(&self) -> &Generation {
        &self.generation
    }
}

/// The generations of a worker's new sessions: the newest, and previous ones as long as another worker may hand over a connection
/// that it accepted with them.
pub(crate) struct Generations {
    newest: RefCell<Rc<WorkerGeneration>>,
    older: RefCell<Vec<Rc<WorkerGeneration>>>,
    /// Number of the generation that was announced to the other workers; a worker that starts late begins with a newer one.
    announced: Cell<u32>,
}

impl Generations {
    pub(crate) fn new(first: WorkerGeneration) -> Self {
        Self { newest: RefCell::new(Rc::new(first)), older: RefCell::default(), announced: Cell::new(0) }
    }

    pub(crate) fn newest(&self) -> Rc<WorkerGeneration> {
        Rc::clone(&self.newest.borrow())
    }

    /// Returns a generation by number. `None`: it is newer, or no connection of it can be handed over.
    pub(crate) fn numbered(&self, number: u32) -> Option<Rc<WorkerGeneration>> {
        let newest = self.newest();
        if newest.number == number {
            return Some(newest);
        }
        self.older.borrow().iter().find(|older| older.number == number).cloned()
    }

    /// Drops the handles of removed frontends, after their addresses are closed.
    pub(crate) fn drop_leaving(&self) {
        self.newest().leaving.take();
        self.older.borrow().iter().for_each(|older| drop(older.leaving.take()));
    }

    /// Returns the previously announced generation if it changed; the caller announces the new one.
    pub(crate) fn announce(&self) -> Option<u32> {
        let now = self.newest.borrow().number;
        Some(self.announced.replace(now)).filter(|before| *before != now)
    }

    /// Makes another generation the newest.
    pub(crate) fn put(&self, next: WorkerGeneration) {
        let before = self.newest.replace(Rc::new(next));
        self.older.borrow_mut().push(before);
    }

    /// Records that one of `workers` workers accepts with a newer generation than `number`. After the last one it is dropped;
    /// sessions keep their references.
    pub(crate) fn pass(&self, number: u32, workers: usize) {
        let Some(passed) = self.numbered(number) else { return };
        passed.passed.set(passed.passed.get() + 1);
        if passed.passed.get() >= workers {
            let mut older = self.older.borrow_mut();
            if let Some(place) = older.iter().position(|older| older.number == number) {
                older.swap_remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::environment::Environment;
    use config::{InputFile, LoadOptions};
    use std::net::IpAddr;

    struct NoNames;

    impl policy::Resolver for NoNames {
        fn resolve(&mut self, host: &str, _: config::spec::Family) -> Result<IpAddr, String> {
            Err(host.to_owned())
        }
    }

    fn program() -> Arc<Program> {
        let text = b"frontend f\n mode tcp\n bind 127.0.0.1:80\n timeout client 1s\n".to_vec();
        let file = InputFile { name: "haproxy.cfg".to_owned(), bytes: text };
        let loaded = config::load(&[file], Environment::new(), &LoadOptions::default());
        let compiled = policy::compile(&loaded.spec, &mut NoNames, &policy::SystemLimits::default(), &mut Vec::new());
        Arc::new(compiled.expect("a program"))
    }

    /// A generation is dropped once every worker has passed it, in any order of their announcements and this worker's own.
    #[test]
    fn a_generation_is_kept_as_long_as_connections_of_it_may_come() {
        const WORKERS: usize = 3;
        let first = Arc::new(Generation::new(program(), 7));
        let second = Arc::new(Generation::following(program(), &first));
        let counters = first.program.counters(1);
        let at_hand = |of: &Arc<Generation>| WorkerGeneration::new(Arc::clone(of), None, &counters.workers[0]);
        for own_turn in 0..WORKERS {
            let generations = Generations::new(at_hand(&first));
            assert!(generations.numbered(1).is_none());
            for heard in 0..WORKERS {
                if heard == own_turn {
                    generations.put(at_hand(&second));
                }
                assert!(generations.numbered(0).is_some(), "{heard} of {WORKERS} are past it");
                generations.pass(0, WORKERS);
            }
            assert!(generations.numbered(0).is_none());
            assert_eq!(generations.newest().number(), 1);
        }
        assert_eq!(Arc::strong_count(&first), 1);
    }

    #[test]
    fn a_worker_announces_what_it_accepts_with_once() {
        let first = Arc::new(Generation::new(program(), 7));
        let second = Arc::new(Generation::following(program(), &first));
        let counters = first.program.counters(1);
        let at_hand = |of: &Arc<Generation>| WorkerGeneration::new(Arc::clone(of), None, &counters.workers[0]);
        let generations = Generations::new(at_hand(&first));
        assert_eq!(generations.announce(), None);
        generations.put(at_hand(&second));
        assert_eq!([generations.announce(), generations.announce()], [Some(0), None]);
        // A worker that starts during an adoption has never accepted with the first generation.
        let late = Generations::new(at_hand(&second));
        assert_eq!([late.announce(), late.announce()], [Some(0), None]);
    }
}
