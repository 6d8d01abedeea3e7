//! `option forwardfor`: the client's address in a field of the request. Must never look at other fields.

use std::net::IpAddr;

use policy::program::{AddressField, Proxy};

use crate::session::Session;
use crate::worker::SharedFacts;

/// `option forwardfor` of the frontend and the backend; the backend's field name wins.
pub fn add(session: &Session, backend: &Proxy, facts: &SharedFacts) {
    let (front, back) = (session.proxy().http.forwardfor.as_ref(), backend.http.forwardfor.as_ref());
    let Some(chosen) = back.or(front) else { return };
    let Some(client) = session.source() else { return };
    let both = [front, back];
    if both.iter().flatten().any(|rule| is_excepted(rule, client)) {
        return;
    }
    let request = &mut facts.borrow_mut().request;
    let name = chosen.header.as_bytes();
    if both.iter().flatten().all(|rule| rule.if_none) && request.contains(name) {
        return;
    }
    let mut text = [0_u8; 48];
    let mut cursor = std::io::Cursor::new(&mut text[..]);
    if std::io::Write::write_fmt(&mut cursor, format_args!("{client}")).is_ok() {
        let length = cursor.position() as usize;
        request.append(name, &text[..length]);
    }
}

fn is_excepted(rule: &AddressField, client: IpAddr) -> bool {
    match (rule.except, client) {
        (Some((IpAddr::V4(network), bits)), IpAddr::V4(client)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            network.to_bits() & mask == client.to_bits() & mask
        }
        (Some((IpAddr::V6(network), bits)), IpAddr::V6(client)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            network.to_bits() & mask == client.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excepted_networks() {
        for (network, bits, client, wanted) in [
            ("127.0.0.0", 8, "127.1.2.3", true),
            ("127.0.0.0", 8, "128.0.0.1", false),
            ("10.1.2.3", 32, "10.1.2.3", true),
            ("10.1.2.3", 32, "10.1.2.2", false),
            ("0.0.0.0", 0, "9.9.9.9", true),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
            ("::", 0, "::1", true),
            ("0.0.0.0", 0, "::1", false),
        ] {
            let except = Some((network.parse().expect("network"), bits));
            let rule = AddressField { except, header: "x-forwarded-for".into(), if_none: false };
            assert_eq!(is_excepted(&rule, client.parse().expect("client")), wanted, "{network}/{bits} {client}");
        }
    }
}
