//! A reload in place in the worker: reads the new configuration on its own thread, then applies it, or reports why a
//! new worker is needed. Must never change anything unless the whole change can be applied.

use crate::arguments::Settings;
use crate::listeners::{self, AddedSockets, AddressName};
use crate::load::{self, NotRenewed, Renewed, ServedConfiguration, Start};
use crate::master::link::FromWorker;
use crate::material;
use crate::messages::Messages;
use crate::reader::Reader;
use crate::takeover::InheritedSockets;
use engine::Addresses;
use engine::datagram_sockets::{BindPlace, DatagramSockets, Relocation};
use engine::free_slots::Vacancies;
use engine::generation::Generation;
use engine::worker::Process;
use policy::program::{Bind, BindAddress, Program};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Polling interval until all workers use the new configuration.
const BEAT: Duration = Duration::from_millis(2);

/// Niceness of the thread that reads a configuration, relative to the workers (nice(2)): next to workers that use whole
/// processors it gets a tenth of one, and due workers run within microseconds.
const UNHURRIED: i32 = 10;

/// The parameters for reading the configuration again.
#[derive(Debug)]
pub struct Renewal {
    /// The command line.
    pub settings: Settings,
    /// Settings that are fixed at the start of the process.
    pub start: Start,
    /// Its standard streams are detached.
    pub is_daemon: bool,
}

/// A validated configuration, ready to be applied.
struct ValidatedConfiguration {
    generation: Generation,
    changes: Vec<String>,
    /// Sockets of added addresses.
    opened: AddedSockets,
    /// Removed addresses.
    went: Vec<(usize, usize)>,
    /// QUIC addresses that other frontends get with their sockets.
    relocated: Vec<Relocation>,
}

/// The destination of messages.
pub type Out = Box<dyn Write + Send>;

/// Runs a job on a new thread with low priority. `None`: the thread cannot be created, or it panicked.
fn unhurried<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let work = move || {
        rt::process::lower_priority(UNHURRIED);
        job()
    };
    thread::Builder::new().name("reload".to_owned()).spawn(work).ok()?.join().ok()
}

impl Renewal {
    /// Loads the current configuration files and applies them; `reader` is a process that reads them if this process
    /// cannot. Must run on a worker's thread; calls must be serialized. Returns once every worker uses the new
    /// configuration, or nothing has changed.
    pub async fn run(self: &Arc<Self>, process: &Arc<Process>, out: Out, reader: Option<OwnedFd>) -> FromWorker {
        let (renewal, shared) = (Arc::clone(self), Arc::clone(process));
        let job = move || unhurried(move || renewal.read(&shared, out, reader));
        let Some(read) = process.helpers.run(job).await.flatten() else {
            return FromWorker::Classic("there is no thread to read the configuration on".to_owned());
        };
        let ValidatedConfiguration { generation: next, changes, opened, went, relocated } = match read {
            Ok(read) => read,
            Err(NotRenewed::Refused) => return FromWorker::Refused,
            Err(NotRenewed::Classic(why)) => return FromWorker::Classic(why),
        };
        if process.is_stopping() || process.is_paused() {
            return FromWorker::Classic("the process is stopping or paused".to_owned());
        }
        settled(process).await;
        if let Err(refusal) = process.adopt(next) {
            return FromWorker::Classic(refusal.to_string());
        }
        settled(process).await;
        engine::relocate(process, &relocated);
        engine::receive(process, opened.datagrams);
        engine::listen(process, opened.streams);
        engine::stop_listening(process, &went);
        FromWorker::Adopted(describe_changes(&changes))
    }

    fn read(&self, process: &Process, out: Out, reader: Option<OwnedFd>) -> Result<ValidatedConfiguration, NotRenewed> {
        let mut messages = Messages::while_serving(self.settings.quiet);
        messages.speak_through(out);
        let before = process.generation();
        let written = before.written().clone().ok_or_else(|| NotRenewed::Classic("its text is unknown".to_owned()))?;
        if let Some(why) = self.start.obstacle(&written) {
            return Err(NotRenewed::Classic(why));
        }
        let vacant = process.service::<Vacancies>().all();
        let renew = |messages: &mut Messages| {
            let served = ServedConfiguration {
                start: &self.start,
                written: &written,
                program: &before.program,
                vacant: &vacant,
            };
            load::renew(&self.settings, &served, messages)
        };
        let (renewed, reader) = match self.start.gives_up() {
            false => (renew(&mut messages)?, None),
            true => {
                let why =
                    "the process has dropped the privileges to read files, and the master does not read them for it";
                let reader = reader.ok_or_else(|| why.to_owned()).and_then(Reader::adopt);
                let mut reader = reader.map_err(NotRenewed::Classic)?;
                let record = reader.record().map_err(NotRenewed::Classic)?;
                let (renewed, missing) = material::given(record, || renew(&mut messages));
                if let Some(missing) = missing {
                    return Err(NotRenewed::Classic(format!("'{missing}' has not been read for the process")));
                }
                (renewed?, Some(reader))
            }
        };
        let Renewed { mut program, spec, changes, found, sources } = renewed;
        if self.is_daemon {
            program.event_descriptors = Box::default();
        }
        let wanted = program.global.descriptors;
        let has_room = wanted <= before.program.global.descriptors
            || rt::process::raise_descriptor_limit(wanted).is_ok_and(|(soft, _)| soft >= wanted);
        // An automatic connection limit is derived from the descriptor limit with a margin, so a few more sockets fit.
        if !has_room && !program.global.maxconn_is_automatic {
            return Err(NotRenewed::Classic(format!("the limit on descriptors cannot be raised to {wanted}")));
        }
        let mut addresses = Addresses::between(&before.program, &program);
        let relocated = relocated(process, &before.program, &program, &mut addresses).map_err(NotRenewed::Classic)?;
        let reuse_port = !(self.settings.no_reuse_port || spec.global.machine.no_reuse_port);
        let (moved, came) = moved(process, &before.program, &program, &addresses);
        let opened = match reader {
            Some(reader) => reader.open(&AddressName::at(&program, &came)),
            None => Ok(InheritedSockets::default()),
        };
        let opened = opened.map(|found| found.and(moved));
        let opened =
            opened.and_then(|mut found| listeners::open_more(&program, &addresses.came, reuse_port, &mut found));
        let opened = opened.map_err(NotRenewed::Classic)?;
        messages.report(&found, &sources);
        let next = Generation::following(Arc::new(program), &before);
        next.know_specification(spec);
        next.know_text(sources.0.iter().map(|file| (file.name.clone(), file.bytes().to_vec())));
        Ok(ValidatedConfiguration { generation: next, changes, opened, went: addresses.went, relocated })
    }
}

/// Removes the QUIC addresses that move from one `bind` line to another from the added and removed ones, and returns them. Their
/// sockets have connections, whose packets one listener has to get.
///
/// # Errors
/// Why a new worker is needed.
fn relocated(
    process: &Process,
    former: &Program,
    next: &Program,
    addresses: &mut Addresses,
) -> Result<Vec<Relocation>, String> {
    let mut found = Vec::new();
    let places = |of: &[(usize, usize)]| -> Vec<BindPlace> {
        of.iter().map(|(frontend, bind)| BindPlace { frontend: *frontend, bind: *bind }).collect()
    };
    for to in places(&addresses.came) {
        let Some(wanted) = bind_at(next, to).filter(|bind| bind.has_datagrams()) else { continue };
        let is_same = |place: &BindPlace| {
            let is_open = !process.service::<DatagramSockets>().at(place.frontend, place.bind).is_empty();
            is_open && bind_at(former, *place).is_some_and(|bind| socket_of(bind) == socket_of(wanted))
        };
        let Some(from) = places(&addresses.went).into_iter().find(is_same) else { continue };
        if bind_at(former, from).is_some_and(|bind| bind.listening.threads != wanted.listening.threads) {
            return Err(format!("the threads of UDP address '{}' change", wanted.text));
        }
        addresses.came.retain(|place| *place != (to.frontend, to.bind));
        addresses.went.retain(|place| *place != (from.frontend, from.bind));
        found.push(Relocation { from, to });
    }
    Ok(found)
}

/// Returns the `bind` line at a place.
fn bind_at(program: &Program, place: BindPlace) -> Option<&Bind> {
    program.proxies.get(place.frontend)?.frontend.as_ref()?.binds.get(place.bind)
}

/// Returns what two lines have in common if one socket can serve them.
fn socket_of(bind: &Bind) -> (&BindAddress, Option<&str>, Option<&str>) {
    let socket = &bind.listening.socket;
    (&bind.address, socket.interface.as_deref(), socket.namespace.as_deref())
}

/// Returns the sockets of addresses that move from one frontend to another, and the other added addresses. Pending
/// connections of such a socket are accepted by either frontend.
fn moved(
    process: &Process,
    former: &Program,
    next: &Program,
    addresses: &Addresses,
) -> (InheritedSockets, Vec<(usize, usize)>) {
    let mut sockets = InheritedSockets::default();
    let place = |(frontend, bind): &(usize, usize)| BindPlace { frontend: *frontend, bind: *bind };
    let went: Vec<_> = addresses.went.iter().map(|one| (*one, bind_at(former, place(one)).map(socket_of))).collect();
    let came = addresses.came.iter().copied().filter(|one| {
        let wanted = bind_at(next, place(one)).map(socket_of);
        let before = went.iter().find(|(_, went)| went.is_some() && *went == wanted);
        let Some(((frontend, bind), went)) = before else { return true };
        let streams = process.sockets().map(|sockets| sockets.at(*frontend, *bind)).unwrap_or_default();
        let namespace = went.and_then(|(_, _, namespace)| namespace).unwrap_or_default();
        for socket in streams.iter().map(|socket| socket.as_descriptor()) {
            if let Some(copy) = socket.and_then(|socket| socket.try_clone_to_owned().ok()) {
                sockets.add(namespace, copy);
            }
        }
        streams.is_empty()
    });
    let came = came.collect();
    (sockets, came)
}

/// Maximum number of changes that are listed.
const MOST_TOLD: usize = 20;

/// Returns the changes in one line.
fn describe_changes(changes: &[String]) -> String {
    let mut told = changes.iter().take(MOST_TOLD).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(more) = changes.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        told.push_str(&format!(" and {more} more"));
    }
    told
}

/// Waits until every worker uses the newest configuration.
async fn settled(process: &Process) {
    while process.is_adopting() {
        rt::sleep(BEAT).await;
    }
}
