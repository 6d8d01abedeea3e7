//! IPv4 addresses within IPv6 addresses. Must never look one up.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the IPv4 address in `::ffff:a.b.c.d`, `::a.b.c.d` and `2002:aabb:ccdd::` (section 7.1.6), in the latter with
/// any remaining segments.
pub fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => Some(join(high, low)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}
