//! Converters of addresses.

use super::Converter;
use crate::sample::{Context, Type, Value, embedded_ipv4};
use crate::{Argument, Arguments, Kind, Signature};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Every converter of the family.
pub const TABLE: &[Converter] = &[Converter::new(
    "ipmask",
    Signature::new(1, &[Kind::Mask4, Kind::Mask6]),
    Type::Addr,
    Type::Addr,
    "Applies a network mask to an address; an IPv6 address needs the second mask, unless it is an IPv4-mapped one.",
    mask,
)];

fn mask<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let value = match value {
        Value::Ipv6(address) => embedded_ipv4(address).map_or(value, Value::Ipv4),
        _ => value,
    };
    match (value, arguments.get(0), arguments.get(1)) {
        (Value::Ipv4(address), Argument::Ipv4(mask), _) => {
            Some(Value::Ipv4(Ipv4Addr::from(u32::from(address) & u32::from(*mask))))
        }
        (Value::Ipv6(address), _, Argument::Ipv6(mask)) => {
            Some(Value::Ipv6(Ipv6Addr::from(u128::from(address) & u128::from(*mask))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn addresses_are_masked() {
        check_rows(
            &Scene::default(),
            &[
                ("ipv4(192.168.201.77),ipmask(24)", "192.168.201.0"),
                ("ipv4(192.168.201.77),ipmask(255.255.0.0)", "192.168.0.0"),
                ("ipv4(192.168.201.77),ipmask(0)", "0.0.0.0"),
                ("ipv4(192.168.201.77),ipmask(24,64)", "192.168.201.0"),
                ("ipv6(2001:db8::1),ipmask(24)", "<none>"),
                ("ipv6(2001:db8::1),ipmask(24,32)", "2001:db8::"),
                ("ipv6(2001:db8::1),ipmask(24,ffff::)", "2001::"),
                ("str(192.168.201.77),ipmask(24)", "192.168.201.0"),
                ("ipv6(::ffff:192.168.201.77),ipmask(24)", "192.168.201.0"),
                ("ipv6(::192.168.201.77),ipmask(24,64)", "192.168.201.0"),
                ("ipv6(2002:c0a8:c94d::1),ipmask(24,64)", "192.168.201.0"),
                ("str(nope),ipmask(24)", "<none>"),
                ("str(192.168.201.77:80),ipmask(24)", "192.168.201.0"),
                ("str(192.168.201.0077 x),ipmask(32)", "192.168.201.77"),
                ("str(192.168.201.77.1),ipmask(24)", "<none>"),
                ("str(192.168.201.256),ipmask(24)", "<none>"),
                ("str(2001:db8::1 x),ipmask(24,64)", "<none>"),
                ("int(3232235777),ipmask(24)", "192.168.1.0"),
                (
                    "ipv4(1.2.3.4),ipmask(33)",
                    "!invalid arg 1 in converter 'ipmask' : failed to parse '33' as type 'IPv4 mask' at position 1",
                ),
                (
                    "ipv4(1.2.3.4),ipmask",
                    "!invalid arg 1 in converter 'ipmask' : expected type 'IPv4 mask' at position 1, but got nothing",
                ),
            ],
        );
    }
}
