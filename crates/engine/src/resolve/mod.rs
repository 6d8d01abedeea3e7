//! DNS resolution at run time: one worker serves each `resolvers` section, resolves the names of its servers periodically, and
//! serves lookups of requests (configuration manual, section 5.3). Must never touch a request, nor decide the meaning of an
//! answer.

mod apply;
mod counters;
mod lookup;
mod names;
mod nameserver;
mod resolved_name;
mod round;
mod section;
mod services;
mod state;
mod stream;

pub use counters::{Count, Counts};
pub use lookup::lookup;
pub(crate) use lookup::texts;
pub use names::{Resolving, ServerHostName, service};

use std::rc::Rc;

use live::ServerPlace;
use policy::program::Server;
use wire::dns::Name;

use crate::worker::{Process, Worker};
pub(crate) use state::Section;

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
                let named = worker.process.service::<Resolving>().named(server.serial);
                let given = named.host.filter(|_| named.was_given).as_deref().and_then(Name::parse);
                if let Some(name) = given.as_ref().or(resolving.name.as_ref()) {
                    section.attach(worker, proxy.place_of(server), name, &resolving.choice);
                }
            }
        }
    }
}

/// Starts resolving the name of a server that was added at run time, if it has one.
pub fn add(shared: &Process, proxy: usize, server: &Server) {
    let Some(resolving) = &server.resolving else { return };
    let (section, place) = (resolving.section, ServerPlace { proxy, server: server.index });
    let job = move |worker: &Rc<Worker>| {
        let generation = worker.process.generation();
        let Some(server) = generation.proxy(proxy).server(place.server) else { return };
        let Some(resolving) = &server.resolving else { return };
        let section = worker.sections.borrow().get(&section).cloned();
        if let (Some(section), Some(name)) = (section, &resolving.name) {
            section.attach(worker, place, name, &resolving.choice);
        }
    };
    rt::post((section % shared.workers()) as rt::WorkerId, Box::new(move || crate::on_worker(job)));
}

/// Changes the name that a server is resolved from. Call it on the worker that serves its section. Returns false if it is
/// unchanged.
pub fn rename(worker: &Rc<Worker>, place: ServerPlace, name: &Name) -> bool {
    let generation = worker.generation();
    let program = &generation.program;
    let backend = program.proxies[place.proxy].backend.as_ref();
    let Some(server) = backend.and_then(|backend| backend.servers.get(place.server)) else { return false };
    let Some(resolving) = &server.resolving else { return false };
    let Some(section) = worker.sections.borrow().get(&resolving.section).cloned() else { return false };
    let host = worker.process.service::<Resolving>().named(server.serial).host;
    let before = host.as_deref().and_then(Name::parse);
    if before.as_ref() == Some(name) {
        return false;
    }
    if let Some(before) = &before {
        section.detach(place, before, &resolving.choice);
    }
    worker.process.service::<Resolving>().rename(server.serial, name.text(), before.is_some());
    section.attach(worker, place, name, &resolving.choice);
    true
}

/// Resolves a server's name again at once, after a connection timeout: its address may have changed.
pub(crate) fn resolve_again(worker: &Worker, server: &Server) {
    let Some(resolving) = &server.resolving else { return };
    let Some(name) = worker.process.service::<Resolving>().named(server.serial).host.as_deref().and_then(Name::parse)
    else {
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
