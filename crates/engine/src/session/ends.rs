//! The two ends of a client's connection: what the socket says, a balancer in front, and rules of the session. Must never look
//! into a message.

use std::net::SocketAddr;

use super::Session;

/// What is known of the ends of a client's connection beside the client's address.
#[derive(Default)]
pub(super) struct Ends {
    /// Where it connected to, as rules of the session see it now; inside `None`: unknown. `None`: not asked yet.
    destination: Option<Option<SocketAddr>>,
    /// Client and destination before a balancer in front or rules of the session could change them, where some do. Inside
    /// `None`: the connection was not asked yet.
    connection: Option<(Option<SocketAddr>, Option<Option<SocketAddr>>)>,
    /// What an application is told of a client and a destination, written for a request before.
    written: Option<Written>,
}

/// Text about two ends.
struct Written {
    ends: (Option<SocketAddr>, Option<SocketAddr>),
    text: Vec<u8>,
}

impl Session {
    /// A balancer in front has told who the client is and where it connected to: that counts from now on.
    pub fn replace_addresses(&self, client: SocketAddr, destination: SocketAddr) {
        let before = self.client.replace(Some(client));
        self.change(|ends| {
            ends.connection.get_or_insert((before, ends.destination));
            ends.destination = Some(Some(destination));
        });
    }

    /// `None`: nothing is known yet.
    fn known<T>(&self, read: impl FnOnce(&Ends) -> Option<T>) -> Option<T> {
        let ends = self.ends.take();
        let found = ends.as_deref().and_then(read);
        self.ends.set(ends);
        found
    }

    fn change(&self, with: impl FnOnce(&mut Ends)) {
        let mut ends = self.ends.take().unwrap_or_default();
        with(&mut ends);
        self.ends.set(Some(ends));
    }

    /// A rule of the session says who the client is, or where it connected to: that counts from now on. A rule of a stream
    /// changes [`crate::handshake_info::HandshakeInfo::ends`] instead.
    pub fn change_ends(&self, client: Option<SocketAddr>, destination: Option<SocketAddr>) {
        self.change(|ends| ends.destination = destination.map(Some).or(ends.destination));
        self.client.set(client.or(self.client()));
    }

    /// Rules of the session may change what its connection's ends are from here on.
    pub(super) fn keep_ends(&self) {
        let ends = (self.client(), Some(self.destination()));
        self.change(|known| {
            known.connection.get_or_insert(ends);
        });
    }

    /// The client, whatever a balancer in front and rules of the session have said.
    pub fn original_client(&self) -> Option<SocketAddr> {
        self.known(|ends| ends.connection).map_or(self.client(), |(client, _)| client)
    }

    /// Where it connected to, whatever a balancer in front and rules of the session have said.
    pub fn original_destination(&self) -> Option<SocketAddr> {
        match self.known(|ends| ends.connection) {
            Some((_, Some(destination))) => destination,
            Some((_, None)) => self.socket_destination(),
            None => self.destination(),
        }
    }

    /// The address that the client connected to. A system call the first time.
    pub fn destination(&self) -> Option<SocketAddr> {
        if let Some(known) = self.known(|ends| ends.destination) {
            return known;
        }
        let found = self.socket_destination();
        self.change(|ends| ends.destination = Some(found));
        found
    }

    /// The address that the socket of the client's connection is bound to, or that a packet filter redirected from.
    fn socket_destination(&self) -> Option<SocketAddr> {
        let address = self.socket.local_address().ok()?.inet()?;
        // The packet filter alone knows where a redirected connection went. An IPv4 address in the form of IPv6 is looked
        // up as IPv6 and not found: the kernel keeps the two apart.
        let before = self.socket.original_destination(address.is_ipv6()).ok();
        Some(before.and_then(|before| before.inet()).unwrap_or(address))
    }

    /// The address that the client connected to, if it was asked for before.
    pub fn known_destination(&self) -> Option<SocketAddr> {
        self.known(|ends| ends.destination).flatten()
    }

    /// Lends `read` what `write` writes about two ends. It is written again where they are others than the last time.
    pub fn lend_written_ends(
        &self,
        ends: (Option<SocketAddr>, Option<SocketAddr>),
        write: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(&[u8]),
    ) {
        let mut known = self.ends.take().unwrap_or_default();
        let written = match known.written.take().filter(|written| written.ends == ends) {
            Some(written) => written,
            None => {
                let mut text = Vec::new();
                write(&mut text);
                Written { ends, text }
            }
        };
        read(&written.text);
        known.written = Some(written);
        self.ends.set(Some(known));
    }
}
