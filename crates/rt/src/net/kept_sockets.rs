//! Sockets that a worker keeps to connect them again. Must never hold a connected one.

use std::os::fd::OwnedFd;

use super::KeptDatagrams;

/// The kept sockets of a worker.
#[derive(Default)]
pub(crate) struct Spares {
    v4: Vec<OwnedFd>,
    v6: Vec<OwnedFd>,
    datagrams: KeptDatagrams,
}

impl Spares {
    /// Those of a family.
    pub(super) fn of(&mut self, v6: bool) -> &mut Vec<OwnedFd> {
        if v6 { &mut self.v6 } else { &mut self.v4 }
    }

    /// Those of UDP.
    pub(super) fn datagrams(&mut self) -> &mut KeptDatagrams {
        &mut self.datagrams
    }
}
