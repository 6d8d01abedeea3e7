//! A worker's view of one listening UDP socket: datagrams are received, and connections begin. Must never choose which
//! connections are accepted.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll};

use quic::cid::HandshakeIds;
use quic::endpoint::ServerSettings;
use quic::{Datagram, Endpoint, Incoming};
use rt::net::{DatagramSocket, ReceiveBatch};

use super::link::Link;
use super::socket::{Socket, with_out};
use super::timed::TimedEndpoint;
use super::views::SocketCounts;

/// A listening UDP socket of one worker.
pub struct Listener(Rc<Socket>);

/// A connection that a client begins. Dropping it ignores the datagram.
pub struct Arrival<'l> {
    socket: &'l Rc<Socket>,
    incoming: Incoming,
}

/// Decides about the datagrams of a socket.
pub trait Reception {
    /// Whether a datagram is not for this socket's machine: it was passed on or dropped.
    fn diverts(&mut self, datagram: &Datagram<'_>) -> bool;

    /// Takes a connection that begins, and the datagram that begins it.
    fn arrive(&mut self, arrival: Arrival<'_>, datagram: &Datagram<'_>);
}

impl Listener {
    /// Receives the datagrams of `socket` for `machine`.
    pub fn new(socket: DatagramSocket, machine: Endpoint) -> Self {
        Self(Rc::new(Socket::new(socket, TimedEndpoint::new(machine))))
    }

    /// Receives datagrams until there are none. Ready if the socket has failed.
    pub fn poll(&self, cx: &mut Context<'_>, reception: &mut dyn Reception) -> Poll<io::Error> {
        let socket = &self.0;
        self.poll_send(cx);
        let mut batch = ReceiveBatch::new();
        loop {
            match socket.socket.poll_receive(cx, &mut batch) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Ready(Ok(())) => {}
            }
            for message in batch.iter() {
                Socket::each(&message, &mut |datagram| {
                    if !reception.diverts(datagram) {
                        self.receive(datagram, reception);
                    }
                });
            }
        }
    }

    /// Processes a datagram that was received elsewhere.
    pub fn receive(&self, datagram: &Datagram<'_>, reception: &mut dyn Reception) {
        let socket = &self.0;
        socket.receive(datagram, &mut |incoming| reception.arrive(Arrival { socket, incoming }, datagram));
    }

    /// Sends what waits, and receives nothing: another process reads the socket.
    pub fn poll_send(&self, cx: &mut Context<'_>) {
        self.0.poll_closing(cx);
        self.0.poll_unsent(cx);
    }

    /// Stops waiting for datagrams, until the next [`Listener::poll`].
    pub fn stop_watching(&self) {
        self.0.socket.stop_watching();
    }

    /// Returns the ids of handshakes in progress, `most` at most.
    pub fn handshakes(&self, most: usize) -> Vec<HandshakeIds> {
        self.0.handshakes(most)
    }

    /// Sets the settings of connections that begin from now on.
    pub fn serve(&self, settings: ServerSettings) {
        self.0.machine.borrow_mut().serve(Some(settings));
    }

    /// Returns the counts since this was called before.
    pub fn take_counts(&self) -> SocketCounts {
        self.0.take_counts()
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.0.machine.borrow().connections()
    }
}

impl Arrival<'_> {
    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.incoming.peer()
    }

    /// The address that the client has sent to, without its port; `None`: unknown.
    pub fn local(&self) -> Option<IpAddr> {
        self.incoming.local()
    }

    /// The address of the listening socket.
    pub fn listening(&self) -> SocketAddr {
        self.socket.socket.local_address()
    }

    /// Whether the client's address has to be validated by a Retry packet first.
    pub fn wants_retry(&self) -> bool {
        self.socket.machine.borrow().wants_retry(&self.incoming)
    }

    /// Whether a Retry packet may be sent: the client has not sent a valid token.
    pub fn may_retry(&self) -> bool {
        self.incoming.may_retry()
    }

    /// Sends a Retry packet. A client that has sent a token already is ignored.
    pub fn retry(self) {
        with_out(|out| {
            let answer = self.socket.machine.borrow_mut().retry(self.incoming, out);
            match answer {
                Ok(transmit) => self.socket.answer(&transmit, out),
                Err(incoming) => self.socket.machine.borrow_mut().ignore(incoming),
            }
        });
    }

    /// Refuses the connection (CONNECTION_REFUSED).
    pub fn refuse(self) {
        with_out(|out| {
            let transmit = self.socket.machine.borrow_mut().refuse(self.incoming, out);
            self.socket.answer(&transmit, out);
        });
    }

    /// Ignores the datagram: the client will repeat it.
    pub fn ignore(self) {
        self.socket.machine.borrow_mut().ignore(self.incoming);
    }

    /// Accepts the connection. `None`: its first packets are invalid.
    pub fn accept(self) -> Option<Link> {
        let Self { socket, incoming } = self;
        let accepted = with_out(|out| {
            let accepted = socket.machine.borrow_mut().accept(incoming, out);
            if let Err(refusal) = &accepted
                && let Some(transmit) = &refusal.answer
            {
                socket.answer(transmit, out);
            }
            accepted
        });
        accepted.ok().map(|(handle, connection)| Link::new(socket, handle, connection))
    }
}

impl Drop for Listener {
    /// Drops the connections that were kept silent: they refer to the socket.
    fn drop(&mut self) {
        self.0.drop_silent();
    }
}
