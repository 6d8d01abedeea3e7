//! The listening sockets of the process, for those who pause them or pass them on. Must never keep one open: a socket
//! closes when the last worker lets go of it.

use std::sync::{Arc, Weak};

use rt::net::{Address, ListeningSocket};

use crate::listener::Listening;
use crate::service::peers::PeerSocket;
use crate::service::runtime::Opened;

/// All listening sockets.
#[derive(Debug, Default)]
pub struct Sockets(Box<[Place]>);

#[derive(Debug)]
struct Place {
    /// `None`: a socket of the runtime API, or one that peers come in at.
    frontend: Option<usize>,
    socket: Weak<ListeningSocket>,
}

impl Sockets {
    /// A socket of the runtime API at a path is left out: a successor makes one of its own in the same place, and who
    /// asks there from then on wants to speak with the successor.
    pub(crate) fn of(listening: &[Listening], runtime: &[Opened], peers: &[PeerSocket]) -> Self {
        let place = |frontend, socket: &Arc<ListeningSocket>| Place { frontend, socket: Arc::downgrade(socket) };
        let listening = listening.iter().map(|one| place(Some(one.frontend), &one.socket));
        let runtime = runtime.iter().filter(|one| !matches!(one.socket.local_address(), Address::Unix(_)));
        let others = runtime.map(|one| &one.socket).chain(peers.iter().map(|one| &one.socket));
        Self(listening.chain(others.map(|socket| place(None, socket))).collect())
    }

    /// Those that are still open, with the index of their frontend.
    pub fn open(&self) -> impl Iterator<Item = (Option<usize>, Arc<ListeningSocket>)> + '_ {
        self.0.iter().filter_map(|place| Some((place.frontend, place.socket.upgrade()?)))
    }
}
