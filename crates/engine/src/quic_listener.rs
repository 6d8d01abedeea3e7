//! A worker's view of one listening UDP socket: begins the sessions of QUIC connections, as long as limits and rates allow it,
//! and receives the datagrams of all of its connections until the last one has ended. Must never read a stream.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use config::spec::QuicCongestion;
use conn::quic::{Arrival, Listener};
use live::Entry;
use policy::program::{QuicLimits, QuicListening};
use quic::cid::Place;
use quic::congestion::Algorithm;
use quic::endpoint::{ServerSettings, Settings};
use quic::{Clock, Endpoint, HalfOpen, Secrets, Transport, congestion, transport};

use crate::datagram_sockets::{DatagramListening, DatagramPlace};
use crate::frontends::Opening;
use crate::generation::Generation;
use crate::service::activity::count;
use crate::stream::client;
use crate::worker::{Process, Worker};

/// Bytes of a batch that may be written besides those in flight.
pub(crate) const QUEUED: u64 = 64 * 1024;

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

/// Returns random bytes of the worker.
pub(crate) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&rt::random().to_be_bytes()));
    bytes
}

/// Returns whether connections are accepted from a socket.
fn opening(place: &DatagramPlace, process: &Process) -> Opening {
    if place.is_closed() { Opening::Shut } else { process.opening(place.frontend) }
}

/// Returns the machine of a socket. `None`: its address does not exist in the newest configuration.
fn endpoint(worker: &Worker, place: &DatagramListening) -> Option<Endpoint> {
    let generation = worker.generation();
    let limits = &generation.program.global.quic;
    let shared = worker.process.service::<SharedQuic>();
    let server = server_settings(worker, &generation, place.frontend, place.bind)?;
    let settings = Settings {
        place: Place { worker: u8::try_from(place.place).unwrap_or(u8::MAX), process: 0 },
        secrets: shared.secrets(limits),
        seed: random_bytes(),
        clock: Clock::new(rt::clock::origin()),
        may_discover_mtu: true,
    };
    Some(Endpoint::new(settings, Some(server)))
}

/// Returns the settings of connections at an address. `None`: it does not exist in that configuration.
fn server_settings(worker: &Worker, generation: &Generation, frontend: usize, bind: usize) -> Option<ServerSettings> {
    let limits = &generation.program.global.quic;
    let proxy = generation.proxy(frontend);
    let bind = proxy.frontend.as_ref()?.binds.get(bind)?;
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

/// Returns an algorithm of congestion control.
pub(crate) fn algorithm(congestion: QuicCongestion) -> Algorithm {
    match congestion {
        QuicCongestion::Cubic => Algorithm::Cubic,
        QuicCongestion::NewReno => Algorithm::NewReno,
        QuicCongestion::Bbr => Algorithm::Bbr,
        QuicCongestion::Unlimited => Algorithm::Fixed,
    }
}

/// Returns the parameters of the connections of an address.
fn transport_settings(limits: &QuicLimits, listening: &QuicListening) -> transport::Settings {
    let max_window = limits.transmit_memory.map_or(listening.max_window, |most| listening.max_window.min(most));
    transport::Settings {
        idle_timeout: limits.idle_timeout.unwrap_or_default(),
        max_bidirectional: limits.streams.concurrent,
        window: limits.streams.connection_window,
        stream_window: limits.streams.stream_window,
        send_window: max_window.saturating_add(QUEUED),
        congestion: congestion::Settings { algorithm: algorithm(listening.congestion), max_window },
        batches: limits.segments,
        ..transport::Settings::default()
    }
}

/// Serves a listening UDP socket until the process stops and its last connection has ended. `accepting` is dropped as soon as no
/// further connection is accepted.
pub async fn accept<A>(worker: Rc<Worker>, place: DatagramListening, number: usize, accepting: A) {
    let Some(machine) = endpoint(&worker, &place) else { return };
    let (place, socket) = place.split();
    let listener = Listener::new(socket, machine);
    worker.watch_stop().await;
    let (mut accepting, mut number_served) = (Some(accepting), worker.generation().number());
    // Identifies this worker and listener among those that wait for a slot.
    let key = ((worker.id as u64) << 32) | number as u64;
    std::future::poll_fn(|cx| {
        let generation = worker.generation();
        if generation.number() != number_served {
            // Connections that begin from now on get the newest certificates and options.
            number_served = generation.number();
            if let Some(settings) = server_settings(&worker, &generation, place.frontend, place.bind) {
                listener.serve(settings);
            }
        }
        poll(cx, &worker, &place, &listener, key, &mut accepting)
    })
    .await;
}

fn poll<A>(
    cx: &mut Context<'_>,
    worker: &Rc<Worker>,
    place: &DatagramPlace,
    listener: &Listener,
    key: u64,
    accepting: &mut Option<A>,
) -> Poll<()> {
    let state = opening(place, &worker.process);
    let mut arrive = |arrival: Arrival<'_>| match state {
        Opening::Open => begin(worker, place, arrival, key),
        // A successor may have the same socket: the client repeats the datagram.
        Opening::Paused | Opening::Shut => arrival.ignore(),
    };
    if listener.poll(cx, &mut arrive).is_ready() {
        return Poll::Ready(());
    }
    if state == Opening::Shut {
        accepting.take();
        if listener.connections() == 0 {
            return Poll::Ready(());
        }
    }
    Poll::Pending
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
    if arrival.wants_retry() {
        return arrival.retry();
    }
    let Some(slots) = enter(worker, place, key) else { return arrival.ignore() };
    count(&worker.activity.accepted);
    let Some(link) = arrival.accept() else { return };
    worker.enter_session();
    client::start_quic(worker, &generation.frontend(place.frontend), place.bind, link, slots);
}

/// Takes the slots that a connection needs, if limits and rates allow it now.
fn enter(worker: &Worker, place: &DatagramPlace, key: u64) -> Option<Entry> {
    let live = &worker.process.live;
    if let Some(slots) = live.enter_freely(place.frontend, place.bind) {
        return Some(slots);
    }
    let slots = live.enter_or_park(place.frontend, place.bind, key, Waker::noop());
    let Some(slots) = slots else {
        live.unpark(place.frontend, place.bind, key);
        return None;
    };
    let admission = live.admit(place.frontend, place.bind, rt::now(), key, Waker::noop()).ok()?;
    admission.confirm();
    Some(slots)
}
