//! Opens every listening socket of a configuration before traffic is served, and reports in HAProxy's messages which
//! could not be bound. Must never accept a connection.

use crate::datagram_group::DatagramGroup;
use crate::files::reason;
use crate::predecessors::Predecessors;
use crate::takeover::InheritedSockets;
use config::document::Sources;
use config::span::Span;
use config::spec::{ProxyKind, Spec};
use control::peers::PeerSocket;
use control::runtime::Opened;
use engine::datagram_sockets::DatagramListening;
use engine::listener::Listening;
use engine::service::log::{Reception, RelaySocket};
use engine::succession::PassedChannel;
use policy::program::{Bind, BindAddress, LogForward, Peers, Program, Proxy, Segments, SocketBuffers};
use rt::net::{Address, BindOptions, Datagram, KeepAlive, ListeningSocket};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that `defer-accept` waits for a client's first bytes.
const DEFER: Duration = Duration::from_secs(1);

/// Number of attempts to bind an address in use after predecessors were signalled to release theirs, and the pause
/// before each.
const RETRIES: (u32, Duration) = (200, Duration::from_millis(10));

/// Every socket of a process.
#[derive(Default)]
pub struct Sockets {
    /// Sockets of proxies.
    pub proxies: Vec<Listening>,
    /// Sockets of the QUIC addresses of proxies.
    pub datagrams: Vec<DatagramListening>,
    /// Why the kernel does not distribute the packets of a QUIC address by connection ids; the last reason.
    pub unsteered: Option<String>,
    /// Channels to older processes that have these sockets as well.
    pub channels: Vec<PassedChannel>,
    /// Sockets of the runtime API.
    pub runtime: Vec<Opened>,
    /// Sockets of log-forward sections.
    pub relays: Vec<RelaySocket>,
    /// Sockets of peers sections.
    pub peers: Vec<PeerSocket>,
}

impl Sockets {
    /// Whether there is no socket for clients, nor one of the runtime API.
    pub fn is_empty(&self) -> bool {
        let Self { proxies, datagrams, runtime, relays, peers, .. } = self;
        proxies.is_empty() && datagrams.is_empty() && runtime.is_empty() && relays.is_empty() && peers.is_empty()
    }
}

/// Sockets of addresses of proxies that were added at run time.
#[derive(Default)]
pub struct AddedSockets {
    pub streams: Vec<Listening>,
    pub datagrams: Vec<DatagramListening>,
}

/// The sockets of one address.
pub enum AddressSockets {
    Streams(Vec<Arc<ListeningSocket>>),
    Datagrams(DatagramGroup),
}

impl AddressSockets {
    /// Opens the sockets of an address of a proxy; those of an older process are used first. `threads` is the number of workers.
    fn open(bind: &Bind, around: SocketContext, threads: u32, inherited: &mut InheritedSockets) -> io::Result<Self> {
        match bind.has_datagrams() {
            false => sockets(bind, around, inherited).map(Self::Streams),
            true => {
                DatagramGroup::open(bind, &options(bind, around.of_quic()), threads, inherited).map(Self::Datagrams)
            }
        }
    }

    /// Returns the descriptors.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Streams(sockets) => sockets.iter().filter_map(|socket| socket.as_descriptor()).collect(),
            Self::Datagrams(group) => group.descriptors(),
        }
    }
}

/// Resources of older processes.
#[derive(Default)]
pub struct Older {
    /// Processes to signal if an address is in use.
    pub predecessors: Predecessors,
    /// Sockets received from one of them.
    pub inherited: InheritedSockets,
}

/// An address of the configuration.
struct ConfiguredAddress<'a> {
    bind: &'a Bind,
    around: SocketContext,
    owner: Owner<'a>,
    /// Its index in the owner.
    index: usize,
}

/// The owner of an address.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Proxy(&'a Proxy),
    Runtime,
    /// A log-forward section, and whether the address is for datagrams.
    Relay(&'a LogForward, bool),
    Peers(&'a Peers),
}

/// Opens all sockets; those received from an older process are used first. If an address is in use, the predecessors
/// are signalled to release theirs temporarily.
///
/// # Errors
/// A message for every address that could not be bound; sockets opened so far are closed.
pub fn open(
    program: &Program,
    spec: &Spec,
    sources: &Sources,
    reuse_port: bool,
    older: &mut Older,
) -> Result<Sockets, Vec<String>> {
    let mut wanted = wanted(program, reuse_port);
    let mut opened = Sockets::default();
    let threads = program.global.nbthread;
    let mut failed = attempt(&mut wanted, &mut opened, &mut older.inherited, threads);
    let is_taken = |failed: &[io::Error]| failed.iter().any(|error| error.kind() == io::ErrorKind::AddrInUse);
    if is_taken(&failed) && older.predecessors.pause() {
        for _ in 0..RETRIES.0 {
            std::thread::sleep(RETRIES.1);
            failed = attempt(&mut wanted, &mut opened, &mut older.inherited, threads);
            if !is_taken(&failed) {
                break;
            }
        }
    }
    if failed.is_empty() {
        return Ok(opened);
    }
    let told = wanted.iter().zip(&failed);
    Err(told.map(|(one, error)| sentence(one, place(one, spec), sources, error)).collect())
}

/// Opens addresses added at run time, each given by the indexes of its frontend and of the address, or uses sockets
/// that were already opened for them.
///
/// # Errors
/// Names the address that cannot be bound, and the reason; sockets opened so far are closed.
pub fn open_more(
    program: &Program,
    places: &[(usize, usize)],
    reuse_port: bool,
    opened_before: &mut InheritedSockets,
) -> Result<AddedSockets, String> {
    let mut opened = AddedSockets::default();
    let threads = program.global.nbthread;
    for one in wanted(program, reuse_port) {
        let Owner::Proxy(proxy) = one.owner else { continue };
        let (frontend, bind) = (proxy.index, one.index);
        if !places.contains(&(frontend, bind)) {
            continue;
        }
        let bound = AddressSockets::open(one.bind, one.around, threads, opened_before);
        match bound.map_err(|error| cannot_bind(one.bind, proxy, &error))? {
            AddressSockets::Datagrams(group) => opened.datagrams.extend(group.listen(frontend, bind)),
            AddressSockets::Streams(bound) => {
                let shares = shares(one.bind, bound.len(), threads);
                opened.streams.extend(bound.into_iter().zip(shares).map(|(socket, workers)| Listening {
                    frontend,
                    bind,
                    socket,
                    workers,
                    closed: Arc::default(),
                }));
            }
        }
    }
    Ok(opened)
}

fn cannot_bind(bind: &Bind, proxy: &Proxy, error: &io::Error) -> String {
    format!("address {} of proxy {} cannot be bound: {}", bind.text, proxy.name, reason(error))
}

/// Identifies an address of a configuration, also in another process that loads the same configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressName {
    /// The name of its proxy.
    pub proxy: String,
    /// The address as configured.
    pub text: String,
    pub interface: String,
    pub namespace: String,
}

impl AddressName {
    fn of(proxy: &Proxy, bind: &Bind) -> Self {
        let socket = &bind.listening.socket;
        Self {
            proxy: proxy.name.to_string(),
            text: bind.text.to_string(),
            interface: socket.interface.as_deref().unwrap_or_default().to_owned(),
            namespace: socket.namespace.as_deref().unwrap_or_default().to_owned(),
        }
    }

    /// Returns the names of the addresses at these indexes.
    pub fn at(program: &Program, places: &[(usize, usize)]) -> Vec<Self> {
        let bind = |(proxy, bind): &(usize, usize)| {
            let proxy = program.proxies.get(*proxy)?;
            Some(Self::of(proxy, proxy.frontend.as_ref()?.binds.get(*bind)?))
        };
        places.iter().filter_map(bind).collect()
    }

    /// Encodes the name for sending. No part contains a NUL.
    pub fn encode(&self) -> Vec<u8> {
        [&*self.proxy, &*self.text, &*self.interface, &*self.namespace].join("\0").into_bytes()
    }

    /// Decodes a received name.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parts = text.split('\0').map(str::to_owned);
        let name =
            Self { proxy: parts.next()?, text: parts.next()?, interface: parts.next()?, namespace: parts.next()? };
        parts.next().is_none().then_some(name)
    }
}

/// Opens the addresses of these names. Returns the sockets of each.
///
/// # Errors
/// Names the address that cannot be bound or is unknown, and the reason; sockets opened so far are closed.
pub fn open_named(program: &Program, names: &[AddressName], reuse_port: bool) -> Result<Vec<AddressSockets>, String> {
    let mut left = wanted(program, reuse_port);
    let mut open = |name: &AddressName| {
        let is_meant = |one: &ConfiguredAddress<'_>| match one.owner {
            Owner::Proxy(proxy) => AddressName::of(proxy, one.bind) == *name,
            _ => false,
        };
        let one = left.iter().position(is_meant).map(|at| left.swap_remove(at));
        let Some(ConfiguredAddress { bind, around, owner: Owner::Proxy(proxy), .. }) = one else {
            return Err(format!("address {} of proxy {} is not in the files any more", name.text, name.proxy));
        };
        let opened = AddressSockets::open(bind, around, program.global.nbthread, &mut InheritedSockets::default());
        opened.map_err(|error| cannot_bind(bind, proxy, &error))
    };
    names.iter().map(&mut open).collect()
}

/// Returns every address of a program.
fn wanted(program: &Program, reuse_port: bool) -> Vec<ConfiguredAddress<'_>> {
    let proxies = program.proxies.iter().filter(|proxy| !proxy.disabled).flat_map(|proxy| {
        let around = SocketContext::of(proxy, program, reuse_port);
        let binds = proxy.frontend.iter().flat_map(|frontend| &frontend.binds);
        // Reverse HTTP addresses connect instead.
        let binds = binds.filter(|bind| !matches!(bind.address, BindAddress::Reverse { .. }));
        binds.map(move |bind| ConfiguredAddress { bind, around, owner: Owner::Proxy(proxy), index: bind.index })
    });
    let around = SocketContext::default();
    let runtime = program.runtime.sockets.iter().enumerate();
    let runtime =
        runtime.map(|(index, socket)| ConfiguredAddress { bind: &socket.bind, around, owner: Owner::Runtime, index });
    let relays = program.log_forwards.iter().flat_map(move |relay| {
        let around = SocketContext { reuse_port, ..SocketContext::default() };
        let receive = program.global.datagram_receive_buffer;
        let wanted = move |bind, is_datagram| ConfiguredAddress {
            bind,
            around: match is_datagram {
                true => SocketContext { buffers: SocketBuffers { receive, ..around.buffers }, ..around },
                false => around,
            },
            owner: Owner::Relay(relay, is_datagram),
            index: bind.index,
        };
        let streams = relay.binds.iter().map(move |bind| wanted(bind, false));
        streams.chain(relay.datagrams.iter().map(move |bind| wanted(bind, true)))
    });
    let peers = program.peers.iter().filter(|section| section.is_active()).filter_map(move |section| {
        let around = SocketContext { reuse_port, ..SocketContext::default() };
        section.bind.as_ref().map(|bind| ConfiguredAddress {
            bind,
            around,
            owner: Owner::Peers(section),
            index: bind.index,
        })
    });
    proxies.chain(runtime).chain(relays).chain(peers).collect()
}

/// Tries to open all sockets of `wanted`. Failed ones stay in it, in the order of the returned errors.
fn attempt(
    wanted: &mut Vec<ConfiguredAddress<'_>>,
    opened: &mut Sockets,
    inherited: &mut InheritedSockets,
    threads: u32,
) -> Vec<io::Error> {
    let mut failed = Vec::new();
    wanted.retain(|one| {
        let opened_here = match one.owner {
            Owner::Relay(relay, true) => datagrams(one.bind, one.around).map(|socket| {
                let kind = Reception::Datagrams(socket);
                opened.relays.push(RelaySocket { relay: relay.index, kind });
                Vec::new()
            }),
            Owner::Proxy(proxy) => {
                AddressSockets::open(one.bind, one.around, threads, inherited).map(|found| match found {
                    AddressSockets::Streams(sockets) => sockets,
                    AddressSockets::Datagrams(group) => {
                        opened.unsteered = group.unsteered().map(reason).or(opened.unsteered.take());
                        opened.datagrams.extend(group.listen(proxy.index, one.index));
                        Vec::new()
                    }
                })
            }
            _ => sockets(one.bind, one.around, inherited),
        };
        match opened_here {
            Ok(sockets) => {
                let shares = shares(one.bind, sockets.len(), threads);
                for (socket, workers) in sockets.into_iter().zip(shares) {
                    match one.owner {
                        Owner::Proxy(proxy) => {
                            opened.proxies.push(Listening {
                                frontend: proxy.index,
                                bind: one.index,
                                socket,
                                workers,
                                closed: Arc::default(),
                            });
                        }
                        Owner::Runtime => opened.runtime.push(Opened { index: one.index, socket }),
                        Owner::Relay(relay, _) => {
                            let kind = Reception::Connections(socket, engine::handshake::entrance(one.bind));
                            opened.relays.push(RelaySocket { relay: relay.index, kind });
                        }
                        Owner::Peers(section) => opened.peers.push(PeerSocket { section: section.index, socket }),
                    }
                }
                false
            }
            Err(error) => {
                failed.push(error);
                true
            }
        }
    });
    failed
}

/// Socket options of an address that are not from its `bind` line.
#[derive(Clone, Copy, Default)]
struct SocketContext {
    reuse_port: bool,
    smart_accept: bool,
    keep_alive: Option<KeepAlive>,
    /// `option nolinger` of a frontend: closing the connection sends a reset to the client.
    linger_zero: bool,
    buffers: SocketBuffers,
    /// Buffers of a socket that all connections of a QUIC address share.
    quic_buffers: SocketBuffers,
}

impl SocketContext {
    fn of(proxy: &Proxy, program: &Program, reuse_port: bool) -> Self {
        let reception = proxy.frontend.as_ref().map(|frontend| &frontend.reception);
        Self {
            reuse_port,
            smart_accept: reception.is_some_and(|reception| reception.smart_accept),
            keep_alive: reception.and_then(|reception| reception.keep_alive).map(|settings| KeepAlive {
                count: settings.count,
                idle: settings.idle,
                interval: settings.interval,
            }),
            linger_zero: proxy.options.nolinger,
            buffers: program.global.client_buffers,
            quic_buffers: SocketBuffers {
                receive: program.global.datagram_receive_buffer,
                send: program.global.quic.send_buffer,
                unsent: None,
            },
        }
    }

    /// Returns the options of a QUIC address.
    fn of_quic(self) -> Self {
        Self { buffers: self.quic_buffers, ..self }
    }
}

fn options(bind: &Bind, around: SocketContext) -> BindOptions {
    let socket = &bind.listening.socket;
    let bytes = |buffer: Option<u32>| buffer.and_then(|bytes| usize::try_from(bytes).ok());
    BindOptions {
        backlog: i32::try_from(bind.backlog).unwrap_or(i32::MAX),
        v6only: bind.v6only,
        reuse_port: around.reuse_port,
        defer_accept: bind.defer_accept.then_some(DEFER),
        // The first acknowledgement is sent with the response.
        no_quick_ack: around.smart_accept,
        mss: match socket.segments {
            Segments::Announced(size) => Some(size),
            Segments::Default | Segments::ReducedBy(_) => None,
        },
        user_timeout: socket.user_timeout,
        fast_open: socket.fast_open.then_some(bind.backlog),
        transparent: socket.transparent,
        multipath: socket.multipath,
        interface: socket.interface.as_deref().map(str::to_owned),
        namespace: socket.namespace.as_deref().map(str::to_owned),
        md5_password: socket.md5_password.as_deref().map(<[u8]>::to_vec),
        save_syn: socket.save_syn,
        congestion_control: socket.congestion_control.as_deref().map(str::to_owned),
        keep_alive: around.keep_alive,
        linger_zero: around.linger_zero,
        send_buffer: bytes(around.buffers.send),
        unsent_limit: bytes(around.buffers.unsent),
        receive_buffer: bytes(around.buffers.receive),
        mode: bind.unix_mode,
        user: socket.user,
        group: socket.group,
        ..BindOptions::default()
    }
}

/// Opens the sockets of an address, one per shard.
fn sockets(
    bind: &Bind,
    around: SocketContext,
    inherited: &mut InheritedSockets,
) -> io::Result<Vec<Arc<ListeningSocket>>> {
    let address = match &bind.address {
        BindAddress::Inet(address) => Address::Inet(*address),
        BindAddress::Unix(path) => Address::Unix(path.clone()),
        BindAddress::Abstract(name) => Address::Abstract(name.clone()),
        BindAddress::Descriptor { fd, is_carrier, .. } => {
            let options = options(bind, around);
            let socket = match is_carrier {
                true => ListeningSocket::inherit_carrier(*fd, &options),
                false => inherited.given(*fd, &options),
            };
            return Ok(vec![Arc::new(socket?)]);
        }
        BindAddress::Quic(_) | BindAddress::Udp(_) | BindAddress::Reverse { .. } => return Ok(Vec::new()),
    };
    let options = options(bind, around);
    // Several sockets on one address need SO_REUSEPORT; without it there is only one.
    let shards = if around.reuse_port { bind.shards.max(1) } else { 1 };
    let open = || match inherited.listen(&address, &options) {
        Some(taken) => taken,
        None => ListeningSocket::bind(&address, &options),
    };
    std::iter::repeat_with(open).take(shards as usize).map(|opened| opened.map(Arc::new)).collect()
}

/// Opens a datagram socket.
fn datagrams(bind: &Bind, around: SocketContext) -> io::Result<Datagram> {
    let options = options(bind, around);
    match &bind.address {
        BindAddress::Inet(address) => Datagram::bind_with(&Address::Inet(*address), &options),
        BindAddress::Unix(path) => Datagram::bind_with(&Address::Unix(path.clone()), &options),
        BindAddress::Abstract(name) => Datagram::bind_with(&Address::Abstract(name.clone()), &options),
        BindAddress::Descriptor { fd, .. } => Datagram::inherit(*fd),
        BindAddress::Quic(_) | BindAddress::Udp(_) | BindAddress::Reverse { .. } => {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }
}

/// Returns the workers for each socket of an address: an equal share of the address's workers; all of them if there is
/// one socket.
fn shares(bind: &Bind, sockets: usize, threads: u32) -> Vec<Option<Arc<[usize]>>> {
    let workers: Vec<usize> = match &bind.listening.threads {
        None if sockets <= 1 => return vec![None],
        None => (0..threads as usize).collect(),
        Some(chosen) => chosen.to_vec(),
    };
    let cut = |place: usize| place * workers.len() / sockets.max(1);
    (0..sockets).map(|place| Some(Arc::from(&workers[cut(place)..cut(place + 1)]))).collect()
}

/// Returns the position of its line in the configuration.
fn place(wanted: &ConfiguredAddress<'_>, spec: &Spec) -> Span {
    let line = match wanted.owner {
        Owner::Proxy(proxy) => spec.proxies.get(proxy.index).and_then(|proxy| proxy.binds.get(wanted.index)),
        Owner::Runtime => spec.global.runtime.sockets.get(wanted.index),
        Owner::Relay(relay, is_datagram) => spec.sections.log_forwards.get(relay.index).and_then(|relay| {
            let lines = if is_datagram { &relay.datagrams } else { &relay.binds };
            lines.get(wanted.index)
        }),
        Owner::Peers(section) => spec.sections.peers.get(section.index).and_then(|section| section.bind.as_ref()),
    };
    line.map_or(Span::default(), |line| line.span)
}

/// Returns HAProxy's name of the owner in messages.
fn owner(owner: Owner<'_>) -> String {
    let proxy = match owner {
        Owner::Proxy(proxy) => proxy,
        Owner::Runtime => return "frontend GLOBAL".to_owned(),
        Owner::Relay(relay, _) => return format!("frontend {}", relay.name),
        Owner::Peers(section) => return format!("peers section {}", section.local.as_deref().unwrap_or(&section.name)),
    };
    let kind = match proxy.kind {
        ProxyKind::Frontend => "frontend",
        ProxyKind::Backend => "backend",
        ProxyKind::Listen => "proxy",
    };
    format!("{kind} {}", proxy.name)
}

fn sentence(wanted: &ConfiguredAddress<'_>, place: Span, sources: &Sources, error: &io::Error) -> String {
    let (owner, bind) = (owner(wanted.owner), wanted.bind);
    let is_datagram = matches!(wanted.owner, Owner::Relay(_, true));
    let file = sources.file(place).map_or("", |file| file.name.as_str());
    let reason = reason(error);
    let what = match &bind.address {
        BindAddress::Inet(address) => {
            let family = match (is_datagram, address.is_ipv4()) {
                (false, true) => "tcpv4",
                (false, false) => "tcpv6",
                (true, true) => "udpv4",
                (true, false) => "udpv6",
            };
            format!("protocol {family}: cannot bind socket ({reason}) for [{}]", plain(address))
        }
        BindAddress::Quic(address) => {
            let family = if address.is_ipv4() { "quic4" } else { "quic6" };
            format!("protocol {family}: cannot bind socket ({reason}) for [{}]", plain(address))
        }
        BindAddress::Udp(address) => {
            let family = if address.is_ipv4() { "udpv4" } else { "udpv6" };
            format!("protocol {family}: cannot bind socket ({reason}) for [{}]", plain(address))
        }
        BindAddress::Unix(path) => {
            format!("protocol unix_stream: cannot bind UNIX socket ({reason}) [{}]", path.display())
        }
        BindAddress::Abstract(_) => format!("protocol abns_stream: cannot bind UNIX socket ({reason}) [{}]", bind.text),
        BindAddress::Descriptor { fd, .. } => format!("cannot use file descriptor '{fd}' ({reason})"),
        BindAddress::Reverse { .. } => format!("cannot listen ({reason}) [{}]", bind.text),
    };
    format!("Binding [{file}:{}] for {owner}: {what}.", place.line)
}

/// Formats address and port as HAProxy does: without brackets around an IPv6 address.
fn plain(address: &std::net::SocketAddr) -> String {
    format!("{}:{}", address.ip(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_without_brackets_of_their_own() {
        let rows = [("127.0.0.1:80", "127.0.0.1:80"), ("[::1]:80", "::1:80")];
        for (address, expected) in rows {
            assert_eq!(plain(&address.parse().expect(address)), expected);
        }
    }
}
