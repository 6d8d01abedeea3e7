//! Counters that this process shares with others through a file (configuration manual, "shm-stats-file"): the values that each
//! object has added to the file, and those of other processes, which are kept in separate cells. Must never be called by a
//! worker: processing a request does not involve it.

mod file;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use live::counters::shared::{Cells, SharedKind, VALUES, Values, counted, exchange, show};
use live::counters::{BackCounters, Counters, WorkerCounters};
use policy::program::Program;

use file::{CountsFile, Name, Slot};

/// Owner of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    /// Frontend, by the index of its proxy.
    Frontend(usize),
    /// Listener, by the indices of the proxy and of the `bind` line.
    Listener(usize, usize),
    Backend(usize),
    /// Server, by its serial number.
    Server(usize),
}

impl Object {
    fn of(self, worker: &WorkerCounters) -> Option<Cells<'_>> {
        Some(match self {
            Self::Frontend(index) => {
                let proxy = worker.proxies.get(index)?;
                Cells { object: &proxy.front, content: Some(&proxy.front_content), http2: Some(&proxy.front_http2) }
            }
            Self::Listener(index, bind) => Cells::of(worker.proxies.get(index)?.binds.get(bind)?),
            Self::Backend(index) => {
                let BackCounters { back, http2, content, .. } = worker.proxies.get(index)?.serving();
                Cells { object: back, content: Some(content), http2: Some(http2) }
            }
            Self::Server(serial) => Cells::of(worker.server(serial)),
        })
    }
}

/// Returns the objects of a program that have a `guid`, with their names in HAProxy's messages.
fn objects(program: &Program) -> Vec<(Name, Object, String)> {
    let mut objects = Vec::new();
    let mut add = |kind, guid: Option<&str>, object, text: String| {
        objects.extend(guid.map(|guid| ((kind, guid.into()), object, text)));
    };
    for proxy in program.proxies.iter().filter(|proxy| !proxy.disabled) {
        let (guid, name) = (proxy.guid.as_deref(), &proxy.name);
        if let Some(frontend) = &proxy.frontend {
            add(SharedKind::Frontend, guid, Object::Frontend(proxy.index), format!("frontend {name}"));
            // Listeners have counters only with `option socket-stats`.
            let binds = frontend.binds.iter().filter(|bind| frontend.reception.socket_stats && !bind.is_removed);
            for bind in binds {
                let listener = Object::Listener(proxy.index, bind.index);
                add(SharedKind::Listener, bind.listening.guid.as_deref(), listener, format!("{name} listener"));
            }
        }
        if let Some(backend) = &proxy.backend {
            add(SharedKind::Backend, guid, Object::Backend(proxy.index), format!("backend {name}"));
            for server in &backend.servers {
                let text = format!("{name}/{} server", server.name);
                add(SharedKind::Server, server.guid.as_deref(), Object::Server(server.serial), text);
            }
        }
    }
    objects
}

/// A shared object.
#[derive(Debug)]
struct Shared {
    object: Object,
    slot: Slot,
    /// Values that this process has added to the record.
    given: Values,
    /// Values of other processes at the last exchange.
    others: Values,
}

/// The counters that this process shares.
#[derive(Debug)]
pub struct SharedCounts {
    file: CountsFile,
    objects: BTreeMap<Name, Shared>,
    /// A failure has been reported.
    pub(crate) complained: bool,
}

impl SharedCounts {
    /// Shares the counters of a program through a file, which an earlier process may have created. Call it before the process
    /// counts.
    ///
    /// # Errors
    /// A message: the file belongs to another program, is full, or is not usable.
    pub fn open(file: File, name: &str, program: &Program) -> Result<Self, String> {
        let most = program.global.shared_counters.as_ref().map_or(0, |shared| shared.max_objects);
        let mut file =
            CountsFile::open(file, most).map_err(|why| format!("cannot use shm stats file '{name}': {why}"))?;
        let mut shared = BTreeMap::new();
        let result = file.hold(|records| {
            for (key, object, text) in objects(program) {
                let Some((slot, record)) = records.take(&key) else {
                    return Err(format!(
                        "memory error while setting up shared counters for {text} : Cannot add additional object to \
                         '{name}' file, maximum number already reached ({most}). Adjust \"shm-stats-file-max-objects\" \
                         directive if needed."
                    ));
                };
                shared.insert(key, Shared { object, slot, given: [0; VALUES], others: record.values });
            }
            Ok(())
        });
        result.map_err(|error| format!("cannot use shm stats file '{name}': {error}"))??;
        Ok(Self { file, objects: shared, complained: false })
    }

    /// Whether an object continues the counters of another process.
    pub fn goes_on(&self, kind: SharedKind, guid: &str) -> bool {
        self.objects.get(&(kind, guid.into())).is_some_and(|shared| shared.others != [0; VALUES])
    }

    /// Whether the counters of the server with that serial number are shared.
    pub(crate) fn has_server(&self, serial: usize) -> bool {
        self.objects.values().any(|shared| shared.object == Object::Server(serial))
    }

    /// Loads the values of other processes. Call it before the first worker counts.
    pub fn begin(&self, counters: &Counters) {
        let Some((_, cells)) = counters.of_others() else { return };
        for shared in self.objects.values() {
            if let Some(cells) = shared.object.of(cells) {
                show(cells, &shared.others);
            }
        }
    }

    /// Exchanges the counters of the objects of a program with the file. Returns false if the file has no space for all of them.
    ///
    /// # Errors
    /// From the system; `WouldBlock`: another process holds the file's lock.
    pub(crate) fn exchange(&mut self, program: &Program, counters: &Counters) -> io::Result<bool> {
        let wanted = objects(program);
        let Some((workers, cells)) = counters.of_others() else { return Ok(true) };
        let Self { file, objects, .. } = self;
        file.hold(|records| {
            let by_name: BTreeMap<&Name, Object> = wanted.iter().map(|(name, object, _)| (name, *object)).collect();
            objects.retain(|name, shared| {
                let stays = by_name.get(name) == Some(&shared.object);
                if !stays {
                    records.give_back(shared.slot, name);
                }
                stays
            });
            let mut all = true;
            for (name, object) in by_name {
                if !objects.contains_key(name) {
                    let Some((slot, record)) = records.take(name) else {
                        all = false;
                        continue;
                    };
                    let others = record.values;
                    objects.insert(name.clone(), Shared { object, slot, given: [0; VALUES], others });
                }
            }
            // If another process has removed an object's record, the next exchange takes a new one.
            objects.retain(|name, shared| {
                let own = counted(workers.iter().filter_map(|worker| shared.object.of(worker)));
                let given = &mut shared.given;
                let others = records.change(shared.slot, name, |record| exchange(&mut record.values, given, own));
                let Some(others) = others else { return false };
                if others != shared.others
                    && let Some(cells) = shared.object.of(cells)
                {
                    show(cells, &others);
                }
                shared.others = others;
                true
            });
            all
        })
    }

    /// Clears the counters of one server or of all objects, for every process that shares them. Call it after the workers have
    /// cleared theirs.
    ///
    /// # Errors
    /// As for [`SharedCounts::exchange`].
    pub(crate) fn clear(&mut self, counters: &Counters, server: Option<usize>) -> io::Result<()> {
        let Some((_, cells)) = counters.of_others() else { return Ok(()) };
        let Self { file, objects, .. } = self;
        file.hold(|records| {
            let meant = objects.iter_mut().filter(|(_, shared)| match server {
                Some(serial) => shared.object == Object::Server(serial),
                None => true,
            });
            for (name, shared) in meant {
                records.change(shared.slot, name, |record| record.values = [0; VALUES]);
                (shared.given, shared.others) = ([0; VALUES], [0; VALUES]);
                if let Some(cells) = shared.object.of(cells) {
                    show(cells, &shared.others);
                }
            }
        })
    }

    /// Releases the records: those that no other process uses are freed, and their values are lost.
    ///
    /// # Errors
    /// As for [`SharedCounts::exchange`].
    pub(crate) fn release(&mut self) -> io::Result<()> {
        let Self { file, objects, .. } = self;
        file.hold(|records| {
            for (name, shared) in std::mem::take(objects) {
                records.give_back(shared.slot, &name);
            }
        })
    }
}

/// The shared counters of a process, if it shares any.
#[derive(Debug, Default)]
pub struct Sharing(OnceLock<Mutex<SharedCounts>>);

impl Sharing {
    /// Sets the shared counters; only the first call has an effect.
    pub fn set(&self, counts: SharedCounts) {
        let _ = self.0.set(Mutex::new(counts));
    }

    pub(crate) fn get(&self) -> Option<MutexGuard<'_, SharedCounts>> {
        self.0.get().map(|counts| counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether any are set.
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
}

#[cfg(test)]
mod tests;
