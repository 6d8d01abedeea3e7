//! The runtime API of a worker process: its sockets, the interface to its host, and the tables of its commands. Must
//! never open anything.

mod acme;
mod activity;
mod anonymous;
mod backends;
mod bgp;
mod caches;
mod captures;
mod certificates;
mod cookies;
mod counters;
mod crt_lists;
mod datagrams;
mod debug;
mod decisions;
mod descriptors;
mod environment;
mod events;
mod frontends;
mod handover;
mod http_client;
mod info;
mod latency;
mod limits;
mod lists;
mod memory;
mod ocsp;
mod otel;
mod peers;
mod platform;
mod profiling;
mod quic;
mod resolvers;
mod rules;
mod servers;
mod sessions;
mod sockets;
mod stat;
mod stores;
mod tables;
mod ticket_keys;
mod traces;
mod trust;
mod variables;

use conn::handshake::{self, LowerLayers};
use conn::service::ByteService;
use std::rc::Rc;
use std::sync::Arc;

use config::spec::RuntimeLevel;
use live::counters::Count;
use policy::program::RuntimeSocket;
use rt::net::{ListeningSocket, OwnedSocket};

pub use info::information;
pub(crate) use rules::{RuleRow, gather as gather_rule_costs, rows as rule_rows};
pub(crate) use sessions::id_of as session_id;
pub(crate) use tables::{column, scaled_value as shown_datum, write_key};

use super::call::Conversation;
use super::command::{Command, CommandSet, CommandTarget, Condition, Mode};
use super::listener::{OpenConnections, accept};
use engine::generation::WorkerGeneration;
use engine::handshake::entrance;
use engine::service::activity::count;
use engine::worker::Worker;

/// Every command of the process, by topic.
const TABLES: &[&[Command<Worker>]] = &[
    info::TABLE,
    caches::TABLE,
    decisions::TABLE,
    environment::TABLE,
    events::TABLE,
    sockets::TABLE,
    activity::TABLE,
    handover::TABLE,
    debug::TABLE,
    descriptors::TABLE,
    counters::TABLE,
    stat::TABLE,
    servers::TABLE,
    backends::TABLE,
    bgp::TABLE,
    cookies::TABLE,
    limits::TABLE,
    lists::TABLE,
    otel::TABLE,
    peers::TABLE,
    resolvers::TABLE,
    frontends::TABLE,
    quic::TABLE,
    sessions::TABLE,
    stores::TABLE,
    datagrams::TABLE,
    tables::TABLE,
    variables::TABLE,
    certificates::TABLE,
    http_client::TABLE,
    acme::TABLE,
    crt_lists::TABLE,
    ticket_keys::TABLE,
    trust::TABLE,
    ocsp::TABLE,
    anonymous::TABLE,
    captures::TABLE,
    memory::TABLE,
    platform::TABLE,
    latency::TABLE,
    profiling::TABLE,
    rules::TABLE,
    traces::TABLE,
];

/// Returns every command of the process, including those of the protocol: its name, and the required mode.
pub fn commands() -> impl Iterator<Item = (&'static str, Mode)> {
    let set = TABLES.iter().copied().flatten().chain(super::command::basic::<Worker>());
    set.map(|row| (row.name, row.mode))
}

/// Returns the commands shown by help, as rows of the manual's table: usage, level, description.
pub fn reference() -> String {
    let set = TABLES.iter().copied().flatten().chain(super::command::basic::<Worker>());
    let mut rows: Vec<&Command<Worker>> = set.filter(|row| !row.usage.is_empty()).collect();
    rows.sort_by_key(|row| row.name);
    let mut text = "| Command | Level | What it does |\n|---|---|---|\n".to_owned();
    for row in rows {
        let usage = row.usage.replace('|', "\\|");
        let mode = match row.mode {
            Mode::Normal => "",
            Mode::Expert => ", expert mode",
            Mode::Experimental => ", experimental mode",
            Mode::Debug => ", debug mode of the master",
        };
        text.push_str(&format!("| `{usage}` | {}{mode} | {} |\n", row.level.name(), policy::catalogue::prose(row.doc)));
    }
    text
}

impl CommandTarget for Worker {
    type Generation = Rc<WorkerGeneration>;

    fn generation(&self) -> Rc<WorkerGeneration> {
        Worker::generation(self)
    }

    fn version(&self) -> &str {
        &self.process.host.version
    }

    fn max_payload(&self) -> usize {
        Worker::generation(self).program.runtime.max_payload
    }

    fn uptime(&self, _: &Conversation) -> u64 {
        self.process.host.uptime().as_secs()
    }

    fn begun(&self) {
        let process = &self.counters().process;
        [&process.connections, &process.requests, &process.commands_begun].into_iter().for_each(Count::increment);
        count(&self.activity.accepted);
    }

    fn ended(&self) {
        self.counters().process.commands_ended.increment();
    }

    fn sent(&self, bytes: u64) {
        let process = &self.counters().process;
        process.bytes_out.add(bytes);
        let all = || self.process.counters.workers.iter().map(|worker| &worker.process.bytes_out_rate);
        process.bytes_out_rate.add(rt::now(), (bytes + 16) / 32, all);
    }

    fn scripted(&self) -> Vec<(String, &str)> {
        self.process.services.commands().iter().map(|command| (command.words.join(" "), &*command.usage)).collect()
    }

    fn begin_scripted(&self, place: usize, words: &[String]) -> Option<Box<dyn ByteService>> {
        self.process.services.commands().get(place).map(|command| (command.factory)(words))
    }

    fn conditions(&self) -> &'static [(&'static str, &'static str)] {
        &[("srv-removable <px>/<sv>", "wait for this server to become removable.")]
    }

    fn condition(&self, name: &str, argument: &str) -> Option<Condition> {
        match name {
            "srv-removable" => Some(servers::removed::wait(&self.process, &Worker::generation(self), argument)),
            "be-removable" => Some(backends::wait(&self.process, &Worker::generation(self), argument)),
            _ => None,
        }
    }
}

/// An open `stats socket`.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its index in [`policy::program::Runtime::sockets`].
    pub index: usize,
    pub socket: Arc<ListeningSocket>,
}

/// Serves the runtime API on the calling worker. A socket closes when the process begins to stop.
pub fn start(sockets: Vec<Opened>) {
    let Some(worker) = rt::local::<Worker>() else { return };
    let worker = &worker;
    worker.process.host.started();
    let generation = worker.generation();
    let runtime = &generation.program.runtime;
    let crowd = OpenConnections::new(runtime.maxconn);
    for opened in sockets {
        let Some(configured) = runtime.sockets.get(opened.index) else { continue };
        let set = CommandSet { state: Rc::clone(worker), tables: TABLES };
        let first = conversation(configured, runtime.timeout);
        let (socket, entrance) = (opened.socket, entrance(&configured.bind));
        let (crowd, worker) = (Rc::clone(&crowd), Rc::clone(worker));
        rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
            worker.watch_stop().await;
            accept(set, socket, entrance, first, crowd, || worker.process.is_stopping()).await;
        });
    }
}

/// Executes a command with all rights on the calling worker, given its words and its payload. `None`: it would have to
/// wait, or it is unknown.
pub fn execute(words: &[String], payload: Option<&[u8]>) -> Option<Vec<u8>> {
    let worker = rt::is_on_worker().then(rt::local::<Worker>).flatten()?;
    super::connection::execute(&CommandSet { state: worker, tables: TABLES }, words, payload)
}

/// Serves a connection that was not accepted from a `stats socket`, with all rights.
pub fn serve(connection: OwnedSocket) {
    let Some(worker) = rt::local::<Worker>() else { return };
    let generation = worker.generation();
    let runtime = &generation.program.runtime;
    let first = Conversation { expose_listeners: true, ..Conversation::begin(RuntimeLevel::Admin, runtime.timeout) };
    let set = CommandSet { state: worker, tables: TABLES };
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        if let Some(accepted) = handshake::accept(connection, LowerLayers::default(), None).await {
            super::serve(set, accepted, first).await;
        }
    });
}

/// Returns the initial state of a connection to a socket.
fn conversation(socket: &RuntimeSocket, timeout: std::time::Duration) -> Conversation {
    Conversation {
        expose_listeners: socket.expose_listeners,
        severity_output: socket.severity_output,
        ..Conversation::begin(socket.level, timeout)
    }
}

/// Formats an address for the runtime API.
pub fn address(address: &policy::program::BindAddress) -> String {
    use policy::program::BindAddress;
    match address {
        BindAddress::Inet(address) if address.is_ipv4() => format!("ipv4@{address}"),
        BindAddress::Inet(address) => format!("ipv6@{address}"),
        BindAddress::Quic(address) if address.is_ipv4() => format!("quic4@{address}"),
        BindAddress::Quic(address) => format!("quic6@{address}"),
        BindAddress::Udp(address) if address.is_ipv4() => format!("udp4@{address}"),
        BindAddress::Udp(address) => format!("udp6@{address}"),
        BindAddress::Unix(path) => format!("unix@{}", path.display()),
        BindAddress::Abstract(name) => {
            let end = name.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            format!("abns@{}", name[..end].escape_ascii())
        }
        BindAddress::Descriptor { fd, .. } => format!("sockpair@{fd}"),
        BindAddress::Reverse { .. } => "rhttp@".to_owned(),
    }
}
