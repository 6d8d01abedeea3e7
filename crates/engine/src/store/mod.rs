//! Stores that several nodes share (section `store`; Weir's own): a connection to each, over which commands are sent in the
//! background, and leases of tokens for the limits of the section. Runs on the first worker. Must never be waited for by a request.

mod client;
mod connection;
mod fault;
mod leases;
mod script;
pub mod slots;

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use policy::program::Program;

use crate::worker::Worker;

pub use client::{Client, ClientCounts, Failure, Pending};
pub use fault::Fault;

/// The stores of a process, by their index in the program. There are none until the first worker has started.
#[derive(Debug, Default)]
pub struct Stores(OnceLock<Box<[Arc<Client>]>>);

impl Stores {
    /// Creates clients without connections, unless they exist.
    fn open(&self, program: &Program) -> &[Arc<Client>] {
        let client = |plan| Arc::new(Client::new(Arc::clone(plan)));
        self.0.get_or_init(|| program.stores.sections.iter().map(client).collect())
    }

    /// Returns all stores.
    pub fn all(&self) -> &[Arc<Client>] {
        self.0.get().map_or(&[], |stores| stores)
    }

    /// Returns the store of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<Client>> {
        self.all().iter().find(|client| *client.plan.name == *name)
    }
}

/// Connects to the stores. Only the first worker does so.
pub fn start(worker: &Rc<Worker>) {
    if worker.id != 0 {
        return;
    }
    let generation = worker.generation();
    if generation.program.stores.sections.is_empty() {
        return;
    }
    for (index, client) in worker.process.service::<Stores>().open(&generation.program).iter().enumerate() {
        let node = rt::random();
        let connection = connection::keep(Rc::clone(worker), index, Arc::clone(client), node);
        rt::spawn(rt::Class::Normal, rt::NO_TAG, connection);
        if worker.process.live.limits.of_store(index).next().is_some() {
            let leases = leases::keep(Rc::clone(worker), index, Arc::clone(client), node);
            rt::spawn(rt::Class::Normal, rt::NO_TAG, leases);
        }
        if worker.process.live.slots.of_store(index).next().is_some() {
            let slots = slots::keep(Rc::clone(worker), index, Arc::clone(client), node);
            rt::spawn(rt::Class::Normal, rt::NO_TAG, slots);
        }
    }
}
