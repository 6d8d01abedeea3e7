//! The listening sockets of the process, for those who pause them or pass them on. Must never keep one open: a socket
//! closes when the last worker lets go of it.

use std::sync::{Arc, Weak};

use rt::net::ListeningSocket;

use crate::listener::Listening;

/// All listening sockets.
#[derive(Debug, Default)]
pub struct Sockets(Box<[Place]>);

#[derive(Debug)]
struct Place {
    frontend: usize,
    socket: Weak<ListeningSocket>,
}

impl Sockets {
    pub(crate) fn of(listening: &[Listening]) -> Self {
        let place = |one: &Listening| Place { frontend: one.frontend, socket: Arc::downgrade(&one.socket) };
        Self(listening.iter().map(place).collect())
    }

    /// Those that are still open, with the index of their frontend.
    pub fn open(&self) -> impl Iterator<Item = (usize, Arc<ListeningSocket>)> + '_ {
        self.0.iter().filter_map(|place| Some((place.frontend, place.socket.upgrade()?)))
    }
}
