//! A worker's view of one listening UDP socket: begins the sessions of QUIC connections, as long as limits and rates allow it,
//! and receives the datagrams of all of its connections until the last one has ended. Must never read a stream.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use conn::quic::{Arrival, Listener, Reception, SocketCounts};
use policy::program::{QuicLimits, QuicListening};
use quic::cid::Place;
use quic::endpoint::{ServerSettings, Settings};
use quic::{Clock, Datagram, Endpoint, HalfOpen, Secrets, Transport, congestion, transport};

use crate::datagram_entry::{enter, opening};
use crate::datagram_queue::Order;
use crate::datagram_sockets::{BindPlace, DatagramListening, DatagramPlace};
use crate::frontends::Opening;
use crate::generation::Generation;
use crate::qlog_files::QlogFiles;
use crate::quic_counts;
use crate::quic_settings::{QUEUED, algorithm, random_bytes, with_sessions};
use crate::service::activity::count;
use crate::stream::client;
use crate::stream::client::initial::{self, Verdict};
use crate::succession::message::{MOST_HANDSHAKES, Parcel};
use crate::succession::{Route, Succession, route};
use crate::worker::Worker;

/// Number of queued datagrams that are processed before other tasks run.
const ORDERS: usize = 64;

/// State of QUIC that all workers share.
#[derive(Default)]
struct SharedQuic {
    /// Connections whose handshake is in progress.
    half_open: Arc<HalfOpen>,
    /// Keys of tokens and of stateless resets.
    secrets: OnceLock<Secrets>,
}

impl SharedQuic {
    fn secrets(&self, limits: &QuicLimits) -> Secrets {
        let make = || match &limits.cluster_secret {
            Some(secret) => Secrets::of_cluster(secret),
            None => Secrets::random(random_bytes()),
        };
        self.secrets.get_or_init(make).clone()
    }
}

/// Returns the machine of a socket. `None`: its address does not exist in the newest configuration.
fn endpoint(worker: &Worker, place: &DatagramListening) -> Option<Endpoint> {
    let generation = worker.generation();
    let limits = &generation.program.global.quic;
    let shared = worker.process.service::<SharedQuic>();
    let server = server_settings(worker, &generation, place.group.owner())?;
    let settings = Settings {
        place: own_place(place.place, worker.process.service::<Succession>()),
        secrets: shared.secrets(limits),
        seed: random_bytes(),
        clock: Clock::new(rt::clock::origin()),
        may_discover_mtu: true,
    };
    Some(Endpoint::new(settings, Some(server)))
}

/// Returns the owner in the connection ids of a socket, by its index in its group.
fn own_place(place: usize, succession: &Succession) -> Place {
    Place { worker: u8::try_from(place).unwrap_or(u8::MAX), process: succession.tag() }
}

/// Returns the settings of connections at an address. `None`: it does not exist in that configuration.
fn server_settings(worker: &Worker, generation: &Generation, owner: BindPlace) -> Option<ServerSettings> {
    let limits = &generation.program.global.quic;
    let proxy = generation.proxy(owner.frontend);
    let bind = proxy.frontend.as_ref()?.binds.get(owner.bind)?;
    let listening = bind.listening.quic.as_ref()?;
    let shared = worker.process.service::<SharedQuic>();
    Some(ServerSettings {
        tls: Arc::clone(bind.tls.as_ref()?),
        transport: Transport::new(&transport_settings(limits, listening)),
        half_open: Arc::clone(&shared.half_open),
        retry_threshold: limits.retry_threshold.map_or(usize::MAX, |threshold| threshold as usize),
        forces_retry: listening.forces_retry,
    })
}

/// Returns the parameters of the connections of an address.
fn transport_settings(limits: &QuicLimits, listening: &QuicListening) -> transport::Settings {
    let max_window = limits.transmit_memory.map_or(listening.max_window, |most| listening.max_window.min(most));
    let settings = transport::Settings {
        idle_timeout: limits.idle_timeout.unwrap_or_default(),
        max_bidirectional: limits.streams.concurrent.min(conn::h3::INITIAL_STREAMS),
        window: limits.streams.connection_window,
        stream_window: limits.streams.stream_window,
        send_window: max_window.saturating_add(QUEUED),
        congestion: congestion::Settings { algorithm: algorithm(listening.congestion), max_window },
        batches: limits.segments,
        ..transport::Settings::default()
    };
    if listening.webtransport { with_sessions(settings) } else { settings }
}

/// Serves a listening UDP socket until the process stops and its last connection has ended. `accepting` is dropped as soon as no
/// further connection is accepted.
pub async fn accept<A>(worker: Rc<Worker>, place: DatagramListening, number: usize, accepting: A) {
    let Some(machine) = endpoint(&worker, &place) else { return drop(place.split()) };
    let (place, socket) = place.split();
    let listener = Listener::new(socket, machine);
    worker.watch_stop().await;
    let succession = worker.process.service::<Succession>().clone();
    // An older process that receives from the same socket stops first.
    std::future::poll_fn(|cx| succession.predecessors().poll_taken(cx)).await;
    let (mut accepting, mut served) = (Some(accepting), (worker.generation().number(), place.owner()));
    // Identifies this worker and listener among those that wait for a slot.
    let key = ((worker.id as u64) << 32) | number as u64;
    let own = own_place(place.place, &succession);
    let mut receiver =
        Receiver { worker, place, key, own, succession, state: Opening::Open, is_queued: false, message: Vec::new() };
    std::future::poll_fn(|cx| {
        let Receiver { worker, place, .. } = &receiver;
        let generation = worker.generation();
        let newest = (generation.number(), place.owner());
        if newest != served {
            // Connections that begin from now on get the newest certificates and options, of the frontend that has the address.
            served = newest;
            if let Some(settings) = server_settings(worker, &generation, place.owner()) {
                listener.serve(settings);
            }
        }
        poll(cx, &mut receiver, &listener, &mut accepting)
    })
    .await;
}

fn poll<A>(cx: &mut Context<'_>, receiver: &mut Receiver, listener: &Listener, accepting: &mut Option<A>) -> Poll<()> {
    receiver.state = opening(&receiver.place, &receiver.worker.process);
    process_orders(cx, receiver, listener);
    let is_over = if receiver.place.is_taken() {
        // The task is woken by an order when the socket is to be read again.
        listener.stop_watching();
        listener.poll_send(cx);
        false
    } else {
        listener.poll(cx, receiver).is_ready()
    };
    count_datagrams(&receiver.worker, &receiver.place, listener);
    if is_over {
        return Poll::Ready(());
    }
    let is_in_use = receiver.place.note_connections(listener.connections() > 0);
    if receiver.state == Opening::Shut {
        accepting.take();
        if !is_in_use {
            return Poll::Ready(());
        }
    }
    Poll::Pending
}

/// Adds the counts of the socket to those of its frontend.
fn count_datagrams(worker: &Worker, place: &DatagramPlace, listener: &Listener) {
    let counts = listener.take_counts();
    if counts != SocketCounts::default() {
        let generation = worker.generation();
        quic_counts::add_socket(generation.frontend(place.owner().frontend).counters.front_quic.used(), &counts);
    }
}

/// Processes what other workers and processes have for the socket.
fn process_orders(cx: &mut Context<'_>, receiver: &mut Receiver, listener: &Listener) {
    let group = Arc::clone(&receiver.place.group);
    let Some(queue) = group.queue(receiver.place.place) else { return };
    for _ in 0..ORDERS {
        match queue.poll_next(cx) {
            Poll::Pending => return,
            Poll::Ready(Order::Receive(datagram)) => {
                receiver.is_queued = true;
                listener.receive(&datagram.as_datagram(), receiver);
                receiver.is_queued = false;
            }
            Poll::Ready(Order::Report(part)) => part.report(listener.handshakes(MOST_HANDSHAKES)),
        }
    }
    cx.waker().wake_by_ref();
}

/// Decides about the datagrams of a socket.
struct Receiver {
    worker: Rc<Worker>,
    place: DatagramPlace,
    /// Identifies the listener among those that wait for a slot.
    key: u64,
    /// The owner in its connection ids.
    own: Place,
    succession: Succession,
    /// Whether connections are accepted.
    state: Opening,
    /// Whether the datagram was received elsewhere.
    is_queued: bool,
    /// Memory for messages to other processes.
    message: Vec<u8>,
}

impl Receiver {
    /// Returns the datagram as other processes get it; `None` in a simulation.
    fn parcel<'a>(&self, worker: u8, datagram: &Datagram<'a>) -> Option<Parcel<'a>> {
        Some(Parcel { group: self.place.group.identity()?, worker, datagram: *datagram })
    }
}

impl Reception for Receiver {
    fn diverts(&mut self, datagram: &Datagram<'_>) -> bool {
        match route(datagram.bytes, self.own, self.place.group.sockets(), &self.succession) {
            Route::Here => false,
            Route::Sibling(worker) => self.place.group.queue(worker).is_some_and(|queue| queue.push(datagram)),
            Route::Process(owner) => {
                let Some(parcel) = self.parcel(owner.worker, datagram) else { return false };
                self.succession.predecessors().pass(owner, parcel, &mut self.message)
            }
            Route::Nowhere => true,
        }
    }

    /// Begins a connection, or refuses it once none are accepted. Where a younger process has the socket as well, that gets it.
    fn arrive(&mut self, arrival: Arrival<'_>, datagram: &Datagram<'_>) {
        let is_taken = self.place.is_taken();
        match self.state {
            // It is of a handshake that has ended here.
            _ if is_taken && self.is_queued => arrival.ignore(),
            Opening::Open if !is_taken => begin(&self.worker, &self.place, arrival, self.key),
            // The client repeats the datagram.
            Opening::Paused => arrival.ignore(),
            Opening::Shut if !is_taken && !self.succession.successors().may_receive() => arrival.refuse(),
            Opening::Open | Opening::Shut => {
                arrival.ignore();
                if let Some(parcel) = self.parcel(0, datagram) {
                    self.succession.successors().pass(parcel);
                }
            }
        }
    }
}

/// Begins the session of a connection. Without a free slot the datagram is ignored: the client repeats it, as the backlog of a
/// TCP socket would.
fn begin(worker: &Rc<Worker>, place: &DatagramPlace, arrival: Arrival<'_>, key: u64) {
    let generation = worker.generation();
    let global = &generation.program.global;
    if global.quic.refuses_privileged_ports && arrival.peer().port() < 1024 {
        return arrival.ignore();
    }
    if rt::memory_is_scarce() {
        return arrival.ignore();
    }
    let owner = place.owner();
    let frontend = generation.frontend(owner.frontend);
    match initial::judge(worker, &frontend, owner.bind, &arrival) {
        Verdict::Accept => {}
        Verdict::Drop => return arrival.ignore(),
        Verdict::Refuse => return arrival.refuse(),
        Verdict::Retry if arrival.may_retry() => return arrival.retry(),
        Verdict::Retry => {}
    }
    if arrival.wants_retry() {
        return arrival.retry();
    }
    let Ok(slots) = enter(worker, owner, key) else { return arrival.ignore() };
    count(&worker.activity.accepted);
    let Some(link) = arrival.accept() else { return };
    let files = worker.process.service::<QlogFiles>();
    files.trace(&link, || format!("frontend {}, client {}", frontend.proxy.name, link.peer()));
    worker.enter_session();
    client::start_quic(worker, &frontend, owner.bind, link, slots);
}
