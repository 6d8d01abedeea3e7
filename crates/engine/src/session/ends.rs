//! Source and destination of a client's connection: from the socket, from a proxy in front, and from rules of the session. Must
//! never look into a message.

use std::net::SocketAddr;

use super::Session;

/// Addresses of a client's connection other than its current source.
#[derive(Default)]
pub(super) struct Ends {
    /// Current destination; inner `None`: unknown. `None`: not queried yet.
    destination: Option<Option<SocketAddr>>,
    /// Source and destination before a proxy in front or rules of the session changed them. Inner `None`: the destination was not
    /// queried yet.
    connection: Option<(Option<SocketAddr>, Option<Option<SocketAddr>>)>,
    /// Addresses encoded for an application, cached for the next request.
    written: Option<EncodedEnds>,
}

/// Encoded text of a source and a destination.
struct EncodedEnds {
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    text: Vec<u8>,
}

impl Session {
    /// Replaces source and destination by those that a proxy in front has sent.
    pub fn replace_addresses(&self, client: SocketAddr, destination: SocketAddr) {
        let before = self.client.replace(Some(client));
        self.change(|ends| {
            ends.connection.get_or_insert((before, ends.destination));
            ends.destination = Some(Some(destination));
        });
    }

    /// Sets the destination address of a connection without a socket of its own.
    pub(crate) fn set_destination(&self, destination: SocketAddr) {
        self.change(|ends| ends.destination = Some(Some(destination)));
    }

    /// Reads from the stored addresses; `None`: none are stored.
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

    /// Replaces source or destination, by a rule of the session. A rule of a stream changes
    /// [`crate::stream_state::StreamState::ends`] instead.
    pub fn change_ends(&self, client: Option<SocketAddr>, destination: Option<SocketAddr>) {
        self.change(|ends| ends.destination = destination.map(Some).or(ends.destination));
        self.client.set(client.or(self.client()));
    }

    /// Saves the addresses of the connection before rules of the session change them.
    pub(crate) fn keep_ends(&self) {
        let ends = (self.client(), Some(self.destination()));
        self.change(|known| {
            known.connection.get_or_insert(ends);
        });
    }

    /// Returns the source address of the connection itself, before changes by a proxy in front and by rules.
    pub fn original_client(&self) -> Option<SocketAddr> {
        self.known(|ends| ends.connection).map_or(self.client(), |(client, _)| client)
    }

    /// Returns the destination address of the connection itself, before changes by a proxy in front and by rules.
    pub fn original_destination(&self) -> Option<SocketAddr> {
        match self.known(|ends| ends.connection) {
            Some((_, Some(destination))) => destination,
            Some((_, None)) => self.socket_destination(),
            None => self.destination(),
        }
    }

    /// Returns the destination address of the client's connection. Costs a system call the first time.
    pub fn destination(&self) -> Option<SocketAddr> {
        if let Some(known) = self.known(|ends| ends.destination) {
            return known;
        }
        let found = self.socket_destination();
        self.change(|ends| ends.destination = Some(found));
        found
    }

    /// Returns the local address of the client's socket, or the original destination before a redirection by the packet filter.
    fn socket_destination(&self) -> Option<SocketAddr> {
        let address = self.socket.local_address().ok()?.inet()?;
        // Only the packet filter knows the original destination of a redirected connection. An IPv4-mapped address is looked up
        // as IPv6 and not found: the kernel keeps the two apart.
        let before = self.socket.original_destination(address.is_ipv6()).ok();
        Some(before.and_then(|before| before.inet()).unwrap_or(address))
    }

    /// Returns the destination address if it was queried before.
    pub fn known_destination(&self) -> Option<SocketAddr> {
        self.known(|ends| ends.destination).flatten()
    }

    /// Passes the text that `write` produces for a source and a destination to `read`. It is written again only if they changed.
    pub fn lend_written_ends(
        &self,
        source: Option<SocketAddr>,
        destination: Option<SocketAddr>,
        write: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(&[u8]),
    ) {
        let mut known = self.ends.take().unwrap_or_default();
        let same = |written: &EncodedEnds| written.source == source && written.destination == destination;
        let written = match known.written.take().filter(same) {
            Some(written) => written,
            None => {
                let mut text = Vec::new();
                write(&mut text);
                EncodedEnds { source, destination, text }
            }
        };
        read(&written.text);
        known.written = Some(written);
        self.ends.set(Some(known));
    }
}
