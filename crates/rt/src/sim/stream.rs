//! Simulated streams: two endpoints, each with its received bytes, joined by a link with latency.
//!
//! Bytes must never overtake each other, and none may be lost while both ends exist.
//!
//! As in a kernel, half of a direction's capacity is the receiver's window, and the rest is the sender's buffer.
//! Closing a socket with unread input sends a reset, and so does input for a closed socket: the bytes in the sender's
//! buffer are lost then, and the end of the direction with them.

use std::io;
use std::time::Duration;

use base::{Key, Moment};

use super::faults::Link;
use super::node::{Endpoint, Kind};
use super::world::{Happening, World};
use crate::net::Address;
use crate::source::Events;

/// The delay after which a sender retransmits bytes dropped by a black hole.
const RETRANSMIT_AFTER: Duration = Duration::from_millis(200);

fn os_error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl World {
    pub(super) fn endpoint(&mut self, key: Key) -> Option<&mut Endpoint> {
        match self.nodes.get_mut(key).map(|node| &mut node.kind) {
            Some(Kind::Stream(endpoint)) => Some(endpoint),
            _ => None,
        }
    }

    pub(super) fn peek_endpoint(&self, key: Key) -> Option<&Endpoint> {
        match self.nodes.get(key).map(|node| &node.kind) {
            Some(Kind::Stream(endpoint)) => Some(endpoint),
            _ => None,
        }
    }

    pub(super) fn stream_events(&self, endpoint: &Endpoint) -> Events {
        let mut events = Events::NONE;
        let lasting = [
            (endpoint.failed || endpoint.read_closed || !endpoint.arrived.is_empty(), Events::READABLE),
            (endpoint.failed || endpoint.read_closed, Events::READ_CLOSED),
            (endpoint.failed || (endpoint.read_closed && endpoint.write_closed), Events::HANGUP),
            (endpoint.error.is_some(), Events::ERROR),
            (endpoint.failed || self.room_to_write(endpoint) > 0, Events::WRITABLE),
        ];
        for (holds, event) in lasting {
            if holds {
                events = events.with(event);
            }
        }
        events
    }

    /// Returns the number of bytes that an endpoint may send now. Everything may be sent to a closed end, which
    /// responds with a reset.
    fn room_to_write(&self, endpoint: &Endpoint) -> usize {
        let Some(peer) = endpoint.peer else { return 0 };
        self.peek_endpoint(peer).map_or(endpoint.link.buffer, Endpoint::room_for_peer)
    }

    /// Like [`World::room_to_write`], for the socket of a node.
    pub(super) fn send_capacity(&self, node: Key) -> usize {
        self.peek_endpoint(node).map_or(0, |endpoint| self.room_to_write(endpoint))
    }

    /// Returns the number of bytes written to a socket that wait for its peer's window.
    pub(super) fn unsent(&self, node: Key) -> usize {
        let peer = self.peek_endpoint(node).and_then(|endpoint| endpoint.peer);
        peer.and_then(|peer| self.peek_endpoint(peer)).map_or(0, Endpoint::unsent)
    }

    /// Returns the number of bytes written to a socket that have not entered its peer's window.
    pub(super) fn unacknowledged(&self, node: Key) -> usize {
        let peer = self.peek_endpoint(node).and_then(|endpoint| endpoint.peer);
        peer.and_then(|peer| self.peek_endpoint(peer)).map_or(0, Endpoint::unacknowledged)
    }

    /// Returns the arrival time of an item sent now over a link.
    pub(super) fn arrival(&mut self, link: Link) -> Moment {
        let jitter = self.random.below(link.jitter.as_nanos() as u64 + 1);
        self.now + link.latency + Duration::from_nanos(jitter)
    }

    /// Returns the arrival time of an item sent to `to` now, after everything sent before.
    pub(super) fn ordered_arrival(&mut self, to: Key, link: Link) -> Moment {
        let arrival = self.arrival(link);
        match self.endpoint(to) {
            Some(endpoint) => {
                endpoint.last_arrival = endpoint.last_arrival.max(arrival);
                endpoint.last_arrival
            }
            None => arrival,
        }
    }

    /// Starts a connection and returns its client end.
    pub(super) fn connect(&mut self, local: Address, to: Address) -> Key {
        let link = self.faults.link_of(&to);
        let client = self.add_node(Kind::Stream(Endpoint::new(local, to.clone(), to.clone(), link)));
        let at = self.arrival(link);
        self.schedule(at, Happening::Syn { client, to });
        client
    }

    /// Completes the handshake at the client end.
    pub(super) fn established(&mut self, client: Key, server: Key) {
        match self.endpoint(client) {
            Some(endpoint) => {
                endpoint.peer = Some(server);
                self.trigger(client);
            }
            None => self.reset_later(server),
        }
    }

    /// Joins a client end, whose SYN has arrived, with a new server end.
    pub(super) fn join(&mut self, client: Key) -> Option<Key> {
        let endpoint = self.endpoint(client)?;
        let (service, link) = (endpoint.service.clone(), endpoint.link);
        let mut server = Endpoint::new(endpoint.remote.clone(), endpoint.local.clone(), service, link);
        server.peer = Some(client);
        let server = self.add_node(Kind::Stream(server));
        Some(server)
    }

    /// Fails the connection: received bytes can still be read, then the error is reported.
    pub(super) fn fail(&mut self, key: Key, code: i32) {
        let Some(endpoint) = self.endpoint(key) else { return };
        if endpoint.failed {
            return;
        }
        (endpoint.failed, endpoint.error, endpoint.read_closed) = (true, Some(code), true);
        self.trigger(key);
    }

    pub(super) fn data_arrives(&mut self, to: Key, from: Key, bytes: Vec<u8>) {
        if let Some(service) = self.peek_endpoint(to).map(|endpoint| endpoint.service.clone())
            && self.faults.is_black_hole(&service)
        {
            let later = self.now + RETRANSMIT_AFTER;
            return self.schedule(later, Happening::Data { to, from, bytes });
        }
        let Some(endpoint) = self.endpoint(to) else {
            // The receiver has closed: the sender gets a reset.
            return self.reset_later(from);
        };
        endpoint.coming -= bytes.len();
        if !endpoint.failed {
            let mut count = bytes.len();
            if let Some(left) = &mut endpoint.cut {
                count = count.min(*left);
                *left -= count;
            }
            endpoint.arrived.extend(&bytes[..count]);
            self.trigger(to);
        }
    }

    pub(super) fn end_arrives(&mut self, to: Key) {
        let Some(endpoint) = self.peek_endpoint(to) else { return };
        if endpoint.coming > 0 || self.faults.is_black_hole(&endpoint.service) {
            // A black hole delays it, or delayed the data before it.
            let later = self.now + RETRANSMIT_AFTER;
            return self.schedule(later, Happening::End { to });
        }
        if let Some(endpoint) = self.endpoint(to).filter(|endpoint| endpoint.cut.is_none()) {
            endpoint.read_closed = true;
        }
        self.trigger(to);
    }

    /// Delivers a reset; in a black hole it is lost permanently.
    pub(super) fn reset_arrives(&mut self, to: Key) {
        let service = self.peek_endpoint(to).map(|endpoint| &endpoint.service);
        if service.is_some_and(|service| !self.faults.is_black_hole(service)) {
            self.fail(to, libc::ECONNRESET);
        }
    }

    /// Sends a reset to an endpoint, and drops what its peer had not sent yet.
    pub(super) fn reset_later(&mut self, to: Key) {
        let Some(endpoint) = self.endpoint(to) else { return };
        endpoint.drop_unsent();
        let link = endpoint.link;
        let at = self.ordered_arrival(to, link);
        self.schedule(at, Happening::Reset { to });
    }

    pub(super) fn receive(&mut self, key: Key, place: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(endpoint) = self.endpoint(key) else { return Err(os_error(libc::EBADF)) };
        if endpoint.arrived.is_empty() {
            return match endpoint.error.take() {
                Some(code) => Err(os_error(code)),
                None if endpoint.read_closed => Ok(Some(0)),
                None => Ok(None),
            };
        }
        let count = place.len().min(endpoint.arrived.len());
        for (place, byte) in place.iter_mut().zip(endpoint.arrived.drain(..count)) {
            *place = byte;
        }
        let roomy = endpoint.room_for_peer() * 3 >= endpoint.link.buffer;
        let (peer, link) = (endpoint.peer, endpoint.link);
        if let Some(peer) = peer.filter(|_| roomy)
            && let Some(sender) = self.endpoint(peer)
            && std::mem::replace(&mut sender.wants_room, false)
        {
            let at = self.arrival(link);
            self.schedule(at, Happening::Room { at: peer });
        }
        Ok(Some(count))
    }

    pub(super) fn has_something(&self, key: Key) -> bool {
        self.peek_endpoint(key)
            .is_none_or(|endpoint| !endpoint.arrived.is_empty() || endpoint.read_closed || endpoint.failed)
    }

    pub(super) fn send(&mut self, key: Key, bytes: &[u8]) -> io::Result<Option<usize>> {
        let Some(endpoint) = self.endpoint(key) else { return Err(os_error(libc::EBADF)) };
        if endpoint.failed || endpoint.write_closed {
            return Err(os_error(endpoint.error.take().unwrap_or(libc::EPIPE)));
        }
        let (link, Some(peer)) = (endpoint.link, endpoint.peer) else {
            endpoint.wants_room = true;
            return Ok(None);
        };
        let room = self.peek_endpoint(peer).map_or(link.buffer, Endpoint::room_for_peer);
        let mut count = room.min(bytes.len());
        if count < bytes.len() {
            if let Some(endpoint) = self.endpoint(key) {
                endpoint.wants_room = true;
            }
        } else if link.fragment && count > 1 && self.random.below(8) == 0 {
            // Like a kernel that accepted less than it could: signals free space later.
            count = 1 + self.random.below(count as u64 - 1) as usize;
            let at = self.arrival(link);
            self.schedule(at, Happening::Room { at: key });
        }
        if count == 0 {
            return Ok(None);
        }
        self.transmit(key, peer, link, &bytes[..count]);
        Ok(Some(count))
    }

    /// Sends bytes, in one piece or, on a link that fragments, in several.
    fn transmit(&mut self, from: Key, to: Key, link: Link, bytes: &[u8]) {
        if let Some(endpoint) = self.endpoint(to) {
            endpoint.coming += bytes.len();
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = if link.fragment { self.piece(rest.len()) } else { rest.len() };
            let (piece, behind) = rest.split_at(piece);
            rest = behind;
            let at = self.ordered_arrival(to, link);
            // The next piece arrives later, so that this one can be read alone.
            let gap = Duration::from_nanos(2_000 + self.random.below(50_000));
            if let Some(endpoint) = self.endpoint(to).filter(|_| !rest.is_empty()) {
                endpoint.last_arrival = at + gap;
            }
            self.schedule(at, Happening::Data { to, from, bytes: piece.to_vec() });
        }
    }

    /// Draws the length of the next fragment: mostly all, sometimes a single byte, otherwise any length.
    fn piece(&self, length: usize) -> usize {
        match self.random.below(8) {
            0 => 1,
            1..4 => 1 + self.random.below(length as u64) as usize,
            _ => length,
        }
    }

    pub(super) fn shutdown_write(&mut self, key: Key) -> io::Result<()> {
        let Some(endpoint) = self.endpoint(key) else { return Err(os_error(libc::EBADF)) };
        let (Some(peer), false) = (endpoint.peer, endpoint.failed) else { return Err(os_error(libc::ENOTCONN)) };
        if !std::mem::replace(&mut endpoint.write_closed, true) {
            let link = endpoint.link;
            let at = self.ordered_arrival(peer, link);
            self.schedule(at, Happening::End { to: peer });
        }
        Ok(())
    }

    /// Makes closing it reset the connection; for a listener, closing its accepted streams.
    pub(super) fn set_reset_on_close(&mut self, key: Key) {
        match self.nodes.get_mut(key).map(|node| &mut node.kind) {
            Some(Kind::Stream(endpoint)) => endpoint.reset_on_close = true,
            Some(Kind::Listener(backlog)) => backlog.reset_on_close = true,
            _ => {}
        }
    }

    pub(super) fn clear_reset_on_close(&mut self, key: Key) {
        if let Some(endpoint) = self.endpoint(key) {
            endpoint.reset_on_close = false;
        }
    }

    pub(super) fn take_error(&mut self, key: Key) -> Option<io::Error> {
        self.endpoint(key).and_then(|endpoint| endpoint.error.take()).map(os_error)
    }

    /// Closes an endpoint: the peer receives the end of stream, or a reset if there are unread bytes.
    pub(super) fn close_stream(&mut self, key: Key) {
        let Some(endpoint) = self.peek_endpoint(key) else { return };
        let reset = endpoint.reset_on_close || !endpoint.arrived.is_empty();
        let (peer, ended) = (endpoint.peer, endpoint.failed);
        if let Some(peer) = peer.filter(|_| !ended) {
            if reset {
                self.reset_later(peer);
            } else {
                // Fails if it is no longer connected.
                let _ = self.shutdown_write(key);
            }
        }
        self.nodes.remove(key);
    }
}
