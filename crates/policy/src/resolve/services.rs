//! The targets of an SRV name, and their assignment to servers. Must never hold more than a bounded number.

use base::moment::Moment;
use std::net::IpAddr;
use std::time::Duration;
use wire::dns::{Address, Name, Service};

/// Maximum number of targets per SRV name.
const MOST: usize = 1_024;

/// A known target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SrvRecord {
    place: SrvTarget,
    /// The weight of the record.
    weight: u16,
    /// The address, if the additional section contained it.
    ip: Option<IpAddr>,
    seen: Moment,
}

/// The target of an SRV record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrvTarget {
    /// Name of the host.
    pub host: Name,
    pub port: u16,
}

/// The known targets of an SRV name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Services(Vec<SrvRecord>);

/// A change of a server's assignment. The first value is the index of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// The target was removed.
    Leave(usize),
    /// The server is assigned a target.
    Join(usize, SrvTarget, u32, Option<IpAddr>),
    /// The server keeps its target, whose weight and address may have changed.
    Stay(usize, u32, Option<IpAddr>),
}

/// Largest weight of a server.
const HEAVIEST: u32 = 256;

/// Converts the weight of an SRV record to that of a server. If the largest of the service exceeds that of a server, all are scaled by the
/// same factor, so that their ratios hold. Only 0 becomes 0, unless all are: then none is preferred (RFC 2782).
fn scaled(weight: u16, largest: u16) -> u32 {
    let (weight, largest) = (u32::from(weight), u32::from(largest));
    if largest == 0 {
        return 1;
    }
    if largest <= HEAVIEST {
        return weight;
    }
    let nearest = (weight * HEAVIEST + largest / 2) / largest;
    nearest.max(weight.min(1))
}

impl Services {
    /// Records a response. Targets that it does not contain are kept for `obsolete` after the last response with them.
    pub fn note(&mut self, found: &[Service], additional: &[Address], now: Moment, obsolete: Duration) {
        for service in found {
            // The root name means that the service is not available (RFC 2782).
            if service.target.text().is_none() {
                continue;
            }
            let ip = additional.iter().find(|one| one.host == service.target).map(|one| one.ip);
            let place = SrvTarget { host: service.target.clone(), port: service.port };
            let known = SrvRecord { place, weight: service.weight, ip, seen: now };
            let has_room = self.0.len() < MOST;
            match self.0.iter_mut().find(|other| other.place == known.place) {
                Some(other) => *other = known,
                None if has_room => self.0.push(known),
                None => {}
            }
        }
        self.0.retain(|known| known.seen == now || now.saturating_since(known.seen) < obsolete);
    }

    /// Removes all targets.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the changes of a backend's servers; `standing` contains their current targets. Removals come first, so
    /// that their servers can be assigned again.
    pub fn assign(&self, standing: &[Option<SrvTarget>]) -> Vec<Move> {
        let mut moves = Vec::new();
        let is_known = |place: &SrvTarget| self.0.iter().any(|known| known.place == *place);
        let leaves = |place: &&Option<SrvTarget>| place.as_ref().is_some_and(|place| !is_known(place));
        for (server, _) in standing.iter().enumerate().filter(|(_, place)| leaves(place)) {
            moves.push(Move::Leave(server));
        }
        let mut free = standing.iter().enumerate().filter(|(_, place)| place.is_none() || leaves(place));
        let largest = self.0.iter().map(|known| known.weight).max().unwrap_or_default();
        for SrvRecord { place, weight, ip, .. } in &self.0 {
            let weight = scaled(*weight, largest);
            let mut stays = false;
            for (server, _) in standing.iter().enumerate().filter(|(_, other)| other.as_ref() == Some(place)) {
                moves.push(Move::Stay(server, weight, *ip));
                stays = true;
            }
            if !stays && let Some((server, _)) = free.next() {
                moves.push(Move::Join(server, place.clone(), weight, *ip));
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).expect("a name")
    }

    fn service(weight: u16, port: u16, target: &str) -> Service {
        Service { priority: 1, weight, port, target: name(target) }
    }

    fn at(text: &str, port: u16) -> SrvTarget {
        SrvTarget { host: name(text), port }
    }

    #[test]
    fn servers_follow_what_is_offered() {
        let mut known = Services::default();
        let now = Moment::default();
        let extra = [Address { host: name("b"), ip: [10, 0, 0, 2].into() }];
        known.note(&[service(0, 80, "a"), service(6_000, 81, "b")], &extra, now, Duration::ZERO);
        let ip = Some(IpAddr::from([10, 0, 0, 2]));
        let first = known.assign(&[None, None, None]);
        assert_eq!(first, [Move::Join(0, at("a", 80), 0, None), Move::Join(1, at("b", 81), 256, ip)]);
        // More targets than servers.
        assert_eq!(known.assign(&[None]), [Move::Join(0, at("a", 80), 0, None)]);
        assert_eq!(known.assign(&[]), []);
        // Another port is another target.
        let standing = [Some(at("a", 80)), Some(at("b", 81)), None];
        let later = now + Duration::from_secs(1);
        known.note(&[service(0, 80, "a"), service(65_535, 82, "b")], &[], later, Duration::ZERO);
        let moves = known.assign(&standing);
        assert_eq!(moves, [Move::Leave(1), Move::Stay(0, 0, None), Move::Join(1, at("b", 82), 256, None)]);
        known.clear();
        assert_eq!(known.assign(&standing), [Move::Leave(0), Move::Leave(1)]);
    }

    #[test]
    fn ratios_of_weights_hold() {
        let rows: &[(&[u16], &[u32])] = &[
            (&[10, 20, 60], &[10, 20, 60]),
            (&[0, 1, 256], &[0, 1, 256]),
            (&[0, 1, 100, 257], &[0, 1, 100, 256]),
            (&[100, 300, 600], &[43, 128, 256]),
            (&[1, 1_000], &[1, 256]),
            (&[65_535, 32_768, 1, 0], &[256, 128, 1, 0]),
            (&[65_535, 65_535], &[256, 256]),
            (&[0, 0], &[1, 1]),
            (&[0], &[1]),
            (&[7], &[7]),
        ];
        for (weights, expected) in rows {
            let mut known = Services::default();
            let offered: Vec<_> = weights.iter().zip(1..).map(|(weight, port)| service(*weight, port, "a")).collect();
            known.note(&offered, &[], Moment::default(), Duration::ZERO);
            let found = known.assign(&vec![None; weights.len()]).into_iter().map(|one| match one {
                Move::Join(_, _, weight, _) | Move::Stay(_, weight, _) => weight,
                Move::Leave(_) => u32::MAX,
            });
            assert_eq!(found.collect::<Vec<_>>(), *expected, "{weights:?}");
        }
        // A heavier record changes the weights of the others.
        let mut known = Services::default();
        known.note(&[service(100, 1, "a")], &[], Moment::default(), Duration::ZERO);
        assert_eq!(known.assign(&[None]), [Move::Join(0, at("a", 1), 100, None)]);
        let now = Moment::default() + Duration::from_secs(1);
        known.note(&[service(100, 1, "a"), service(51_200, 2, "a")], &[], now, Duration::ZERO);
        assert_eq!(known.assign(&[Some(at("a", 1))]), [Move::Stay(0, 1, None)]);
    }

    #[test]
    fn what_is_not_offered_any_more_stays_for_a_while() {
        let mut known = Services::default();
        let (now, second) = (Moment::default(), Duration::from_secs(1));
        known.note(&[service(0, 80, "a"), service(0, 80, "b")], &[], now, 2 * second);
        known.note(&[service(0, 80, "b")], &[], now + second, 2 * second);
        assert_eq!(known.0.len(), 2);
        known.note(&[service(0, 80, "b")], &[], now + 2 * second, 2 * second);
        assert_eq!(known.0.len(), 1);
        let many: Vec<_> = (0..6_000).map(|port| service(0, port, "a")).collect();
        known.note(&many, &[], now + 3 * second, Duration::ZERO);
        assert!(known.0.len() <= MOST);
    }
}
