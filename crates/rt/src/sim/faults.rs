//! The links of the simulated network and their faults.
//!
//! Faults apply to a service's address, the one that clients connect to; both directions share them. They must never cause an event.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::net::Address;

/// The properties of the path between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One-way delay.
    pub latency: Duration,
    /// Additional delay, drawn between zero and this for each piece. Bytes of one direction never overtake each other.
    pub jitter: Duration,
    /// Maximum number of bytes in transit or unread, in each direction.
    pub buffer: usize,
    /// Whether writes arrive in pieces, down to single bytes, and are sometimes accepted only partially.
    pub fragment: bool,
}

impl Default for Link {
    fn default() -> Link {
        let (latency, jitter) = (Duration::from_micros(100), Duration::from_micros(50));
        Link { latency, jitter, buffer: 256 * 1024, fragment: true }
    }
}

/// The active faults.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) link: Link,
    pub(super) links: BTreeMap<Address, Link>,
    pub(super) refused: BTreeSet<Address>,
    pub(super) black_holes: BTreeSet<Address>,
    pub(super) accept_errors: BTreeMap<Address, AcceptError>,
    pub(super) redirections: BTreeMap<Address, Address>,
    pub(super) failing: BTreeMap<Address, i32>,
    pub(super) records: bool,
}

/// The error of a listener's accepts, and how often it was returned.
#[derive(Clone, Copy, Default)]
pub(super) struct AcceptError {
    pub(super) code: Option<i32>,
    pub(super) met: u64,
}

impl Faults {
    pub(super) fn link_of(&self, service: &Address) -> Link {
        self.links.get(service).copied().unwrap_or(self.link)
    }

    pub(super) fn refuses(&self, service: &Address) -> bool {
        self.refused.contains(service)
    }

    pub(super) fn accept_error(&mut self, listener: &Address) -> Option<i32> {
        let error = self.accept_errors.get_mut(listener)?;
        error.met += u64::from(error.code.is_some());
        error.code
    }

    pub(super) fn redirection_of(&self, service: &Address) -> Option<&Address> {
        self.redirections.get(service)
    }

    /// Returns the error with which connecting to a service fails before anything is sent.
    pub(super) fn failure(&self, service: &Address) -> Option<i32> {
        self.failing.get(service).copied()
    }

    pub(super) fn is_black_hole(&self, service: &Address) -> bool {
        self.black_holes.contains(service)
    }
}
