//! The listening sockets of the process, for those who pause them or pass them on. Must never keep one open: a socket
//! closes when the last worker lets go of it.

use std::sync::{Arc, Weak};

use rt::net::{Address, ListeningSocket};

/// All listening sockets.
#[derive(Debug, Default)]
pub struct Sockets(Box<[BoundSocket]>);

#[derive(Debug)]
struct BoundSocket {
    /// `None`: a socket of the runtime API, or one that peers come in at.
    frontend: Option<usize>,
    socket: Weak<ListeningSocket>,
}

impl Sockets {
    /// Of frontends (each with the index of its proxy), of the runtime API and of peers. A socket of the runtime API at a
    /// path is left out: a successor makes one of its own in the same place, and who asks there from then on wants to
    /// speak with the successor.
    pub fn of<'a>(
        frontends: impl Iterator<Item = (usize, &'a Arc<ListeningSocket>)>,
        runtime: impl Iterator<Item = &'a Arc<ListeningSocket>>,
        peers: impl Iterator<Item = &'a Arc<ListeningSocket>>,
    ) -> Self {
        let place = |frontend, socket: &Arc<ListeningSocket>| BoundSocket { frontend, socket: Arc::downgrade(socket) };
        let frontends = frontends.map(|(frontend, socket)| place(Some(frontend), socket));
        let runtime = runtime.filter(|socket| !matches!(socket.local_address(), Address::Unix(_)));
        Self(frontends.chain(runtime.chain(peers).map(|socket| place(None, socket))).collect())
    }

    /// Those that are still open, with the index of their frontend.
    pub fn open(&self) -> impl Iterator<Item = (Option<usize>, Arc<ListeningSocket>)> + '_ {
        self.0.iter().filter_map(|place| Some((place.frontend, place.socket.upgrade()?)))
    }
}
