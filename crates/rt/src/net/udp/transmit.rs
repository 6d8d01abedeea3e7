//! Datagrams to be sent to one destination, divided into the messages that the kernel accepts.
//!
//! It must never change the bytes or their order.

use std::net::{IpAddr, SocketAddr};

use super::Ecn;
use crate::sys::send_messages::OutgoingMessage;

/// Maximum number of datagrams of a message: the limit of the first kernels that split messages.
pub(super) const MOST_SEGMENTS: usize = 64;
/// Maximum size of a message of several datagrams in bytes: fits into an IP packet after its headers, in either family.
const MOST_BYTES: usize = 65_000;

/// Datagrams to be sent to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    pub destination: SocketAddr,
    /// Source address; `None`: the kernel chooses one.
    pub source: Option<IpAddr>,
    pub ecn: Option<Ecn>,
    pub contents: &'a [u8],
    /// Length of each datagram in bytes, except of the last one, which may be shorter; `None`: there is one datagram.
    pub segment_size: Option<usize>,
}

impl<'a> Transmit<'a> {
    /// Returns the first message: one datagram, or several if the kernel is to split it (`joined`).
    pub(super) fn first_message(&self, joined: bool) -> OutgoingMessage<'a> {
        let Transmit { destination, source, contents, .. } = *self;
        let segment = self.segment_size.and_then(|size| u16::try_from(size).ok());
        let size = segment.map(usize::from).filter(|size| (1..contents.len()).contains(size));
        let length = match size {
            None => contents.len(),
            Some(size) if joined => (size * MOST_SEGMENTS.min(MOST_BYTES / size).max(1)).min(contents.len()),
            Some(size) => size,
        };
        let ecn = self.ecn.map_or(0, Ecn::bits);
        let segment = segment.filter(|_| size.is_some_and(|size| size < length));
        OutgoingMessage { destination, source, ecn, bytes: &contents[..length], segment }
    }
}

/// Returns the messages of transmits.
pub(super) fn messages<'a>(transmits: &[Transmit<'a>], joined: bool) -> impl Iterator<Item = OutgoingMessage<'a>> {
    transmits.iter().flat_map(move |transmit| {
        let mut rest = Some(*transmit);
        std::iter::from_fn(move || {
            let message = rest?.first_message(joined);
            rest = rest.map(|rest| Transmit { contents: &rest.contents[message.bytes.len()..], ..rest });
            rest = rest.filter(|rest| !rest.contents.is_empty());
            Some(message)
        })
    })
}

/// Removes the first `count` messages from the transmits; returns how many transmits are done.
pub(super) fn advance(transmits: &mut [Transmit<'_>], joined: bool, count: usize) -> usize {
    let mut done = 0;
    for _ in 0..count {
        let Some(first) = transmits.get_mut(done) else { break };
        first.contents = &first.contents[first.first_message(joined).bytes.len()..];
        done += usize::from(first.contents.is_empty());
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    static BYTES: [u8; 130_000] = [7; 130_000];

    fn transmit(length: usize, segment_size: Option<usize>) -> Transmit<'static> {
        let destination = "192.0.2.1:9".parse().unwrap();
        Transmit { destination, source: None, ecn: None, contents: &BYTES[..length], segment_size }
    }

    fn divided(transmits: &[Transmit<'_>], joined: bool) -> Vec<(usize, Option<u16>)> {
        messages(transmits, joined).map(|message| (message.bytes.len(), message.segment)).collect()
    }

    #[test]
    fn messages_hold_what_the_kernel_accepts() {
        assert_eq!(divided(&[transmit(25, Some(10))], true), [(25, Some(10))]);
        assert_eq!(divided(&[transmit(25, Some(10))], false), [(10, None), (10, None), (5, None)]);
        assert_eq!(divided(&[transmit(25, None), transmit(0, None)], true), [(25, None), (0, None)]);
        assert_eq!(divided(&[transmit(25, Some(25)), transmit(9, Some(25))], true), [(25, None), (9, None)]);
        assert_eq!(divided(&[transmit(25, Some(0))], true), [(25, None)], "a size of zero is none");
        assert_eq!(divided(&[transmit(100, Some(1))], true), [(64, Some(1)), (36, Some(1))]);
        let large = divided(&[transmit(130_000, Some(1_400))], true);
        assert_eq!(large, [(64_400, Some(1_400)), (64_400, Some(1_400)), (1_200, None)]);
        assert_eq!(divided(&[transmit(66_000, Some(65_530))], true), [(65_530, None), (470, None)]);
    }

    #[test]
    fn progress_is_kept_in_the_transmits() {
        let mut transmits = [transmit(25, Some(10)), transmit(0, None), transmit(5, None)];
        assert_eq!(advance(&mut transmits, false, 2), 0);
        assert_eq!(transmits[0].contents.len(), 5);
        assert_eq!(advance(&mut transmits, false, 2), 2);
        assert_eq!(advance(&mut transmits[2..], true, 9), 1, "there is no more than that");
    }
}
