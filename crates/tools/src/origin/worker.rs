//! State of a worker's connections, and their wake-up when the process stops. Must never access a
//! connection of another worker.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use base::{Key, Slab};
use wire::http::{Fields, Head};

use super::capacity::Capacity;
use super::pattern::Patterns;

/// State shared by all workers.
#[derive(Debug)]
pub struct Shared {
    /// Content of bodies.
    pub patterns: Arc<Patterns>,
    /// Length of a body without parameters, in bytes.
    pub size: u64,
    /// Slots of connections.
    pub capacity: Arc<Capacity>,
    /// One slot for each listener of each worker that may still accept.
    pub accepting: Arc<Capacity>,
    stopping: AtomicBool,
}

impl Shared {
    /// Creates the state for workers with that maximum number of connections. `line`: bodies consist of it, and a body
    /// without parameters is one of it.
    pub fn new(most: usize, line: Option<&str>) -> Arc<Self> {
        let (capacity, accepting) = (Capacity::new(most), Capacity::new(usize::MAX));
        let patterns = line.map_or_else(Patterns::new, |line| Patterns::of_lines(line.as_bytes()));
        let size = line.map_or(0, |line| line.len() as u64);
        Arc::new(Self { patterns, size, capacity, accepting, stopping: AtomicBool::new(false) })
    }
}

/// State of one worker.
pub struct Worker {
    /// State shared by all workers.
    pub shared: Arc<Shared>,
    /// Content of bodies.
    pub patterns: Arc<Patterns>,
    /// The head of the request that is currently parsed.
    pub head: RefCell<Head>,
    /// Trailers of gRPC responses.
    pub trailers: Fields,
    /// Wakers of the tasks to wake at the stop.
    waiting: RefCell<Slab<Waker>>,
}

impl Worker {
    /// Creates the current worker; jobs posted to it can access it.
    pub fn start(shared: &Arc<Shared>) -> Rc<Self> {
        let (shared, patterns) = (Arc::clone(shared), Arc::clone(&shared.patterns));
        let mut trailers = Fields::new();
        trailers.append(b"grpc-status", b"0");
        let (head, waiting) = Default::default();
        let worker = Rc::new(Self { shared, patterns, head, trailers, waiting });
        rt::set_local(Rc::clone(&worker) as Rc<dyn std::any::Any>);
        worker
    }

    /// Whether the process stops.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Stops every worker: nothing is accepted, idle connections are closed, others receive their response.
    pub fn stop_all(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for worker in 0..rt::workers() {
            rt::post(worker as rt::WorkerId, Box::new(|| on_this(|worker| worker.wake_all())));
        }
    }

    fn wake_all(&self) {
        self.waiting.borrow().iter().for_each(|(_, waker)| waker.wake_by_ref());
    }

    /// Registers the current task to be woken when the process stops, as long as the result exists.
    pub async fn watch_stop(self: &Rc<Self>) -> Watch {
        poll_fn(|context| {
            let key = self.waiting.borrow_mut().insert(context.waker().clone());
            Poll::Ready(Watch { worker: Rc::clone(self), key })
        })
        .await
    }
}

/// Runs an action on the worker of this thread.
pub(super) fn on_this(action: impl FnOnce(&Rc<Worker>)) {
    if let Some(worker) = rt::local::<Worker>() {
        action(&worker);
    }
}

/// Registration of a task that is woken when the process stops.
pub struct Watch {
    worker: Rc<Worker>,
    key: Key,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.worker.waiting.borrow_mut().remove(self.key);
    }
}
