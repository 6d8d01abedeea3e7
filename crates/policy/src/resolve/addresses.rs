//! The addresses of a name, each with the time of the last response that contained it. Must never hold more than a
//! bounded number.

use crate::program::AddressChoice;
use base::moment::Moment;
use std::net::IpAddr;
use std::time::Duration;

/// Maximum number of addresses per name.
const MOST: usize = 1_024;

/// The known addresses of a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Addresses(Vec<(IpAddr, Moment)>);

impl Addresses {
    /// Records a response. Addresses that it does not contain are kept for `obsolete` after the last response with
    /// them.
    pub fn note(&mut self, found: &[IpAddr], now: Moment, obsolete: Duration) {
        self.0.retain(|(ip, seen)| found.contains(ip) || now.saturating_since(*seen) < obsolete);
        for ip in found {
            let has_room = self.0.len() < MOST;
            match self.0.iter_mut().find(|(known, _)| known == ip) {
                Some((_, seen)) => *seen = now,
                None if has_room => self.0.push((*ip, now)),
                None => {}
            }
        }
    }

    /// Removes all addresses.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Selects the address of a server: by preferred network, then preferred family, then the current address.
    /// `is_taken`: another server of the backend uses the address.
    pub fn choose(
        &self,
        choice: &AddressChoice,
        current: Option<IpAddr>,
        is_taken: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        let rank = |ip: IpAddr| {
            let is_near = choice.networks.iter().any(|(network, length)| contains(*network, *length, ip));
            (is_near, ip.is_ipv4() == choice.prefers_ipv4, Some(ip) == current)
        };
        let mut best: Option<(IpAddr, (bool, bool, bool))> = None;
        for (ip, _) in &self.0 {
            let free = choice.allows_duplicates || Some(*ip) == current || !is_taken(*ip);
            let rank = rank(*ip);
            if free && best.is_none_or(|(_, other)| rank > other) {
                best = Some((*ip, rank));
            }
        }
        // If duplicates are allowed, an unused address is still preferred.
        match best {
            Some((ip, found)) if choice.allows_duplicates && Some(ip) != current && is_taken(ip) => {
                let mut others = self.0.iter().map(|(ip, _)| *ip);
                others.find(|other| rank(*other) == found && !is_taken(*other)).or(Some(ip))
            }
            best => best.map(|(ip, _)| ip),
        }
    }
}

/// Whether an address belongs to a network.
fn contains(network: IpAddr, length: u8, ip: IpAddr) -> bool {
    let (network, ip, width) = match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => (u128::from(network.to_bits()), u128::from(ip.to_bits()), 32),
        (IpAddr::V6(network), IpAddr::V6(ip)) => (network.to_bits(), ip.to_bits(), 128),
        _ => return false,
    };
    let behind = width - u32::from(length).min(width);
    network.checked_shr(behind).unwrap_or(0) == ip.checked_shr(behind).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn known(list: &[&str]) -> Addresses {
        let list: Vec<IpAddr> = list.iter().map(|text| ip(text)).collect();
        let mut known = Addresses::default();
        known.note(&list, Moment::default(), Duration::ZERO);
        known
    }

    #[test]
    fn networks_families_and_what_is_there_decide() {
        let near = [(ip("10.1.0.0"), 16), (ip("fd00::"), 8)];
        type Row<'a> = (&'a [&'a str], &'a [(IpAddr, u8)], bool, Option<&'a str>, &'a [&'a str], Option<&'a str>);
        let rows: &[Row<'_>] = &[
            (&[], &[], true, None, &[], None),
            (&["1.1.1.1", "2.2.2.2"], &[], true, None, &[], Some("1.1.1.1")),
            (&["1.1.1.1", "2.2.2.2"], &[], true, Some("2.2.2.2"), &[], Some("2.2.2.2")),
            (&["1.1.1.1", "2.2.2.2"], &[], true, Some("3.3.3.3"), &["1.1.1.1"], Some("2.2.2.2")),
            (&["1.1.1.1"], &[], true, None, &["1.1.1.1"], None),
            // The server's own address is not in use by another one.
            (&["1.1.1.1"], &[], true, Some("1.1.1.1"), &["1.1.1.1"], Some("1.1.1.1")),
            (&["1.1.1.1", "::1"], &[], false, Some("1.1.1.1"), &[], Some("::1")),
            (&["1.1.1.1", "10.1.2.3", "::1"], &near, false, None, &[], Some("10.1.2.3")),
            (&["10.2.0.1", "fd12::1"], &near, true, Some("10.2.0.1"), &[], Some("fd12::1")),
        ];
        for (list, networks, prefers_ipv4, current, taken, expected) in rows {
            let choice =
                AddressChoice { prefers_ipv4: *prefers_ipv4, networks: (*networks).into(), ..Default::default() };
            let is_taken = |other: IpAddr| taken.iter().any(|text| ip(text) == other);
            let got = known(list).choose(&choice, current.map(ip), is_taken);
            assert_eq!(got, expected.map(ip), "{list:?} {current:?} {taken:?}");
        }
    }

    #[test]
    fn duplicates_where_they_are_allowed_and_nothing_else_is_left() {
        let choice = AddressChoice { allows_duplicates: true, prefers_ipv4: true, ..Default::default() };
        let taken = |other: IpAddr| other == ip("1.1.1.1");
        assert_eq!(known(&["1.1.1.1"]).choose(&choice, None, taken), Some(ip("1.1.1.1")));
        assert_eq!(known(&["1.1.1.1", "2.2.2.2"]).choose(&choice, None, taken), Some(ip("2.2.2.2")));
    }

    #[test]
    fn what_is_not_named_any_more_stays_for_a_while() {
        let second = Duration::from_secs(1);
        let mut known = known(&["1.1.1.1", "2.2.2.2"]);
        let first = |known: &Addresses| known.0.iter().map(|(ip, _)| ip.to_string()).collect::<Vec<_>>();
        known.note(&[ip("2.2.2.2"), ip("3.3.3.3")], Moment::default() + second, 2 * second);
        assert_eq!(first(&known), ["1.1.1.1", "2.2.2.2", "3.3.3.3"]);
        known.note(&[ip("3.3.3.3")], Moment::default() + 2 * second, 2 * second);
        assert_eq!(first(&known), ["2.2.2.2", "3.3.3.3"]);
        known.note(&[ip("3.3.3.3")], Moment::default() + 2 * second, Duration::ZERO);
        assert_eq!(first(&known), ["3.3.3.3"]);
        let many: Vec<IpAddr> = (0..5_000_u32).map(|number| IpAddr::from(number.to_be_bytes())).collect();
        known.note(&many, Moment::default() + 3 * second, Duration::ZERO);
        assert_eq!(known.0.len(), MOST);
    }
}
