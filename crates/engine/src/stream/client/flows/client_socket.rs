//! The UDP socket that clients send to, as its flows use it. Must never know a flow.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;

use live::counters::{Count, DatagramCounters};
use rt::net::{DatagramSocket, Datagrams, Rejection, Transmit};

use super::answers::Answers;
use super::flow_table::FlowKey;
use crate::datagram_sockets::DatagramPlace;
use crate::worker::Worker;

/// A worker's socket at an address of `dgram-bind`.
pub(super) struct ClientSocket {
    pub(super) worker: Rc<Worker>,
    pub(super) socket: DatagramSocket,
    pub(super) place: DatagramPlace,
    answers: RefCell<Answers>,
    /// Memory for datagrams with a PROXY header.
    pub(super) marked: RefCell<Vec<u8>>,
    /// Number of datagrams that the system has rejected, as far as they are counted.
    unsent: Cell<u64>,
}

impl ClientSocket {
    pub(super) fn new(worker: Rc<Worker>, socket: DatagramSocket, place: DatagramPlace) -> Self {
        // What is not read costs the kernel time; other processes that have the socket may read it.
        socket.forgo_information();
        socket.request_rejections();
        Self { worker, socket, place, answers: RefCell::default(), marked: RefCell::default(), unsent: Cell::new(0) }
    }

    /// Returns the datagrams without the address that they were sent to, unless the socket has several.
    pub(super) fn simplified<'a>(&self, datagrams: &Datagrams<'a>) -> Datagrams<'a> {
        Datagrams { local_ip: self.one_of_many(datagrams.local_ip), ..*datagrams }
    }

    /// Returns an address of the socket if it has several.
    fn one_of_many(&self, local_ip: Option<IpAddr>) -> Option<IpAddr> {
        local_ip.filter(|_| self.socket.local_address().ip().is_unspecified())
    }

    /// Returns the key of the flow that a report is about.
    pub(super) fn key_of(&self, rejection: &Rejection) -> FlowKey {
        FlowKey { peer: rejection.peer, local: self.one_of_many(rejection.local_ip) }
    }

    /// Sends an answer at the end of the iteration. Those that the system does not take are lost, and counted.
    pub(super) fn answer(self: &Rc<Self>, answer: Transmit<'_>) {
        let mut answers = self.answers.borrow_mut();
        if answers.are_in_the_way_of(&answer) {
            answers.drain(|transmits| self.send(transmits));
        }
        let is_first = answers.is_empty();
        if !answers.add(&answer) {
            return self.send(&mut [answer]);
        }
        if is_first {
            // It runs after the tasks that are queued now.
            rt::spawn_with(rt::Class::Normal, rt::NO_TAG, Rc::clone(self), |clients| async move { clients.flush() });
        }
    }

    fn flush(&self) {
        self.answers.borrow_mut().drain(|transmits| self.send(transmits));
    }

    fn send(&self, transmits: &mut [Transmit<'_>]) {
        let sent = self.socket.try_send(transmits);
        let counts = self.socket.counts();
        let rejected = counts.unsent + counts.too_large;
        let lost: usize = transmits.iter().skip(sent).map(datagrams_of).sum();
        let unsent = lost as u64 + rejected - self.unsent.replace(rejected);
        if unsent > 0 {
            self.count(unsent as usize, |counters| &counters.unsent);
        }
    }

    /// Returns those of the datagrams that are not too large, and counts the others: of several that have arrived together, the last
    /// one may be shorter.
    pub(super) fn fitting<'a>(&self, datagrams: &Datagrams<'a>, most: usize) -> Option<Datagrams<'a>> {
        if datagrams.stride <= most {
            return Some(*datagrams);
        }
        let (number, last) = (datagrams.iter().count(), datagrams.iter().last().unwrap_or_default());
        let fits = last.len() <= most;
        self.count(number - usize::from(fits), |counters| &counters.oversized);
        fits.then(|| Datagrams { bytes: last, stride: last.len().max(1), ..*datagrams })
    }

    /// Counts datagrams or flows.
    pub(super) fn count(&self, number: usize, of: impl FnOnce(&DatagramCounters) -> &Count) {
        let generation = self.worker.generation();
        let frontend = generation.frontend(self.place.owner().frontend);
        of(frontend.counters.datagrams.used()).add(number as u64);
    }
}

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if !self.answers.borrow().is_empty() {
            self.flush();
        }
    }
}

/// Returns the number of datagrams of an answer.
fn datagrams_of(answer: &Transmit<'_>) -> usize {
    let Transmit { contents, segment_size, .. } = answer;
    segment_size.filter(|size| *size > 0).map_or(1, |size| contents.len().div_ceil(size).max(1))
}
