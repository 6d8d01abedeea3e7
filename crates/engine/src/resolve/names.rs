//! Names of servers and counts of resolutions, for all workers. Must never ask for a name.

use std::sync::{Mutex, MutexGuard, PoisonError};

use base::AppendOnlyVec;
use policy::program::{Program, Server};
use wire::dns::Name;

use super::counters::Counts;

/// Resolution state, shared by all workers.
#[derive(Debug, Default)]
pub struct Resolving {
    /// Counters, by section and name server.
    pub counts: Box<[Box<[Counts]>]>,
    /// Names by a server's serial number.
    names: AppendOnlyVec<Mutex<ServerHostName>>,
}

/// The name that a server's address is resolved from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerHostName {
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
        let mut names: Vec<Mutex<ServerHostName>> = (0..program.servers).map(|_| Mutex::default()).collect();
        for server in program.proxies.iter().filter_map(|proxy| proxy.backend.as_ref()).flat_map(|b| &b.servers) {
            let host = server.host.as_deref().filter(|_| service(server).is_none()).map(str::to_owned);
            names[server.serial] = Mutex::new(ServerHostName { host, was_given: false });
        }
        Self { counts: counts.collect(), names: names.into() }
    }

    /// Adds a server, whose serial number is the next one. Returns false if there is no capacity.
    pub fn add(&self, server: &Server) -> bool {
        let host = server.host.as_deref().filter(|_| service(server).is_none()).map(str::to_owned);
        // Servers that the runtime API added before have no name to resolve.
        while self.names.places() < server.serial && self.names.push(|_| Mutex::default()).is_ok() {}
        self.names.push(|_| Mutex::new(ServerHostName { host, was_given: false })) == Ok(server.serial)
    }

    pub(super) fn lock(&self, serial: usize) -> Option<MutexGuard<'_, ServerHostName>> {
        Some(self.names.get(serial)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the name that a server's address is resolved from.
    pub fn named(&self, serial: usize) -> ServerHostName {
        self.lock(serial).map(|named| named.clone()).unwrap_or_default()
    }

    /// Restores the name that a server had in the previous process. `was_given`: a command had set it.
    pub fn resume(&self, server: &Server, name: &str, was_given: bool) {
        if Name::parse(name).is_some() {
            self.rename(server.serial, Some(name.to_owned()), was_given);
        }
    }

    pub(super) fn rename(&self, serial: usize, host: Option<String>, was_given: bool) {
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
