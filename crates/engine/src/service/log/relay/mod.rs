//! Relays of log messages (configuration manual, section 12.6): receives messages and passes each to the worker's log. Must never
//! keep a message, nor reply to a sender.

mod connection;
mod datagrams;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use conn::handshake::LowerLayers;
use rt::net::{Address, Datagram, ListeningSocket};

use crate::worker::Worker;

/// A socket that receives messages.
#[derive(Debug)]
pub struct RelaySocket {
    /// Index of the relay in [`policy::program::Program::log_forwards`].
    pub relay: usize,
    /// Connections or datagrams.
    pub kind: Reception,
}

/// Transport of received messages.
#[derive(Debug)]
pub enum Reception {
    /// Connections, with the headers that they begin with.
    Connections(Arc<ListeningSocket>, LowerLayers),
    /// Datagrams.
    Datagrams(Datagram),
}

/// Serves sockets on the calling worker. They are closed when the process begins to stop; open connections stay until their
/// senders close them.
pub fn start(sockets: Vec<RelaySocket>) {
    let Some(worker) = rt::local::<Worker>() else { return };
    for RelaySocket { relay, kind } in sockets {
        let worker = Rc::clone(&worker);
        rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
            worker.watch_stop().await;
            match kind {
                Reception::Connections(socket, entrance) => {
                    connection::accept(worker, relay, socket, entrance).await;
                }
                Reception::Datagrams(socket) => datagrams::receive(worker, relay, socket).await,
            }
        });
    }
}

/// Returns the sender's host; `None`: it is a process of this host.
fn source(address: &Address) -> Option<IpAddr> {
    address.inet().map(|address| address.ip().to_canonical())
}
