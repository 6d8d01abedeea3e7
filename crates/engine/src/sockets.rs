//! The listening sockets of the process, for pausing them and passing them on. Must never keep one open: a socket is closed when
//! the last worker drops it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use rt::net::{Address, ListeningSocket};

/// A listening socket and its place in the configuration.
#[derive(Clone)]
pub struct Listening {
    /// Index of the frontend.
    pub frontend: usize,
    /// Index of its `bind` line.
    pub bind: usize,
    /// The socket, open in the whole process.
    pub socket: Arc<ListeningSocket>,
    /// The workers that accept from it and serve its connections; `None`: all.
    pub workers: Option<Arc<[usize]>>,
    /// Set when the socket alone is to be closed, not its frontend.
    pub closed: Arc<AtomicBool>,
}

impl Listening {
    /// Whether the socket alone was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether a worker accepts from the socket.
    pub fn is_served_by(&self, worker: usize) -> bool {
        self.workers.as_ref().is_none_or(|workers| workers.contains(&worker))
    }
}

/// All listening sockets.
#[derive(Debug, Default)]
pub struct Sockets(RwLock<Vec<BoundSocket>>);

#[derive(Debug)]
struct BoundSocket {
    /// Index of the frontend; `None`: a socket of the runtime API, or of peers.
    frontend: Option<usize>,
    /// Index of the `bind` line.
    bind: usize,
    socket: Weak<ListeningSocket>,
    /// Set when the socket alone is to be closed.
    closed: Arc<AtomicBool>,
}

impl Sockets {
    /// Collects the sockets of frontends, of the runtime API and of peers. A runtime API socket at a path is left out: a
    /// successor creates its own at the same path, and clients that connect from then on mean the successor.
    pub fn of<'a>(
        frontends: impl Iterator<Item = &'a Listening>,
        runtime: impl Iterator<Item = &'a Arc<ListeningSocket>>,
        peers: impl Iterator<Item = &'a Arc<ListeningSocket>>,
    ) -> Self {
        let own = |socket: &Arc<ListeningSocket>| BoundSocket {
            frontend: None,
            bind: 0,
            socket: Arc::downgrade(socket),
            closed: Arc::default(),
        };
        let frontends = frontends.map(BoundSocket::of);
        let runtime = runtime.filter(|socket| !matches!(socket.local_address(), Address::Unix(_)));
        Self(RwLock::new(frontends.chain(runtime.chain(peers).map(own)).collect()))
    }

    /// Returns the open sockets, with the index of their frontend.
    pub fn open(&self) -> Vec<(Option<usize>, Arc<ListeningSocket>)> {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        places.iter().filter_map(|place| Some((place.frontend, place.socket.upgrade()?))).collect()
    }

    /// Returns the open sockets of an address.
    pub fn at(&self, frontend: usize, bind: usize) -> Vec<Arc<ListeningSocket>> {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let meant = places.iter().filter(|place| place.frontend == Some(frontend) && place.bind == bind);
        meant.filter_map(|place| place.socket.upgrade()).collect()
    }

    /// Adds sockets of frontends.
    pub(crate) fn add(&self, sockets: &[Listening]) {
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| place.socket.strong_count() > 0);
        places.extend(sockets.iter().map(BoundSocket::of));
    }

    /// Marks an address as closed; accepting ends once the waiting tasks are woken.
    pub(crate) fn close(&self, frontend: usize, bind: usize) {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let meant = places.iter().filter(|place| place.frontend == Some(frontend) && place.bind == bind);
        meant.for_each(|place| place.closed.store(true, Ordering::Release));
    }
}

impl BoundSocket {
    fn of(listening: &Listening) -> Self {
        Self {
            frontend: Some(listening.frontend),
            bind: listening.bind,
            socket: Arc::downgrade(&listening.socket),
            closed: Arc::clone(&listening.closed),
        }
    }
}
