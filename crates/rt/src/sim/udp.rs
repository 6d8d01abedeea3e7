//! Simulated UDP sockets for batches: messages of several datagrams with addresses and ECN bits.
//!
//! They must behave as the kernel's do in all that a caller can see, joined datagrams included.

use std::io;
use std::net::SocketAddr;

use base::Key;

use super::node::SimDatagram;
use super::world::World;
use crate::net::{Address, ReceiveSpace};
use crate::sys::control_data::ControlInfo;
use crate::sys::receive_messages::{MESSAGE_SIZE, MESSAGES, MessageInfo};
use crate::sys::send_messages::OutgoingMessage;
use crate::sys::steer::MOST_SOCKETS;

/// Maximum number of datagrams that are joined.
const MOST_JOINED: usize = 64;
/// Maximum size of a datagram in bytes: that of an IPv4 packet without its headers.
const LONGEST: usize = 65_507;

impl World {
    pub(super) fn steer(&mut self, key: Key, count: usize) -> io::Result<()> {
        let address = self.datagram_address(key)?;
        let receivers = self.receiving.get_mut(&address).ok_or(io::ErrorKind::NotFound)?;
        if !(1..=MOST_SOCKETS).contains(&count) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        receivers.steered = Some(count);
        Ok(())
    }

    /// Sends messages until the send buffer is full; returns how many, `None` if it is full already.
    pub(super) fn send_messages<'a>(
        &mut self,
        key: Key,
        messages: impl Iterator<Item = OutgoingMessage<'a>>,
    ) -> io::Result<Option<usize>> {
        let local = self.datagram_address(key)?.inet().ok_or(io::ErrorKind::InvalidInput)?;
        if self.paths.is_full(&Address::Inet(local)) {
            return Ok(None);
        }
        let mut count = 0;
        for message in messages {
            let destination = Address::Inet(message.destination);
            if !self.paths.may_send_to(&destination) {
                if count > 0 {
                    break;
                }
                self.paths.end_rejection(&destination);
                return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
            }
            let result = self.send_message(key, local, &message);
            if count == 0 {
                result?;
            } else if result.is_err() {
                // Reported by the next call, whose first message it is.
                break;
            }
            count += 1;
        }
        Ok(Some(count))
    }

    fn send_message(&mut self, key: Key, local: SocketAddr, message: &OutgoingMessage<'_>) -> io::Result<()> {
        let destination = SocketAddr::new(message.destination.ip().to_canonical(), message.destination.port());
        let segment = message.segment.map_or(message.bytes.len(), usize::from).max(1);
        if message.bytes.len().min(segment) > LONGEST {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        if destination.is_ipv6() && local.is_ipv4() {
            return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT));
        }
        let own = Some(local.ip()).filter(|ip| !ip.is_unspecified());
        // Without an address of its own, the sender is on the host that it sends to.
        let source = message.source.or(own).unwrap_or(destination.ip()).to_canonical();
        let (from, to) = (Address::Inet(SocketAddr::new(source, local.port())), Address::Inet(destination));
        let empty = message.bytes.is_empty().then_some(message.bytes);
        for bytes in empty.into_iter().chain(message.bytes.chunks(segment)) {
            let datagram = SimDatagram { from: from.clone(), to: to.clone(), ecn: message.ecn, bytes: bytes.to_vec() };
            self.capture(datagram, |world, datagram| world.carry(key, datagram, true));
        }
        Ok(())
    }

    /// Receives messages; `None` if there are none. Datagrams that may be joined sometimes are.
    pub(super) fn receive_messages(&mut self, key: Key, space: &mut ReceiveSpace) -> io::Result<Option<usize>> {
        let own = self.mailslot(key)?;
        if std::mem::take(&mut own.is_refused) {
            return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        let mut waiting = std::mem::take(&mut own.waiting);
        for slot in 0..MESSAGES {
            let Some(first) = waiting.pop_front() else { break };
            let mut bytes = first.bytes.clone();
            let stride = bytes.len();
            let (mut count, mut last) = (1, stride);
            while let Some(next) = waiting.front() {
                let is_alike = next.from == first.from && next.to == first.to && next.ecn == first.ecn;
                let fits = count < MOST_JOINED && bytes.len() + next.bytes.len() < MESSAGE_SIZE;
                let is_next = last == stride && (1..=stride).contains(&next.bytes.len());
                if !is_alike || !fits || !is_next || self.random.below(8) == 0 {
                    break;
                }
                last = next.bytes.len();
                count += 1;
                bytes.extend_from_slice(&next.bytes);
                waiting.pop_front();
            }
            let stride = if count > 1 { stride } else { 0 };
            put(space, slot, &first, &bytes, stride);
        }
        self.mailslot(key)?.waiting = waiting;
        Ok(Some(space.messages.len()).filter(|count| *count > 0))
    }
}

/// Writes a message into a slot.
fn put(space: &mut ReceiveSpace, slot: usize, first: &SimDatagram, bytes: &[u8], stride: usize) {
    let Some(peer) = first.from.inet() else { return };
    let local_ip = first.to.inet().map(|to| to.ip());
    if let Some(place) = space.bytes.get_mut(slot * MESSAGE_SIZE..).and_then(|slot| slot.get_mut(..bytes.len())) {
        place.copy_from_slice(bytes);
        let control = ControlInfo { local_ip, ecn: first.ecn, stride };
        space.messages.push(MessageInfo { slot, length: bytes.len(), peer, control });
    }
}
