//! One configuration that the process serves, and what each worker has at hand of it. A process goes from one to the next;
//! a session stays with the one that it began with. Must never hold what outlives a configuration: that
//! is the process's.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::spec::Spec;
use policy::live::counters::{ProxyTallies, WorkerTallies};
use policy::program::{Program, Proxy};

/// One configuration that the process serves.
pub struct Generation {
    /// The configuration, compiled.
    pub program: Arc<Program>,
    /// What the program was made of, for what is added to it; none where nothing can be.
    written: Mutex<Option<Spec>>,
}

impl Generation {
    /// Of a program; nothing can be added to it before [`Generation::know_specification`].
    pub fn new(program: Arc<Program>) -> Self {
        Self { program, written: Mutex::new(None) }
    }

    /// Remembers what the program was made of: servers and backends can be added to it then.
    pub fn know_specification(&self, written: Spec) {
        *self.written() = Some(written);
    }

    /// What the program was made of.
    pub(crate) fn written(&self) -> MutexGuard<'_, Option<Spec>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The proxy with that index, be it removed since.
    pub fn proxy(&self, index: usize) -> &Proxy {
        &self.program.proxies[index]
    }
}

/// What a worker has at hand of a frontend in one generation: all that its sessions ask for without the way through what
/// the workers share.
pub struct FrontendHandle {
    /// The generation that its sessions belong to.
    pub generation: Arc<Generation>,
    /// The frontend.
    pub proxy: Arc<Proxy>,
    /// What this worker counts of it.
    pub tallies: Arc<ProxyTallies>,
    /// Its streams may have lines.
    pub logs: bool,
}

/// What a worker has at hand of one generation.
pub struct WorkerGeneration {
    generation: Arc<Generation>,
    /// By the index of the proxy; backends that were added at run time have none.
    frontends: Box<[Rc<FrontendHandle>]>,
}

impl WorkerGeneration {
    /// For a worker that counts in `tallies`; `logs` says whether a frontend's streams may have lines.
    pub(crate) fn new(generation: Arc<Generation>, tallies: &WorkerTallies, logs: impl Fn(usize) -> bool) -> Self {
        let frontends = generation.program.proxies.iter().map(|proxy| {
            Rc::new(FrontendHandle {
                generation: Arc::clone(&generation),
                proxy: Arc::clone(proxy),
                tallies: Arc::clone(&tallies.proxies[proxy.index]),
                logs: logs(proxy.index),
            })
        });
        let frontends = frontends.collect();
        Self { generation, frontends }
    }

    /// What is at hand of the frontend with that index.
    pub fn frontend(&self, index: usize) -> &Rc<FrontendHandle> {
        &self.frontends[index]
    }
}

impl Deref for WorkerGeneration {
    type Target = Generation;

    fn deref(&self) -> &Generation {
        &self.generation
    }
}
