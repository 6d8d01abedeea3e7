//! The UDP socket of a listening address on one worker, shared by its listener and its connections. Owns what waits to be
//! sent, and the assignment of datagrams to connections. Must never accept a connection by itself.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};

use base::moment::Moment;
use quic::cid::HandshakeIds;
use quic::{Datagram, Handle, Incoming, Input, Received, Transmit};
use rt::net::{DatagramSocket, Datagrams, Ecn};

use super::closing::{Closing, ClosingPeriods};
use super::timed::TimedEndpoint;
use super::views::SocketCounts;

/// Connections that are kept after a silent end (`silent-drop`), so that nothing answers their clients.
const MOST_SILENT: usize = 256;

thread_local! {
    /// Memory for the datagrams of one call, of all sockets of the thread.
    static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Passes memory for datagrams to `write`, which must not send for a second connection.
pub(super) fn with_out<T>(write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    OUT.with_borrow_mut(write)
}

/// A connection of a socket.
pub(super) trait DatagramReceiver {
    /// Processes a datagram.
    fn receive(&self, input: Input);

    /// The ids of its handshake, while that is in progress.
    fn handshake(&self) -> Option<HandshakeIds>;
}

/// A socket with the machine that knows its connections.
pub(super) struct Socket {
    pub(super) socket: DatagramSocket,
    pub(super) machine: RefCell<TimedEndpoint>,
    /// The connections, by the index of their handle.
    links: RefCell<Vec<Option<Weak<dyn DatagramReceiver>>>>,
    /// Datagrams that the kernel had no room for: at most one batch of each connection.
    unsent: RefCell<VecDeque<Unsent>>,
    /// The tasks of connections that wait until these were sent.
    waiting: RefCell<Vec<Waker>>,
    /// The listener's task.
    listener: RefCell<Option<Waker>>,
    /// Connections that have ended silently, the newest last.
    silent: RefCell<VecDeque<Rc<dyn DatagramReceiver>>>,
    /// Connections that have ended, and of which packets may still arrive.
    closing: RefCell<ClosingPeriods>,
    /// How often the kernel had no room.
    full: Cell<u64>,
}

/// A batch of datagrams that was not sent.
struct Unsent {
    transmit: Transmit,
    bytes: Vec<u8>,
}

/// Returns a batch in the form that the socket takes.
fn batch<'b>(transmit: &Transmit, bytes: &'b [u8]) -> rt::net::Transmit<'b> {
    rt::net::Transmit {
        destination: transmit.to,
        source: transmit.from,
        ecn: Ecn::from_bits(transmit.ecn),
        contents: bytes,
        segment_size: Some(transmit.segment).filter(|segment| *segment > 0 && *segment < bytes.len()),
    }
}

impl Socket {
    pub(super) fn new(socket: DatagramSocket, machine: TimedEndpoint) -> Self {
        Self {
            socket,
            machine: RefCell::new(machine),
            links: RefCell::default(),
            unsent: RefCell::default(),
            waiting: RefCell::default(),
            listener: RefCell::default(),
            silent: RefCell::default(),
            closing: RefCell::default(),
            full: Cell::new(0),
        }
    }

    /// Records the connection of a handle.
    pub(super) fn enter(&self, handle: Handle, link: Weak<dyn DatagramReceiver>) {
        let links = &mut *self.links.borrow_mut();
        let index = handle.index();
        if links.len() <= index {
            links.resize(index + 1, None);
        }
        links[index] = Some(link);
    }

    /// Forgets the connection of a handle. The listener may wait for its last one.
    pub(super) fn leave(&self, handle: Handle) {
        if let Some(link) = self.links.borrow_mut().get_mut(handle.index()) {
            *link = None;
        }
        if let Some(listener) = self.listener.borrow_mut().take() {
            listener.wake();
        }
    }

    /// Forgets the connection of a handle at `end`. Its late packets are answered with its last one.
    pub(super) fn close(&self, handle: Handle, closing: Closing, end: Moment) {
        let replaced = self.closing.borrow_mut().add(handle, closing, end);
        if let Some(replaced) = replaced {
            self.machine.borrow_mut().forget(replaced);
        }
    }

    /// Forgets the connections whose closing period is over, for the listener's task.
    pub(super) fn poll_closing(&self, cx: &mut Context<'_>) {
        while let Some(ended) = self.closing.borrow_mut().poll_ended(cx) {
            self.machine.borrow_mut().forget(ended);
        }
    }

    /// Keeps a connection whose client gets no further answer.
    pub(super) fn keep_silent(&self, link: Rc<dyn DatagramReceiver>) {
        let oldest = {
            let silent = &mut *self.silent.borrow_mut();
            silent.push_back(link);
            if silent.len() > MOST_SILENT { silent.pop_front() } else { None }
        };
        drop(oldest);
    }

    /// Drops the connections that were kept silent.
    pub(super) fn drop_silent(&self) {
        let silent = std::mem::take(&mut *self.silent.borrow_mut());
        drop(silent);
    }

    /// Passes each datagram of a message to `one`.
    pub(super) fn each(message: &Datagrams<'_>, one: &mut dyn FnMut(&Datagram<'_>)) {
        let ecn = message.ecn.map_or(0, Ecn::bits);
        for bytes in message.iter() {
            one(&Datagram { bytes, peer: message.peer, local: message.local_ip, ecn });
        }
    }

    /// Processes a datagram. One that begins a connection is returned to `arrive`.
    pub(super) fn receive(&self, datagram: &Datagram<'_>, arrive: &mut dyn FnMut(Incoming)) {
        // Nothing is borrowed while a connection or its session runs.
        let received = with_out(|out| {
            let received = self.machine.borrow_mut().receive(datagram, out);
            if let Received::Answer(transmit) = &received {
                self.answer(transmit, out);
            }
            received
        });
        match received {
            Received::Nothing | Received::Answer(_) => {}
            Received::Input(handle, input) => {
                let link = self.links.borrow().get(handle.index()).and_then(|link| link.as_ref()?.upgrade());
                match link {
                    Some(link) => link.receive(input),
                    None => self.answer_late(handle, datagram),
                }
            }
            Received::Incoming(incoming) => arrive(incoming),
        }
    }

    /// Answers a datagram for a connection that has ended.
    fn answer_late(&self, handle: Handle, datagram: &Datagram<'_>) {
        if let Some(last) = self.closing.borrow_mut().answer(handle, datagram) {
            self.answer(&last.transmit, &last.bytes);
        }
    }

    /// Returns the ids of handshakes in progress, `most` at most.
    pub(super) fn handshakes(&self, most: usize) -> Vec<HandshakeIds> {
        let links = self.links.borrow();
        let links = links.iter().filter_map(|link| link.as_ref()?.upgrade());
        links.filter_map(|link| link.handshake()).take(most).collect()
    }

    /// Returns the counts since this was called before.
    pub(super) fn take_counts(&self) -> SocketCounts {
        SocketCounts { endpoint: self.machine.borrow_mut().take_counts(), full: self.full.take() }
    }

    /// Sends an answer of the machine, which may be lost.
    pub(super) fn answer(&self, transmit: &Transmit, out: &[u8]) {
        self.socket.try_send(&mut [batch(transmit, &out[..transmit.size])]);
    }

    /// Sends a batch of a connection. Returns false if the kernel had no room for all of it: the rest is sent later, and
    /// the connection has to wait ([`Socket::wait`]).
    pub(super) fn send(&self, transmit: &Transmit, bytes: &[u8]) -> bool {
        let mut batches = [batch(transmit, &bytes[..transmit.size])];
        if self.socket.try_send(&mut batches) > 0 {
            return true;
        }
        self.full.set(self.full.get() + 1);
        let bytes = batches[0].contents.to_vec();
        let transmit = Transmit { size: bytes.len(), ..*transmit };
        self.unsent.borrow_mut().push_back(Unsent { transmit, bytes });
        if let Some(listener) = self.listener.borrow_mut().take() {
            listener.wake();
        }
        false
    }

    /// Whether batches wait for room in the kernel.
    pub(super) fn is_full(&self) -> bool {
        !self.unsent.borrow().is_empty()
    }

    /// Wakes a task once nothing waits to be sent.
    pub(super) fn wait(&self, cx: &Context<'_>) {
        let waiting = &mut *self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    /// Sends the batches that wait, for the listener's task.
    pub(super) fn poll_unsent(&self, cx: &mut Context<'_>) {
        self.listener.replace(Some(cx.waker().clone()));
        loop {
            let Some(mut first) = self.unsent.borrow_mut().pop_front() else { break };
            let mut batches = [batch(&first.transmit, &first.bytes)];
            if self.socket.poll_send(cx, &mut batches).is_pending() {
                let rest = batches[0].contents.len();
                let sent = first.bytes.len() - rest;
                first.bytes.drain(..sent);
                first.transmit.size = rest;
                self.unsent.borrow_mut().push_front(first);
                return;
            }
        }
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }
}
