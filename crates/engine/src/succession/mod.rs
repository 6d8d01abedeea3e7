//! Processes that have the same UDP sockets: during a reload the younger one receives, and passes the datagrams of the older
//! one's QUIC connections to it over a channel, which it got together with the sockets. Must never keep a datagram waiting.
//!
//! A process has a tag, the second byte of its connection ids, which differs from those of the processes before it. The
//! younger process sends [`message::Message::Take`] before it receives; the older one stops, and names the handshakes that are
//! in progress there. The channel ends with either process: the younger one then answers for the older one's ids, or the older
//! one receives again.

pub mod message;
mod predecessors;
pub mod route;
mod successors;

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use quic::cid::{Id, Place};

pub use predecessors::{Predecessors, take_over};
pub use route::{OtherProcesses, Route, route};
pub use successors::{Successors, channels};

/// Marks the record of a channel among those of sockets; the lower byte is the tag of its process.
const MARK: u32 = 0x5143_0000;

/// A channel to a process, received from it or from a process between, or to be passed on.
#[derive(Debug)]
pub struct PassedChannel {
    /// The tag of the process at the other end.
    pub tag: u8,
    pub end: OwnedFd,
}

impl PassedChannel {
    /// Returns the number that marks the channel in its record.
    pub fn mark(&self) -> u32 {
        MARK | u32::from(self.tag)
    }

    /// Returns the tag of a channel from the number in its record; `None`: it is the record of a socket.
    pub fn tag_of(number: u32) -> Option<u8> {
        (number & !0xff == MARK).then_some((number & 0xff) as u8)
    }
}

/// The other processes with the sockets of this one.
#[derive(Debug, Default, Clone)]
pub struct Succession(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    tag: OnceLock<u8>,
    predecessors: Predecessors,
    successors: Successors,
}

impl Succession {
    /// Returns the older processes.
    pub fn predecessors(&self) -> &Predecessors {
        &self.0.predecessors
    }

    /// Returns the younger processes.
    pub fn successors(&self) -> &Successors {
        &self.0.successors
    }

    /// Returns the tag of this process. Call it on a worker.
    pub fn tag(&self) -> u8 {
        *self.0.tag.get_or_init(|| chosen_tag(rt::random(), |tag| self.0.predecessors.has(tag)))
    }
}

impl OtherProcesses for Succession {
    fn lives(&self, tag: u8) -> bool {
        self.0.predecessors.lives(tag)
    }

    fn handshake(&self, id: &Id) -> Option<Place> {
        self.0.predecessors.handshake(id)
    }

    fn has_successor(&self) -> bool {
        self.0.successors.are_any()
    }
}

/// Returns a tag that is not taken, from a random number. 0 is that of processes that have none.
fn chosen_tag(random: u64, is_taken: impl Fn(u8) -> bool) -> u8 {
    let first = (random % 255) as u8;
    let tags = (0..255).map(|step| (u16::from(first) + step) % 255 + 1);
    tags.map(|tag| tag as u8).find(|tag| !is_taken(*tag)).unwrap_or(first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_differs_from_those_of_older_processes() {
        assert_eq!([0, 254, 255, 509].map(|random| chosen_tag(random, |_| false)), [1, 255, 1, 255]);
        for random in 0..600 {
            let tag = chosen_tag(random, |tag| tag != 7);
            assert_eq!(tag, 7, "{random}");
            assert_ne!(chosen_tag(random, |_| true), 0);
        }
    }

    #[test]
    fn records_of_channels_differ_from_those_of_sockets() {
        let (end, _other) = rt::net::channel_pair().unwrap();
        assert_eq!(PassedChannel::tag_of(PassedChannel { tag: 200, end }.mark()), Some(200));
        assert_eq!([0, 1, 200, u32::MAX].map(PassedChannel::tag_of), [None; 4]);
    }
}
