//! The memory for received messages, which the sockets of a worker share.
//!
//! A worker must never hold more memory than for a few batches, however many sockets it reads.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::Ecn;
use crate::sys::receive_messages::{MESSAGE_SIZE, MESSAGES, MessageHeads, MessageInfo};

/// Maximum number of batches of a worker that hold messages at a time.
const MOST_SPACES: usize = 4;

/// Datagrams of one peer that were received together. All are [`Datagrams::stride`] bytes long; the last one may be
/// shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams<'a> {
    pub bytes: &'a [u8],
    /// Length of each datagram in bytes, at least 1.
    pub stride: usize,
    /// The sender. An IPv4 peer of an IPv6 socket has an IPv4 address.
    pub peer: SocketAddr,
    /// The destination address of the packets: the source address of a reply. `None`: the kernel did not report it.
    pub local_ip: Option<IpAddr>,
    pub ecn: Option<Ecn>,
}

impl<'a> Datagrams<'a> {
    /// Returns the datagrams: at least one, which may be empty.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let empty = self.bytes.is_empty().then_some(self.bytes);
        empty.into_iter().chain(self.bytes.chunks(self.stride))
    }
}

/// Memory for the messages of one batch. The kernel writes only what arrives, so most of its pages are never used.
pub(crate) struct ReceiveSpace {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) heads: MessageHeads,
    pub(crate) messages: Vec<MessageInfo>,
}

impl ReceiveSpace {
    pub(crate) fn new() -> ReceiveSpace {
        ReceiveSpace {
            bytes: vec![0; MESSAGES * MESSAGE_SIZE].into_boxed_slice(),
            heads: MessageHeads::new(),
            messages: Vec::with_capacity(MESSAGES),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Datagrams<'_>> {
        self.messages.iter().map(|message| {
            let MessageInfo { slot, length, peer, control } = *message;
            let bytes = self.bytes.get(slot * MESSAGE_SIZE..).and_then(|slot| slot.get(..length)).unwrap_or_default();
            let stride = if control.stride == 0 { length.max(1) } else { control.stride };
            Datagrams { bytes, stride, peer, local_ip: control.local_ip, ecn: Ecn::from_bits(control.ecn) }
        })
    }
}

/// A worker's memory for received messages: one unused space is kept.
#[derive(Default)]
pub(crate) struct ReceiveSpaces {
    spare: Cell<Option<Box<ReceiveSpace>>>,
    lent: Cell<usize>,
}

impl ReceiveSpaces {
    /// Takes an empty space.
    ///
    /// # Errors
    /// `ResourceBusy`: too many batches hold messages.
    pub(crate) fn take(&self) -> io::Result<Box<ReceiveSpace>> {
        if self.lent.get() >= MOST_SPACES {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "batches are kept while their tasks wait"));
        }
        self.lent.set(self.lent.get() + 1);
        let mut space = self.spare.take().unwrap_or_else(|| Box::new(ReceiveSpace::new()));
        space.messages.clear();
        Ok(space)
    }

    pub(crate) fn give_back(&self, space: Box<ReceiveSpace>) {
        self.lent.set(self.lent.get().saturating_sub(1));
        self.spare.set(Some(space));
    }

    /// Frees the unused space.
    pub(crate) fn trim(&self) {
        self.spare.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::control_data::ControlInfo;

    fn message(length: usize, stride: usize) -> ReceiveSpace {
        let mut space = ReceiveSpace::new();
        (0..length).for_each(|at| space.bytes[MESSAGE_SIZE + at] = at as u8);
        let (peer, control) = ("192.0.2.1:9".parse().unwrap(), ControlInfo { stride, ..ControlInfo::default() });
        space.messages.push(MessageInfo { slot: 1, length, peer, control });
        space
    }

    fn lengths(length: usize, stride: usize) -> Vec<usize> {
        let space = message(length, stride);
        let datagrams = space.iter().next().unwrap();
        assert!(datagrams.bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        datagrams.iter().map(<[u8]>::len).collect()
    }

    #[test]
    fn joined_datagrams_are_split_by_their_stride() {
        assert_eq!(lengths(10, 4), [4, 4, 2]);
        assert_eq!(lengths(8, 4), [4, 4]);
        assert_eq!(lengths(5, 0), [5]);
        assert_eq!(lengths(5, 9), [5]);
        assert_eq!(lengths(0, 0), [0], "an empty datagram is one");
    }

    #[test]
    fn spaces_are_bounded_and_one_is_kept() {
        let spaces = ReceiveSpaces::default();
        let mut taken: Vec<_> = (0..MOST_SPACES).map(|_| spaces.take().unwrap()).collect();
        assert_eq!(spaces.take().map(drop).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        let last = taken.pop().unwrap();
        let place = last.bytes.as_ptr();
        spaces.give_back(last);
        assert_eq!(spaces.take().unwrap().bytes.as_ptr(), place);
    }
}
