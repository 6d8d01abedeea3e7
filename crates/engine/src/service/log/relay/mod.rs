//! Relays of log lines (configuration manual, section 12.6): receives the messages of others and hands each to the
//! worker's log. Must never keep a message, nor answer a sender.

mod connection;
mod datagrams;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use conn::handshake::Entrance;
use rt::net::{Address, Datagram, ListeningSocket};

use crate::worker::Worker;

/// A socket that messages come in at.
#[derive(Debug)]
pub struct RelaySocket {
    /// The relay: its place in [`policy::program::Program::log_forwards`].
    pub relay: usize,
    /// What it takes.
    pub kind: Reception,
}

/// How messages come in.
#[derive(Debug)]
pub enum Reception {
    /// Over connections, and what those begin with.
    Connections(Arc<ListeningSocket>, Entrance),
    /// As datagrams.
    Datagrams(Datagram),
}

/// Serves sockets on the calling worker. They close when the process begins to stop; connections that are open then stay
/// until their senders close them.
pub fn start(sockets: Vec<RelaySocket>) {
    let Some(worker) = rt::local::<Worker>() else { return };
    for RelaySocket { relay, kind } in sockets {
        let worker = Rc::clone(&worker);
        rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
            worker.watch_stop().await;
            match kind {
                Reception::Connections(socket, entrance) => {
                    connection::accept(worker, relay, (socket, entrance)).await;
                }
                Reception::Datagrams(socket) => datagrams::receive(worker, relay, socket).await,
            }
        });
    }
}

/// The sender's host; `None`: it is a process of this one.
fn source(address: &Address) -> Option<IpAddr> {
    address.inet().map(|address| address.ip().to_canonical())
}
