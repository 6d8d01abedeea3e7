//! Life cycle of the process: opens its sockets, daemonizes, starts the workers, ends at a signal. Must never
//! read from a connection.

use std::future::poll_fn;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use base::Buffer;
use rt::net::{Address, BindOptions, Datagram, Listener, ListeningSocket};
use rt::process::StarterWaits;
use rt::{Class, Signal};

use super::arguments::Settings;
use super::capacity::CapacitySlot;
use super::certificate::{self, Offers, Origin};
use super::dispatch::Offer;
use super::offload::Protocol;
use super::quic::{self, QuicListening, QuicSocket};
use super::worker::{Shared, Worker};
use crate::Outcome;

/// Backlog of listening sockets; the kernel's own limit applies as well.
const BACKLOG: i32 = 65_535;
/// Number of connections accepted before yielding.
const BATCH: usize = 64;
/// Maximum size of a received datagram, in bytes.
const LARGEST_DATAGRAM: usize = 16 * 1024;
/// Pause of a listener when the system has no descriptor or no memory for a connection.
const REST: Duration = Duration::from_millis(100);
/// SIGINT and SIGTERM end the process, SIGUSR1 does so after all pending responses.
const SIGNALS: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::User1];
/// Number of descriptors that are not connections: standard streams, listeners, those of the workers.
const OTHER_DESCRIPTORS: u64 = 64;

/// Serves until a signal ends it.
pub fn run(settings: &Settings) -> Outcome {
    let offers = match offers(settings) {
        Ok(offers) => offers,
        Err(why) => return Outcome::Failed(why),
    };
    let sockets = match open(settings, offers.as_ref()) {
        Ok(sockets) => sockets,
        Err(why) => return Outcome::Failed(why),
    };
    let workers = usize::from(settings.threads.unwrap_or_else(processors));
    let quic = match open_quic(settings, workers, offers.as_ref()) {
        Ok(quic) => quic,
        Err(why) => return Outcome::Failed(why),
    };
    let datagrams = match datagram_sockets(settings, &sockets) {
        Ok(datagrams) => datagrams,
        Err(why) => return Outcome::Failed(why),
    };
    let starter = match settings.daemon.then(rt::process::daemonise).transpose() {
        Ok(starter) => starter,
        Err(error) => return Outcome::Failed(format!("cannot go to the background: {error}")),
    };
    if let Err(error) = rt::signal::handle_signals(&SIGNALS) {
        return Outcome::Failed(format!("cannot handle signals: {error}"));
    }
    for Listening { socket, tls, protocol } in &sockets {
        let scheme = match protocol {
            Protocol::Http if tls.is_some() => "https",
            Protocol::Http => "http",
            Protocol::Fcgi => "fcgi",
            Protocol::Spop => "spop",
        };
        // The system may have selected the port.
        let _ = writeln!(io::stdout().lock(), "Listening on {scheme}://{}/", socket.local_address());
    }
    for address in quic.iter().filter_map(QuicListening::local_address) {
        let _ = writeln!(io::stdout().lock(), "Listening on h3://{address}/");
    }
    if let Some(path) = &settings.pid_file
        && let Err(error) = std::fs::write(path, format!("{}\n", rt::process::id()))
    {
        return Outcome::Failed(format!("cannot write {}: {error}", path.display()));
    }
    let most = connections(settings, workers);
    let line = settings.text.as_ref().map(|text| format!("{text}\n"));
    match start(Service { sockets, quic, datagrams, workers, most, line, starter, at_end: rt::stop }) {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::Failed(format!("cannot start the workers: {error}")),
    }
}

/// Returns the TLS servers, if an address needs one.
fn offers(settings: &Settings) -> Result<Option<Offers>, String> {
    if settings.secure.is_empty() && settings.quic.is_empty() {
        return Ok(None);
    }
    let from = match &settings.certificate {
        Some(path) => Origin::Files(path, settings.key.as_deref()),
        None => Origin::Made(settings.kind),
    };
    certificate::offer(from).map(Some)
}

/// Opens every address for HTTP/3.
fn open_quic(settings: &Settings, workers: usize, offers: Option<&Offers>) -> Result<Vec<QuicListening>, String> {
    let Some(offers) = offers else { return Ok(Vec::new()) };
    let open = |address: &Address| {
        QuicListening::open(address, workers, &offers.quic)
            .map_err(|error| format!("cannot listen on {address} by QUIC: {error}"))
    };
    settings.quic.iter().map(open).collect()
}

/// Opens every address of TCP.
fn open(settings: &Settings, offers: Option<&Offers>) -> Result<Vec<Listening>, String> {
    let offer = offers.map(|offers| Arc::clone(&offers.tcp));
    let clear = settings.listen.iter().map(|address| (address, None, Protocol::Http));
    let secure = settings.secure.iter().map(|address| (address, offer.clone(), Protocol::Http));
    let fcgi = settings.fcgi.iter().map(|address| (address, None, Protocol::Fcgi));
    let spop = settings.spop.iter().map(|address| (address, None, Protocol::Spop));
    let open = |(address, tls, protocol): (&Address, _, _)| match listen(address) {
        Ok(socket) => Ok(Listening { socket, tls, protocol }),
        Err(error) => Err(format!("cannot listen on {address}: {error}")),
    };
    clear.chain(secure).chain(fcgi).chain(spop).map(open).collect()
}

fn listen(address: &Address) -> io::Result<Arc<ListeningSocket>> {
    // The acknowledgement of a request is sent with its response: one packet fewer for each connection.
    let options = BindOptions { backlog: BACKLOG, reuse_port: true, no_quick_ack: true, ..BindOptions::default() };
    ListeningSocket::bind(address, &options).map(Arc::new)
}

/// Opens a datagram socket at every listening address, if configured.
fn datagram_sockets(settings: &Settings, listening: &[Listening]) -> Result<Vec<Datagram>, String> {
    let wanted = if settings.datagrams { listening } else { &[] };
    let bind = |listening: &Listening| {
        let address = listening.socket.local_address();
        Datagram::bind(address).map_err(|error| format!("cannot take datagrams at {address}: {error}"))
    };
    wanted.iter().map(bind).collect()
}

fn processors() -> u16 {
    u16::try_from(rt::process::available_processors().len()).unwrap_or(u16::MAX).max(1)
}

/// Returns the maximum number of connections: the configured one, limited by the available descriptors.
fn connections(settings: &Settings, workers: usize) -> usize {
    let Settings { listen, secure, quic, fcgi, spop, .. } = settings;
    let listeners = listen.len() + secure.len() + quic.len() * workers + fcgi.len() + spop.len();
    let others = OTHER_DESCRIPTORS + 4 * workers as u64 + listeners as u64;
    let (_, hard) = rt::process::descriptor_limit().unwrap_or((1024, 1024));
    let wanted = settings.most.unwrap_or(u64::MAX);
    let limit = rt::process::raise_descriptor_limit(wanted.saturating_add(others).min(hard));
    let descriptors = limit.map_or(1024, |(soft, _)| soft);
    usize::try_from(wanted.min(descriptors.saturating_sub(others))).unwrap_or(usize::MAX)
}

fn start(service: Service) -> io::Result<()> {
    if let Some(starter) = &service.starter {
        starter.detach_standard_streams()?;
    }
    let config = rt::Config { workers: service.workers, ..rt::Config::default() };
    rt::run(&config, service.into_main())
}

/// A listening address.
#[derive(Debug, Clone)]
pub struct Listening {
    pub socket: Arc<ListeningSocket>,
    /// The TLS server; `None`: without TLS.
    pub tls: Option<Arc<tls::Server>>,
    pub protocol: Protocol,
}

impl From<ListeningSocket> for Listening {
    /// Listens for HTTP without TLS.
    fn from(socket: ListeningSocket) -> Self {
        Self { socket: Arc::new(socket), tls: None, protocol: Protocol::Http }
    }
}

/// An origin that has not started to serve.
#[derive(Debug)]
pub struct Service {
    /// Listening sockets.
    pub sockets: Vec<Listening>,
    /// Addresses for HTTP/3, each with a socket for each worker.
    pub quic: Vec<QuicListening>,
    /// Sockets whose datagrams are discarded, on the first worker.
    pub datagrams: Vec<Datagram>,
    /// Number of workers of its runtime.
    pub workers: usize,
    /// Maximum number of concurrent connections.
    pub most: usize,
    /// Line of text that bodies consist of; `None`: haterm's, and a body without parameters is empty.
    pub line: Option<String>,
    /// The command that waits for the start of the service.
    pub starter: Option<StarterWaits>,
    /// Called at its end, on the first worker: [`rt::stop`], if nothing else runs on the workers.
    pub at_end: fn(),
}

impl Service {
    /// Returns the first task of each worker.
    pub fn into_main(self) -> rt::Main {
        let Self { sockets, quic, datagrams, workers, most, line, starter, at_end } = self;
        let shared = Shared::new(most, line.as_deref());
        let (sockets, starter) = (Mutex::new((workers, sockets)), Mutex::new(starter));
        let datagrams = Mutex::new(datagrams);
        let quic = Mutex::new(quic);
        Arc::new(move |number| {
            let worker = Worker::start(&shared);
            let sockets = take(&sockets);
            let starter = starter.lock().unwrap_or_else(PoisonError::into_inner).take();
            let datagrams = std::mem::take(&mut *datagrams.lock().unwrap_or_else(PoisonError::into_inner));
            let quic = take_quic(&quic);
            Box::pin(async move {
                accept(&worker, sockets);
                accept_quic(&worker, quic);
                for socket in datagrams {
                    rt::spawn(Class::Normal, 0, forget_datagrams(socket));
                }
                if let Some(starter) = starter {
                    starter.leave(0);
                }
                if number == 0 {
                    wait_for_signals(&worker, at_end).await;
                }
            })
        })
    }
}

/// Returns the sockets for one worker. The last worker takes the originals: a socket is closed when no worker holds it.
fn take(sockets: &Mutex<(usize, Vec<Listening>)>) -> Vec<Listening> {
    let mut held = sockets.lock().unwrap_or_else(PoisonError::into_inner);
    held.0 = held.0.saturating_sub(1);
    if held.0 == 0 { std::mem::take(&mut held.1) } else { held.1.clone() }
}

/// Returns the sockets for one worker.
fn take_quic(listening: &Mutex<Vec<QuicListening>>) -> Vec<QuicSocket> {
    let mut listening = listening.lock().unwrap_or_else(PoisonError::into_inner);
    listening.iter_mut().filter_map(QuicListening::take).collect()
}

/// Serves HTTP/3 on the current worker.
fn accept_quic(worker: &Rc<Worker>, sockets: Vec<QuicSocket>) {
    for socket in sockets {
        let Some(accepting) = worker.shared.accepting.take() else { return };
        rt::spawn(Class::Normal, 0, quic::accept(Rc::clone(worker), socket, accepting));
    }
}

/// Receives and discards datagrams as long as the process serves.
async fn forget_datagrams(mut socket: Datagram) {
    let mut buffer = Buffer::with_capacity(LARGEST_DATAGRAM);
    loop {
        let received = poll_fn(|context| socket.poll_receive_from(context, &mut buffer)).await;
        buffer.clear();
        if received.is_err() {
            rt::sleep(REST).await;
        }
    }
}

async fn wait_for_signals(worker: &Rc<Worker>, at_end: fn()) {
    let Ok(mut signals) = rt::signals(&SIGNALS) else { return at_end() };
    while signals.next().await == Signal::User1.number() {
        if worker.is_stopping() {
            continue;
        }
        worker.stop_all();
        let shared = Arc::clone(&worker.shared);
        rt::spawn(Class::Normal, 0, async move {
            poll_fn(|context| shared.accepting.poll_empty(context)).await;
            poll_fn(|context| shared.capacity.poll_empty(context)).await;
            at_end();
        });
    }
    at_end();
}

/// Accepts from every socket on the current worker.
fn accept(worker: &Rc<Worker>, sockets: Vec<Listening>) {
    for Listening { socket, tls, protocol } in sockets {
        let Some(accepting) = worker.shared.accepting.take() else { return };
        let worker = Rc::clone(worker);
        rt::spawn(Class::Normal, 0, async move {
            let _accepting = accepting;
            let _watch = worker.watch_stop().await;
            if let Ok(mut listener) = Listener::new(socket) {
                accept_until_stop(&worker, &mut listener, &Offer { tls, protocol }).await;
            }
        });
    }
}

async fn accept_until_stop(worker: &Rc<Worker>, listener: &mut Listener, offer: &Offer) {
    while acceptable(worker, listener).await {
        for _ in 0..BATCH {
            let Some(place) = place(worker, listener).await else { return };
            match listener.try_accept() {
                Ok(Some((socket, _))) => worker.dispatch(socket, offer.clone(), place),
                Ok(None) => break,
                Err(_) => {
                    // Established connections continue, the others wait in the backlog.
                    listener.pause();
                    rt::sleep(REST).await;
                    if listener.resume().is_err() {
                        return;
                    }
                    break;
                }
            }
        }
        rt::yield_now().await;
    }
    take_leftovers(worker, listener, offer);
}

/// Ready with true when a connection can be accepted, with false when the process stops.
async fn acceptable(worker: &Worker, listener: &mut Listener) -> bool {
    poll_fn(|context| {
        if worker.is_stopping() {
            return Poll::Ready(false);
        }
        listener.poll_acceptable(context).map(|()| true)
    })
    .await
}

/// Returns a slot for a connection. The listener is paused while there is none. `None`: the process stops.
async fn place(worker: &Worker, listener: &mut Listener) -> Option<CapacitySlot> {
    let capacity = &worker.shared.capacity;
    if let Some(place) = capacity.take() {
        return Some(place);
    }
    listener.pause();
    let place = poll_fn(|context| {
        if worker.is_stopping() {
            return Poll::Ready(None);
        }
        capacity.poll_take(context).map(Some)
    })
    .await;
    listener.resume().ok().and(place)
}

/// Serves clients that have connected by the time of the stop: closing the socket would reset them.
fn take_leftovers(worker: &Rc<Worker>, listener: &mut Listener, offer: &Offer) {
    // Pending events are not awaited: the socket itself is queried.
    listener.pause();
    if listener.resume().is_err() {
        return;
    }
    for _ in 0..BACKLOG {
        let Some(place) = worker.shared.capacity.take() else { return };
        match listener.try_accept() {
            Ok(Some((socket, _))) => worker.dispatch(socket, offer.clone(), place),
            Ok(None) | Err(_) => return,
        }
    }
}
