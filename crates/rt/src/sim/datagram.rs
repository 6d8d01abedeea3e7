//! Simulated datagrams: delivered to the socket bound to their address, and recorded for the test to read.
//!
//! They may overtake each other, and arrive twice only if their path duplicates them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use base::Key;

use super::node::{CapturedDatagram, Kind, Mailslot, SimDatagram};
use super::world::World;
use crate::net::{Address, Ecn};
use crate::source::Events;

/// Maximum number of datagrams queued for one receiver; further ones are lost.
const MOST_WAITING: usize = 1024;
/// Maximum number of datagrams recorded for the test.
const MOST_CAPTURED: usize = 1 << 20;

impl World {
    pub(super) fn open_datagram(
        &mut self,
        address: Option<&Address>,
        is_shared: bool,
        is_v6_only: bool,
    ) -> io::Result<Key> {
        let mut address = address.cloned();
        if let Some(Address::Inet(inet)) = &mut address
            && inet.port() == 0
        {
            inet.set_port(self.fresh_port());
        }
        let others = address.as_ref().and_then(|address| self.receiving.get(address));
        if others.is_some_and(|others| !is_shared || !others.is_shared) {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        let slot = Mailslot { address: address.clone(), is_v6_only, ..Mailslot::default() };
        let key = self.add_node(Kind::Datagram(slot));
        if let Some(address) = address {
            let receivers = self.receiving.entry(address).or_default();
            receivers.is_shared = is_shared;
            receivers.keys.push(key);
        }
        Ok(key)
    }

    pub(super) fn mailslot(&mut self, key: Key) -> io::Result<&mut Mailslot> {
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

    pub(super) fn datagram_drops(&mut self, key: Key) -> u64 {
        self.mailslot(key).map_or(0, |slot| slot.dropped)
    }

    pub(super) fn datagram_events(&self, slot: &Mailslot) -> Events {
        let readable = if slot.waiting.is_empty() && !slot.is_refused { Events::NONE } else { Events::READABLE };
        let is_full = slot.address.as_ref().is_some_and(|address| self.paths.is_full(address));
        if is_full { readable } else { readable.with(Events::WRITABLE) }
    }

    /// Reports the events of the sockets at an address again.
    pub(super) fn report_datagrams(&mut self, address: &Address) {
        let keys = self.receiving.get(address).map(|receivers| receivers.keys.clone()).unwrap_or_default();
        keys.into_iter().for_each(|key| self.trigger(key));
    }

    /// Sends a datagram, to the connected peer if `to` is `None`.
    pub(super) fn send_datagram(&mut self, key: Key, to: Option<&Address>, bytes: Vec<u8>) -> io::Result<()> {
        let slot = self.mailslot(key)?;
        let to = to.or(slot.peer.as_ref()).cloned().ok_or(io::ErrorKind::NotConnected)?;
        let from = slot.address.clone().unwrap_or(Address::Unnamed);
        self.capture(SimDatagram { from, to, ecn: 0, bytes }, |world, datagram| world.carry(key, datagram, false));
        Ok(())
    }

    /// Records a datagram for the test, and passes it on.
    pub(super) fn capture(&mut self, datagram: SimDatagram, next: impl FnOnce(&mut World, SimDatagram)) {
        if self.datagrams.len() < MOST_CAPTURED {
            let SimDatagram { from, to, ecn, bytes } = datagram.clone();
            self.datagrams.push(CapturedDatagram { from, to, ecn: Ecn::from_bits(ecn), bytes });
        }
        next(self, datagram);
    }

    pub(super) fn datagram_arrives(&mut self, mut datagram: SimDatagram) {
        if self.faults.is_black_hole(&datagram.to) || self.faults.is_black_hole(&datagram.from) {
            return;
        }
        let Some(to) = self.paths.inside_of(&datagram.to) else { return };
        datagram.to = to;
        let Some(key) = self.receiver_of(&datagram) else { return self.refuse_datagram(&datagram) };
        if let Ok(slot) = self.mailslot(key)
            && slot.peer.as_ref().is_none_or(|peer| *peer == datagram.from)
        {
            if slot.waiting.len() >= MOST_WAITING {
                slot.dropped += 1;
                return;
            }
            slot.waiting.push_back(datagram);
            self.trigger(key);
        }
    }

    /// Reports to a connected sender that there is no receiver.
    fn refuse_datagram(&mut self, datagram: &SimDatagram) {
        let SimDatagram { from, to, ecn, bytes } = datagram.clone();
        let Some(key) = self.receiver_of(&SimDatagram { from: to, to: from, ecn, bytes }) else { return };
        if let Ok(slot) = self.mailslot(key)
            && slot.peer.as_ref() == Some(&datagram.to)
        {
            slot.is_refused = true;
            self.trigger(key);
        }
    }

    /// Returns the socket bound to the destination of a datagram, or to all addresses with its port.
    fn receiver_of(&self, datagram: &SimDatagram) -> Option<Key> {
        if let Some(receivers) = self.receiving.get(&datagram.to) {
            return receivers.select(datagram);
        }
        let to = datagram.to.inet()?;
        let at_all = |ip| self.receiving.get(&Address::Inet(SocketAddr::new(ip, to.port())))?.select(datagram);
        let of_family = to.is_ipv4().then(|| at_all(Ipv4Addr::UNSPECIFIED.into())).flatten();
        of_family.or_else(|| at_all(Ipv6Addr::UNSPECIFIED.into()).filter(|key| to.is_ipv6() || self.is_dual(*key)))
    }

    fn is_dual(&self, key: Key) -> bool {
        matches!(self.nodes.get(key).map(|node| &node.kind), Some(Kind::Datagram(slot)) if !slot.is_v6_only)
    }

    pub(super) fn receive_datagram(&mut self, key: Key, place: &mut [u8]) -> io::Result<Option<(usize, Address)>> {
        let received = self.mailslot(key)?.waiting.pop_front();
        Ok(received.map(|SimDatagram { from, bytes, .. }| {
            let count = bytes.len().min(place.len());
            place[..count].copy_from_slice(&bytes[..count]);
            (count, from)
        }))
    }

    pub(super) fn close_datagram(&mut self, key: Key) {
        let Ok(slot) = self.mailslot(key) else { return };
        let address = slot.address.clone();
        self.nodes.remove(key);
        let Some(address) = address else { return };
        let Some(receivers) = self.receiving.get_mut(&address) else { return };
        // Like in the kernel, the last one takes its place.
        if let Some(index) = receivers.keys.iter().position(|other| *other == key) {
            receivers.keys.swap_remove(index);
        }
        if receivers.keys.is_empty() {
            self.receiving.remove(&address);
        }
    }
}
