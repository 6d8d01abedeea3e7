//! DNS resolution at run time: one worker serves each `resolvers` section, resolves the names of its servers periodically, and
//! serves lookups of requests (configuration manual, section 5.3). Must never touch a request, nor decide the meaning of an
//! answer.

mod apply;
mod counters;
mod followed;
mod lookup;
mod nameserver;
mod round;
mod section;
mod services;
mod stream;

pub use counters::{Count, Counts};
pub use lookup::lookup;
pub(crate) use lookup::texts;

use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::AppendOnlyVec;
use policy::program::{Program, Server};
use wire::dns::Name;

use crate::worker::{Process, Worker};
pub(crate) use section::Section;

/// Resolution state, shared by all workers.
#[derive(Debug)]
pub struct Resolving {
    /// Counters, by section and name server.
    pub counts: Box<[Box<[Counts]>]>,
    /// Names by a server's serial number.
    names: AppendOnlyVec<Mutex<Named>>,
}

/// The name that a server's address is resolved from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The host name; `None`: none at present.
    pub host: Option<String>,
    /// It was set at run time.
    pub was_given: bool,
}

impl Resolving {
    /// Creates the state with the names of the program's servers.
    pub fn new(program: &Program) -> Self {
        let counts = program.resolvers.iter();
        let counts = counts.map(|section| section.nameservers.iter().map(|_| Counts::default()).collect());
        let mut names: Vec<Mutex<Named>> = (0..program.servers).map(|_| Mutex::default()).collect();
        for server in program.proxies.iter().filter_map(|proxy| proxy.backend.as_ref()).flat_map(|b| &b.servers) {
            let host = server.host.as_deref().filter(|_| service(server).is_none()).map(str::to_owned);
            names[server.serial] = Mutex::new(Named { host, was_given: false });
        }
        Self { counts: counts.collect(), names: names.into() }
    }

    /// Adds a server, whose serial number is the next one. Returns false if there is no capacity.
    pub fn add(&self, server: &Server) -> bool {
        let host = server.host.as_deref().filter(|_| service(server).is_none()).map(str::to_owned);
        // Servers that the runtime API added before have no name to resolve.
        while self.names.places() < server.serial && self.names.push(|_| Mutex::default()).is_ok() {}
        self.names.push(|_| Mutex::new(Named { host, was_given: false })) == Ok(server.serial)
    }

    fn lock(&self, serial: usize) -> Option<MutexGuard<'_, Named>> {
        Some(self.names.get(serial)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the name that a server's address is resolved from.
    pub fn named(&self, serial: usize) -> Named {
        self.lock(serial).map(|named| named.clone()).unwrap_or_default()
    }

    /// Restores the name that a server had in the previous process. `was_given`: a command had set it.
    pub fn resume(&self, server: &Server, name: &str, was_given: bool) {
        if Name::parse(name).is_some() {
            self.rename(server.serial, Some(name.to_owned()), was_given);
        }
    }

    fn rename(&self, serial: usize, host: Option<String>, was_given: bool) {
        if let Some(mut named) = self.lock(serial) {
            named.was_given |= was_given;
            named.host = host;
        }
    }
}

/// Returns the SRV name that a server is configured with, if it is one.
pub fn service(server: &Server) -> Option<&str> {
    let host = server.host.as_deref()?;
    host.starts_with('_').then_some(host)
}

/// Starts resolving for the sections that are assigned to this worker.
pub fn start(worker: &Rc<Worker>) {
    let generation = worker.generation();
    let program = &generation.program;
    let workers = worker.process.workers();
    for index in (0..program.resolvers.len()).filter(|index| index % workers == worker.id) {
        let section = Rc::new(Section::new(worker, index, &program.resolvers[index]));
        worker.sections.borrow_mut().insert(index, Rc::clone(&section));
        for proxy in program.proxies.iter().filter(|proxy| !proxy.disabled) {
            for server in proxy.backend.iter().flat_map(|backend| &backend.servers) {
                let Some(resolving) = server.resolving.as_ref().filter(|one| one.section == index) else { continue };
                // A command in the previous process may have set another name.
                let named = worker.process.resolving.named(server.serial);
                let given = named.host.filter(|_| named.was_given).as_deref().and_then(Name::parse);
                if let Some(name) = given.as_ref().or(resolving.name.as_ref()) {
                    section.attach(worker, (proxy.index, server.index), name, &resolving.choice);
                }
            }
        }
    }
}

/// Starts resolving the name of a server that was added at run time, if it has one.
pub fn add(shared: &Process, proxy: usize, server: &Server) {
    let Some(resolving) = &server.resolving else { return };
    let (section, place) = (resolving.section, server.index);
    let job = move |worker: &Rc<Worker>| {
        let generation = worker.process.generation();
        let Some(server) = generation.proxy(proxy).server(place) else { return };
        let Some(resolving) = &server.resolving else { return };
        let section = worker.sections.borrow().get(&section).cloned();
        if let (Some(section), Some(name)) = (section, &resolving.name) {
            section.attach(worker, (proxy, place), name, &resolving.choice);
        }
    };
    rt::post((section % shared.workers()) as rt::WorkerId, Box::new(move || crate::on_worker(job)));
}

/// Changes the name that a server is resolved from. Call it on the worker that serves its section. Returns false if it is
/// unchanged.
pub fn rename(worker: &Rc<Worker>, (proxy, server): (usize, usize), name: &Name) -> bool {
    let generation = worker.generation();
    let program = &generation.program;
    let Some(server) = program.proxies[proxy].backend.as_ref().and_then(|backend| backend.servers.get(server)) else {
        return false;
    };
    let Some(resolving) = &server.resolving else { return false };
    let Some(section) = worker.sections.borrow().get(&resolving.section).cloned() else { return false };
    let host = worker.process.resolving.named(server.serial).host;
    let before = host.as_deref().and_then(Name::parse);
    if before.as_ref() == Some(name) {
        return false;
    }
    if let Some(before) = &before {
        section.detach((proxy, server.index), before, &resolving.choice);
    }
    worker.process.resolving.rename(server.serial, name.text(), before.is_some());
    section.attach(worker, (proxy, server.index), name, &resolving.choice);
    true
}

/// Resolves a server's name again at once, after a connection timeout: its address may have changed.
pub(crate) fn suspect(worker: &Worker, server: &Server) {
    let Some(resolving) = &server.resolving else { return };
    let Some(name) = worker.process.resolving.named(server.serial).host.as_deref().and_then(Name::parse) else {
        return;
    };
    let (index, choice) = (resolving.section, resolving.choice.clone());
    let number = index % worker.process.workers();
    rt::post(
        number as rt::WorkerId,
        Box::new(move || {
            crate::on_worker(move |worker| {
                if let Some(section) = worker.sections.borrow().get(&index) {
                    section.hurry(&name, &choice);
                }
            });
        }),
    );
}
