//! What a worker keeps for its connections, and the end of waiting when the process is to stop. Must never touch a
//! connection of another worker.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use base::{Key, Slab};
use conn::transport;
use rt::net::OwnedSocket;
use rt::{Class, LoadGuard};
use wire::http::{Fields, Head};

use super::capacity::{Capacity, CapacitySlot};
use super::connection;
use super::offload::{self, Protocol};
use super::pattern::Patterns;

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    /// What bodies are made of.
    pub patterns: Arc<Patterns>,
    /// Places for connections.
    pub capacity: Arc<Capacity>,
    /// One place for each listener of each worker that may still accept.
    pub accepting: Arc<Capacity>,
    stopping: AtomicBool,
}

impl Shared {
    /// Shared by workers that serve so many connections at most.
    pub fn new(most: usize) -> Arc<Self> {
        let (capacity, accepting) = (Capacity::new(most), Capacity::new(usize::MAX));
        Arc::new(Self { patterns: Patterns::new(), capacity, accepting, stopping: AtomicBool::new(false) })
    }
}

/// What is spoken with who connects to an address.
#[derive(Debug, Clone)]
pub struct Offer {
    /// By TLS.
    pub tls: Option<Arc<tls::Server>>,
    /// The protocol.
    pub protocol: Protocol,
}

/// One worker.
pub struct Worker {
    /// What all workers share.
    pub shared: Arc<Shared>,
    /// What bodies are made of.
    pub patterns: Arc<Patterns>,
    /// The head of whichever request is read now.
    pub head: RefCell<Head>,
    /// The trailers of answers as gRPC has them.
    pub trailers: Fields,
    /// Wakers of the tasks that watch for the stop.
    waiting: RefCell<Slab<Waker>>,
}

impl Worker {
    /// The current worker; jobs that are posted to it find it.
    pub fn start(shared: &Arc<Shared>) -> Rc<Self> {
        let (shared, patterns) = (Arc::clone(shared), Arc::clone(&shared.patterns));
        let mut trailers = Fields::new();
        trailers.append(b"grpc-status", b"0");
        let (head, waiting) = Default::default();
        let worker = Rc::new(Self { shared, patterns, head, trailers, waiting });
        rt::set_local(Rc::clone(&worker) as Rc<dyn std::any::Any>);
        worker
    }

    /// Whether the process is to stop.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Has every worker stop: nothing is accepted any more, idle connections are closed, others get their answer.
    pub fn stop_all(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for worker in 0..rt::workers() {
            rt::post(worker as rt::WorkerId, Box::new(|| on_this(|worker| worker.wake_all())));
        }
    }

    fn wake_all(&self) {
        self.waiting.borrow().iter().for_each(|(_, waker)| waker.wake_by_ref());
    }

    /// Has the current task woken when the process is to stop, as long as the result lives.
    pub async fn watch_stop(self: &Rc<Self>) -> Watch {
        poll_fn(|context| {
            let key = self.waiting.borrow_mut().insert(context.waker().clone());
            Poll::Ready(Watch { worker: Rc::clone(self), key })
        })
        .await
    }

    /// Serves a connection on this worker, or on the one that has least to do when that is much less.
    pub fn dispatch(self: &Rc<Self>, socket: OwnedSocket, offer: Offer, place: CapacitySlot) {
        let here = rt::worker();
        let workers = rt::workers();
        if workers == 1 {
            return self.serve(socket, offer, (place, None));
        }
        let idlest = (0..workers as rt::WorkerId).min_by_key(|worker| rt::load_of(*worker)).unwrap_or(here);
        let chosen = if rt::load_of(idlest).saturating_add(UNEVEN) < rt::load() { idlest } else { here };
        let held = (place, Some(LoadGuard::on(chosen)));
        if chosen == here {
            self.serve(socket, offer, held);
        } else {
            rt::post(chosen, Box::new(move || on_this(|worker| worker.serve(socket, offer, held))));
        }
    }

    fn serve(
        self: &Rc<Self>,
        socket: OwnedSocket,
        Offer { tls, protocol }: Offer,
        held: (CapacitySlot, Option<LoadGuard>),
    ) {
        let worker = Rc::clone(self);
        rt::spawn(Class::Normal, 0, async move {
            let _held = held;
            let _watch = worker.watch_stop().await;
            let transport = match tls {
                None => transport::accept(socket),
                Some(server) => transport::accept_tls(socket, &server),
            };
            match protocol {
                Protocol::Http => connection::serve(worker, transport).await,
                Protocol::Fcgi | Protocol::Spop => rt::boxed(offload::serve(worker, transport, protocol)).await,
            }
        });
    }
}

/// Connections that a worker may have more than another before it gives one away: handing over costs more than it evens
/// out.
const UNEVEN: u32 = 2;

fn on_this(action: impl FnOnce(&Rc<Worker>)) {
    if let Some(worker) = rt::local::<Worker>() {
        action(&worker);
    }
}

/// A task that is woken when the process is to stop.
pub struct Watch {
    worker: Rc<Worker>,
    key: Key,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.worker.waiting.borrow_mut().remove(self.key);
    }
}
