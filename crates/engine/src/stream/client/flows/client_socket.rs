//! The UDP socket that clients send to, as its flows use it. Must never know a flow.

use std::cell::Cell;
use std::rc::Rc;

use live::counters::{Count, DatagramCounters};
use rt::net::{DatagramSocket, Datagrams, Transmit};

use crate::datagram_sockets::DatagramPlace;
use crate::worker::Worker;

/// A worker's socket at an address of `dgram-bind`.
pub(super) struct ClientSocket {
    pub(super) worker: Rc<Worker>,
    pub(super) socket: DatagramSocket,
    pub(super) place: DatagramPlace,
    /// Number of datagrams that the system has rejected, as far as they are counted.
    unsent: Cell<u64>,
}

impl ClientSocket {
    pub(super) fn new(worker: Rc<Worker>, socket: DatagramSocket, place: DatagramPlace) -> Self {
        Self { worker, socket, place, unsent: Cell::new(0) }
    }

    /// Sends an answer. Returns whether the system has taken it; otherwise it is lost, and counted.
    pub(super) fn answer(&self, answer: Transmit<'_>, datagrams: &Datagrams<'_>) -> bool {
        let is_taken = self.socket.try_send(&mut [answer]) > 0;
        if !is_taken {
            self.count(datagrams.iter().count(), |counters| &counters.unsent);
        }
        let counts = self.socket.counts();
        let unsent = counts.unsent + counts.too_large;
        let before = self.unsent.replace(unsent);
        if unsent != before {
            self.count((unsent - before) as usize, |counters| &counters.unsent);
        }
        is_taken
    }

    /// Counts datagrams or flows.
    pub(super) fn count(&self, number: usize, of: impl FnOnce(&DatagramCounters) -> &Count) {
        let generation = self.worker.generation();
        let frontend = generation.frontend(self.place.owner().frontend);
        of(frontend.counters.datagrams.used()).add(number as u64);
    }
}
