//! `balance source`: the client's address decides.

use super::map::Map;
use super::{Candidate, Load, Pick, Row, State};
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

#[derive(Debug, Default)]
pub(super) struct Source {
    map: Map,
    cursor: usize,
}

impl Source {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.map = Map::new(candidates, count);
        self.cursor = 0;
    }

    pub(super) fn pick(&mut self, pick: &Pick) -> Option<usize> {
        match pick.hash {
            Some(hash) => self.map.at_hash(hash, pick.avoid),
            None => self.map.next_open(&mut self.cursor, pick.avoid),
        }
    }

    pub(super) fn on_load(&mut self, server: usize, load: Load) {
        self.map.on_load(server, load);
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
