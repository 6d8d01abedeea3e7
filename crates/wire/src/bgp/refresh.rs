//! ROUTE-REFRESH messages (RFC 2918). Must never send a route.

use super::prefix::Family;

/// Returns the family whose routes are requested again; `None`: one that is not exchanged, or a message of another kind (RFC
/// 7313).
pub fn refreshed_family(body: &[u8]) -> Option<Family> {
    match *body {
        [high, low, 0, safi] => Family::of(u16::from_be_bytes([high, low]), safi),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_families_are_refreshed() {
        let rows = [
            ([0, 1, 0, 1], Some(Family::Ipv4)),
            ([0, 2, 0, 1], Some(Family::Ipv6)),
            ([0, 1, 1, 1], None),
            ([0, 1, 0, 2], None),
            ([0, 25, 0, 1], None),
        ];
        for (body, expected) in rows {
            assert_eq!(refreshed_family(&body), expected, "{body:?}");
        }
        assert_eq!(refreshed_family(&[0, 1]), None);
    }
}
