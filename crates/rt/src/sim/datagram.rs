//! Simulated datagrams: delivered to the socket bound to their address, and recorded for the test to read.
//!
//! They may overtake each other and are never delivered twice.

use std::io;

use base::Key;

use super::node::{CapturedDatagram, Kind, Mailslot};
use super::world::{Happening, World};
use crate::net::Address;

/// Maximum number of datagrams queued for one receiver; further ones are lost.
const MOST_WAITING: usize = 1024;
/// Maximum number of datagrams recorded for the test.
const MOST_CAPTURED: usize = 1 << 20;

impl World {
    pub(super) fn open_datagram(&mut self, address: Option<&Address>) -> io::Result<Key> {
        let mut address = address.cloned();
        if let Some(Address::Inet(inet)) = &mut address
            && inet.port() == 0
        {
            inet.set_port(self.fresh_port());
        }
        if address.as_ref().is_some_and(|address| self.receiving.contains_key(address)) {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        let slot = Mailslot { address: address.clone(), ..Mailslot::default() };
        let key = self.add_node(Kind::Datagram(slot));
        if let Some(address) = address {
            self.receiving.insert(address, key);
        }
        Ok(key)
    }

    fn mailslot(&mut self, key: Key) -> io::Result<&mut Mailslot> {
        match self.nodes.get_mut(key).map(|node| &mut node.kind) {
            Some(Kind::Datagram(slot)) => Ok(slot),
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    pub(super) fn connect_datagram(&mut self, key: Key, to: &Address) -> io::Result<()> {
        self.mailslot(key)?.peer = Some(to.clone());
        Ok(())
    }

    pub(super) fn datagram_address(&mut self, key: Key) -> io::Result<Address> {
        Ok(self.mailslot(key)?.address.clone().unwrap_or(Address::Unnamed))
    }

    /// Sends a datagram, to the connected peer if `to` is `None`.
    pub(super) fn send_datagram(&mut self, key: Key, to: Option<&Address>, bytes: Vec<u8>) -> io::Result<()> {
        let slot = self.mailslot(key)?;
        let to = to.or(slot.peer.as_ref()).cloned().ok_or(io::ErrorKind::NotConnected)?;
        let from = slot.address.clone().unwrap_or(Address::Unnamed);
        if self.datagrams.len() < MOST_CAPTURED {
            self.datagrams.push(CapturedDatagram { from: from.clone(), to: to.clone(), bytes: bytes.clone() });
        }
        let link = self.faults.link_of(&to);
        let at = self.arrival(link);
        self.schedule(at, Happening::Datagram { to, from, bytes });
        Ok(())
    }

    pub(super) fn datagram_arrives(&mut self, to: &Address, from: Address, bytes: Vec<u8>) {
        if self.faults.is_black_hole(to) {
            return;
        }
        let Some(key) = self.receiving.get(to).copied() else { return };
        if let Ok(slot) = self.mailslot(key)
            && slot.waiting.len() < MOST_WAITING
            && slot.peer.as_ref().is_none_or(|peer| *peer == from)
        {
            slot.waiting.push_back((from, bytes));
            self.trigger(key);
        }
    }

    pub(super) fn receive_datagram(&mut self, key: Key, place: &mut [u8]) -> io::Result<Option<(usize, Address)>> {
        let received = self.mailslot(key)?.waiting.pop_front();
        Ok(received.map(|(from, bytes)| {
            let count = bytes.len().min(place.len());
            place[..count].copy_from_slice(&bytes[..count]);
            (count, from)
        }))
    }

    pub(super) fn close_datagram(&mut self, key: Key) {
        if let Ok(slot) = self.mailslot(key) {
            let address = slot.address.clone();
            self.nodes.remove(key);
            address.map(|address| self.receiving.remove(&address));
        }
    }
}
