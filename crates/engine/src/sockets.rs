//! The listening sockets of the process, for those who pause them or pass them on. Must never keep one open: a socket
//! closes when the last worker lets go of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use rt::net::{Address, ListeningSocket};

/// Where a listening socket belongs.
#[derive(Clone)]
pub struct Listening {
    /// Index of the frontend.
    pub frontend: usize,
    /// Index of its `bind` line.
    pub bind: usize,
    /// The socket, open in the whole process.
    pub socket: Arc<ListeningSocket>,
    /// The workers that accept from it and serve what they accept; `None`: all of them.
    pub workers: Option<Arc<[usize]>>,
    /// Set when the socket is to be closed while its frontend goes on.
    pub closed: Arc<AtomicBool>,
}

impl Listening {
    /// Whether it was closed while its frontend goes on.
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
    /// `None`: a socket of the runtime API, or one that peers come in at.
    frontend: Option<usize>,
    /// Index of the `bind` line.
    bind: usize,
    socket: Weak<ListeningSocket>,
    /// Set when it is to be closed alone.
    closed: Arc<AtomicBool>,
}

impl Sockets {
    /// Of frontends, of the runtime API and of peers. A socket of the runtime API at a
    /// path is left out: a successor makes one of its own in the same place, and who asks there from then on wants to
    /// speak with the successor.
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

    /// Those that are still open, with the index of their frontend.
    pub fn open(&self) -> Vec<(Option<usize>, Arc<ListeningSocket>)> {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        places.iter().filter_map(|place| Some((place.frontend, place.socket.upgrade()?))).collect()
    }

    /// Those of an address that are still open.
    pub fn at(&self, frontend: usize, bind: usize) -> Vec<Arc<ListeningSocket>> {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let meant = places.iter().filter(|place| place.frontend == Some(frontend) && place.bind == bind);
        meant.filter_map(|place| place.socket.upgrade()).collect()
    }

    /// Some more, of frontends.
    pub(crate) fn add(&self, sockets: &[Listening]) {
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| place.socket.strong_count() > 0);
        places.extend(sockets.iter().map(BoundSocket::of));
    }

    /// Nothing is accepted at an address any more, once those who wait there are woken.
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
