//! `balance sticky`: one server gets all requests while it is available.

use super::{Candidate, Change, Loads, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "sticky",
    doc: "The same server as long as it is usable; then the first usable one in the order of the configuration. A server \
          that returns is used when the current one becomes unusable. For `mode log`.",
    dynamic: true,
    hashes: false,
    make: |spec, _| matches!(spec, BalanceSpec::Sticky).then(|| State::Sticky(Sticky::default())),
};

#[derive(Debug, Default)]
pub(super) struct Sticky {
    current: Option<usize>,
    /// The available servers, in the order of the configuration.
    servers: Box<[usize]>,
}

impl Sticky {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], _count: usize) {
        self.servers = candidates.iter().map(|candidate| candidate.server).collect();
        self.current = self.current.filter(|server| self.servers.contains(server)).or(self.servers.first().copied());
    }

    /// Selects the current server while it has a free slot, otherwise the first one with a free slot; the server to
    /// avoid only if no other has one.
    pub(super) fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        let mut open =
            self.current.iter().chain(&self.servers).copied().filter(|server| loads[*server].has_slot()).peekable();
        let first = open.peek().copied();
        open.find(|server| pick.avoid != Some(*server)).or(first)
    }

    pub(super) fn on_load(&mut self, _server: usize, _change: Change) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(servers: &[usize]) -> Vec<Candidate> {
        servers.iter().map(|&server| Candidate { server, weight: 1, scale: 1, id: server as u32, place: 0 }).collect()
    }

    /// As HAProxy 3.5 does when servers go down and come back.
    #[test]
    fn a_server_that_comes_back_waits() {
        let mut sticky = Sticky::default();
        let loads = Loads::new(4);
        let rows: &[(&[usize], Option<usize>)] = &[
            (&[0, 1, 2], Some(0)),
            (&[1, 2], Some(1)),
            (&[0, 1, 2], Some(1)),
            (&[0, 2], Some(0)),
            (&[2], Some(2)),
            (&[], None),
            (&[1, 2], Some(1)),
        ];
        for (servers, expected) in rows {
            sticky.rebuild(&candidates(servers), 4);
            assert_eq!(sticky.pick(&Pick::default(), &loads), *expected, "{servers:?}");
        }
    }

    #[test]
    fn a_retry_goes_elsewhere_if_there_is_an_elsewhere() {
        let mut sticky = Sticky::default();
        let loads = Loads::new(2);
        let avoid = Pick { avoid: Some(0), ..Pick::default() };
        sticky.rebuild(&candidates(&[0, 1]), 2);
        assert_eq!(sticky.pick(&avoid, &loads), Some(1));
        sticky.rebuild(&candidates(&[0]), 2);
        assert_eq!(sticky.pick(&avoid, &loads), Some(0));
    }
}
