//! `balance source`: the client's address decides.

use super::static_rr::StaticRr;
use super::{Candidate, Change, Loads, Pick, Row, State};
use config::spec::BalanceSpec;
use std::net::IpAddr;

pub(super) const ROW: Row = Row {
    name: "source",
    doc: "The client's address is divided by the sum of the weights, and the remainder names the server: the same \
          client always gets the same server as long as no server comes or goes. If that server is full the request \
          waits in its queue. Clients without an address are served in turn.",
    dynamic: false,
    hashes: true,
    make: |spec| matches!(spec, BalanceSpec::Source).then(|| State::Source(Source::default())),
};

/// The same map and cursor as in `static-rr`, which also serves clients without an address.
#[derive(Debug, Default)]
pub(super) struct Source(StaticRr);

impl Source {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.0.rebuild(candidates, count);
    }

    pub(super) fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        match pick.hash {
            Some(hash) => self.0.map.at_hash(hash, pick.avoid),
            None => self.0.pick(pick, loads),
        }
    }

    pub(super) fn on_load(&mut self, server: usize, change: Change) {
        self.0.on_load(server, change);
    }
}

/// What HAProxy divides for `balance source`: the address's 32-bit words, most significant byte first, joined by
/// exclusive or. The functions of `hash-type` have no part in it with the default map.
pub fn hash(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => u32::from(address),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32
        }
    }
}
