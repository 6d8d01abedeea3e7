//! `show fd` (management manual, section 9.3): the open file descriptors of the process, their type and owner. Must
//! never keep one open, nor block a worker: each is queried in batches.

mod line;
mod selection;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use config::spec::RuntimeLevel;
use policy::program::Program;
use rt::net::{Address, DescriptorInfo, DescriptorKind, WatchedDescriptor, describe_descriptor};

use super::super::{Call, Command, Disconnected, Pending, Run};
use engine::session::task::StreamTask;
use engine::worker::Worker;
use selection::{Kind, Selection};

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show fd",
    "show fd [-!plcfbs]* [num]",
    "dump list of file descriptors in use or a specific one",
    Run::Gradual(show_fd),
)
.at(RuntimeLevel::Operator)];

/// Tasks or watched descriptors per batch.
const BATCH: u32 = 200;
/// Descriptors checked between two pieces of the answer.
const STEP: i32 = 64;
/// Ends the list after this number of consecutive closed descriptors beyond the last one known to a worker: the kernel
/// assigns the lowest free number.
const LARGEST_GAP: i32 = 1 << 16;

/// The owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A client connection of the frontend at that index.
    Client(usize),
    /// A connection to that server of the backend at that index.
    Server(usize, usize),
}

/// The protocol layers of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layers {
    /// HAProxy's name of the multiplexer.
    mux: Option<&'static str>,
    secure: bool,
}

/// The workers' knowledge of a descriptor.
#[derive(Debug, Clone, Copy, Default)]
struct WorkerView {
    /// A bit for each worker that watches it.
    workers: u64,
    /// The state as seen by the last of them.
    seen: Option<WatchedDescriptor>,
    owner: Option<(Owner, Layers)>,
}

/// Descriptors and their owners, as returned by one worker.
type OwnedDescriptors = Vec<(i32, (Owner, Layers))>;

/// The collected data: some tens of bytes per connection, for the duration of the answer.
struct Knowledge {
    descriptors: BTreeMap<i32, WorkerView>,
    /// Names of listeners by address.
    listeners: HashMap<String, String>,
    /// Names of listeners by descriptor, including paused sockets, which the kernel does not report as listening.
    listening: HashMap<i32, String>,
    /// Names of paused frontends.
    paused: Vec<String>,
}

fn show_fd<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let selection = match Selection::read(&call.words[2..]) {
            Ok(selection) => selection,
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        let knowledge = gather(call).await?;
        let limit = rt::net::descriptor_limit();
        let (first, end) = selection.number.map_or((0, limit), |number| (number, number.saturating_add(1).min(limit)));
        let last_known = knowledge.descriptors.keys().next_back().copied().unwrap_or(0);
        let mut gap = 0;
        for number in first..end {
            if number % STEP == 0 {
                call.answer.relieve().await?;
            }
            let Some(info) = describe_descriptor(number) else {
                gap += 1;
                if number > last_known && gap > LARGEST_GAP {
                    break;
                }
                continue;
            };
            gap = 0;
            show(call, &knowledge, &selection, number, &info);
        }
        Ok(())
    })
}

/// Writes the line of a descriptor if it is selected.
fn show(call: &mut Call<'_, Worker>, knowledge: &Knowledge, selection: &Selection, number: i32, info: &DescriptorInfo) {
    let known = knowledge.descriptors.get(&number).copied().unwrap_or_default();
    let program = &call.generation.program;
    let listening = knowledge.listening.get(&number);
    let listener = listening.or_else(|| info.local.as_ref().and_then(|local| knowledge.listeners.get(&key(local))));
    let kind = match info.kind {
        _ if listening.is_some() => Kind::Listener,
        DescriptorKind::Pipe => Kind::Pipe,
        DescriptorKind::Listener => Kind::Listener,
        DescriptorKind::Stream => match known.owner {
            Some((Owner::Server(..), _)) => Kind::Back,
            Some((Owner::Client(_), _)) => Kind::Front,
            None if listener.is_some() => Kind::Front,
            None => Kind::Back,
        },
        DescriptorKind::Datagram | DescriptorKind::Other => Kind::Other,
    };
    if !selection.admits(kind) {
        return;
    }
    let owner = match known.owner {
        Some((Owner::Client(frontend), _)) => program.proxies.get(frontend).map(|proxy| proxy.name.to_string()),
        Some((Owner::Server(backend, server), _)) => server_name(program, backend, server),
        None => listener.cloned(),
    };
    let hiding = call.conversation.anonymous;
    let owner = owner.map(|name| match name.split_once('/') {
        _ if name == GLOBAL => name,
        Some((backend, server)) => format!("{}/{}", hiding.name(backend), hiding.name(server)),
        None => hiding.name(&name).into_owned(),
    });
    let paused = listener.is_some_and(|name| knowledge.paused.contains(name));
    let layers = known.owner.map(|(_, layers)| layers);
    let line = line::Line { number, info, known: &known, kind, owner: owner.as_deref(), paused, layers };
    call.answer.push(line.to_string());
}

/// The owner of runtime API sockets, as HAProxy shows it.
const GLOBAL: &str = "GLOBAL";

fn server_name(program: &Program, backend: usize, server: usize) -> Option<String> {
    let proxy = program.proxies.get(backend)?;
    Some(format!("{}/{}", proxy.name, proxy.backend.as_ref()?.servers.get(server)?.name))
}

/// Returns a key for an address that a listener shares with its accepted connections.
fn key(address: &Address) -> String {
    match address {
        // A connection has the address that the client used; its listener may be bound to all addresses.
        Address::Inet(address) => format!(":{}", address.port()),
        Address::Unix(path) => {
            // A socket is bound to a temporary name with the process id, then renamed to its path.
            let path = path.to_string_lossy();
            let bound = path.strip_suffix(".tmp").and_then(|path| path.rsplit_once('.'));
            let own = bound.filter(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit()));
            format!("unix {}", own.map_or(&*path, |(path, _)| path))
        }
        Address::Abstract(name) => format!("abns {}", name.escape_ascii()),
        Address::Unnamed | Address::Carrier(_) => String::new(),
    }
}

async fn gather(call: &mut Call<'_, Worker>) -> Result<Knowledge, Disconnected> {
    let mut descriptors = BTreeMap::<i32, WorkerView>::new();
    for worker in 0..call.state.process.workers() {
        let mut place = Some(0);
        while let Some(from) = place {
            let watched = engine::on_one_worker(worker, move |_| rt::net::watched_descriptors(from, BATCH)).await;
            let Some((watched, next)) = watched else { break };
            for one in watched {
                let known = descriptors.entry(one.number).or_default();
                known.workers |= 1 << worker.min(63);
                known.seen = Some(one);
            }
            place = next;
        }
        let mut tell = |owned: OwnedDescriptors| {
            for (number, owner) in owned {
                descriptors.entry(number).or_default().owner = Some(owner);
            }
        };
        tell(engine::on_one_worker(worker, idle_and_shared).await.unwrap_or_default());
        let mut from = None;
        loop {
            let batch = engine::on_one_worker(worker, move |worker| of_streams(worker, from)).await;
            let Some((owned, last)) = batch else { break };
            tell(owned);
            if last.is_none() {
                break;
            }
            from = last;
        }
    }
    let (listeners, listening) = listeners(call);
    Ok(Knowledge { descriptors, listeners, listening, paused: paused(call) })
}

/// Returns the names of listeners by address and by descriptor. The addresses are those reported by the kernel, as they
/// are compared with those of connections.
fn listeners(call: &Call<'_, Worker>) -> (HashMap<String, String>, HashMap<i32, String>) {
    let program = &call.generation.program;
    let (mut names, mut listening) = (HashMap::new(), HashMap::new());
    let configured = program.runtime.sockets.iter().map(|socket| (&socket.bind, GLOBAL));
    let peers = program.peers.iter().filter_map(|section| Some((section.bind.as_ref()?, &*section.name)));
    for (bind, name) in configured.chain(peers) {
        let address = match &bind.address {
            policy::program::BindAddress::Inet(address) => Address::Inet(*address),
            policy::program::BindAddress::Unix(path) => Address::Unix(path.clone()),
            policy::program::BindAddress::Abstract(name) => Address::Abstract(name.clone()),
            _ => continue,
        };
        names.insert(key(&address), name.to_owned());
    }
    for (frontend, socket) in call.state.process.sockets().map(|sockets| sockets.open()).unwrap_or_default() {
        let proxy = frontend.and_then(|index| program.proxies.get(index));
        let Some(proxy) = proxy else { continue };
        let address = socket.descriptor().and_then(describe_descriptor).and_then(|info| info.local);
        names.insert(key(&address.unwrap_or_else(|| socket.local_address().clone())), proxy.name.to_string());
        listening.extend(socket.descriptor().map(|number| (number, proxy.name.to_string())));
    }
    (names, listening)
}

fn paused(call: &Call<'_, Worker>) -> Vec<String> {
    let process = &call.state.process;
    let proxies = call.generation.program.proxies.iter().filter(|proxy| proxy.frontend.is_some());
    let paused = proxies.filter(|proxy| {
        process.is_paused() || process.frontends.opening(proxy.index) == engine::frontends::Opening::Paused
    });
    paused.map(|proxy| proxy.name.to_string()).collect()
}

/// Returns server connections that no single stream owns: idle ones, and multiplexed ones.
fn idle_and_shared(worker: &Rc<Worker>) -> OwnedDescriptors {
    let generation = worker.generation();
    let mut owned = OwnedDescriptors::new();
    let shared = worker.links.shared_connections();
    let backends = generation.program.proxies.iter().filter_map(|proxy| Some((proxy, proxy.backend.as_ref()?)));
    for (proxy, server) in backends.flat_map(|(proxy, backend)| backend.servers.iter().map(move |one| (proxy, one))) {
        let owner = Owner::Server(proxy.index, server.index);
        let plain = if proxy.mode == config::spec::Mode::Http { "H1" } else { "PASS" };
        for (number, secure) in worker.process.pool.idle_descriptors(server.serial, worker.id) {
            owned.push((number, (owner, Layers { mux: Some(plain), secure })));
        }
        for (_, requests) in shared.iter().filter(|(serial, _)| *serial == server.serial) {
            let mux = match requests {
                conn::multiplexed::Requests::H2(_) => "H2",
                conn::multiplexed::Requests::H3(_) => "QUIC",
                conn::multiplexed::Requests::Fcgi(_) => "FCGI",
            };
            let layers = Layers { mux: Some(mux), secure: requests.handshake_info().is_some() };
            owned.extend(requests.socket().number().map(|number| (number, (owner, layers))));
        }
    }
    owned
}

/// Returns the connections of a batch of streams after a key, and the key to continue after.
fn of_streams(worker: &Rc<Worker>, from: Option<u64>) -> (OwnedDescriptors, Option<u64>) {
    let tasks = worker.tasks_behind(from, BATCH as usize);
    let last = if tasks.len() < BATCH as usize { None } else { tasks.last().map(|(key, _)| key.to_bits()) };
    let mut owned = OwnedDescriptors::new();
    for (_, task) in tasks {
        if task.owns_session() {
            let mux = match (task.has_several(), task.is_http()) {
                (true, _) => "H2",
                (_, true) => "H1",
                _ => "PASS",
            };
            let layers = Layers { mux: Some(mux), secure: task.is_secure() };
            owned.extend(task.socket().number().map(|number| (number, (Owner::Client(task.frontend), layers))));
        }
        owned.extend(to_server(&task));
    }
    (owned, last)
}

/// Returns the server connection of a stream, exclusive or shared.
fn to_server(task: &StreamTask) -> Option<(i32, (Owner, Layers))> {
    let state = task.current()?;
    let state = state.try_borrow().ok()?;
    let number = state.attempts.server_kernel.number()?;
    let owner = Owner::Server(state.route.backend?, state.route.server?);
    let several = state.attempts.link.is_some_and(|link| link.protocol.major > 1);
    let mux = match (several, task.is_http()) {
        (true, _) => "H2",
        (_, true) => "H1",
        _ => "PASS",
    };
    Some((number, (owner, Layers { mux: Some(mux), secure: state.attempts.server_tls.is_some() })))
}
