//! Any bytes as the source of a load balancing key: no panic with any algorithm, the same key each time, and an RDP
//! cookie is part of its packet, independent of the bytes after that.
//!
//! The first byte selects the depth and length of URIs; the rest is a TCP client's first bytes, or a request.


use config::spec::{BalanceSpec, HashFunction, HashSpec, UriSpec};
use balance::{Recogniser, Subject};
use wire::h1::{HeadLimits, Parse, Scan, parse_request};
use wire::http::Head;
use wire::rdp::cookie;

const FUNCTIONS: [HashFunction; 5] =
    [HashFunction::Sdbm, HashFunction::Djb2, HashFunction::Wt6, HashFunction::Crc32, HashFunction::None];

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [choice, input @ ..] = data else { return };
    in_a_packet(input);
    let limits = HeadLimits { max_fields: 101, max_head: 15_360, accept_unsafe: true, ..HeadLimits::default() };
    let mut head = Head::new();
    let parsed = parse_request(input, &limits, &mut Scan::default(), &mut head);
    let (request, bytes) = match parsed {
        Ok(Parse::Complete { consumed }) => (Some(&head), &input[consumed..]),
        _ => (None, input),
    };
    let subject = Subject { source: None, request, bytes };
    let some = |number: u8| (number > 0).then_some(u32::from(number));
    let uri = UriSpec {
        whole: choice & 1 != 0,
        path_only: choice & 2 != 0,
        depth: some(choice >> 2 & 7),
        len: some(choice >> 5),
    };
    let ways = [
        BalanceSpec::Uri(uri),
        BalanceSpec::UrlParam { name: "p".to_owned(), check_post: true },
        BalanceSpec::Header { name: "host".to_owned(), domain_only: false },
        BalanceSpec::Header { name: "host".to_owned(), domain_only: true },
        BalanceSpec::RdpCookie { name: "msts".to_owned() },
    ];
    for way in &ways {
        for function in FUNCTIONS {
            let hash = HashSpec { function: Some(function), ..HashSpec::default() };
            let Some(recogniser) = Recogniser::new(way, &hash) else { continue };
            assert_eq!(recogniser.hash(&subject), recogniser.hash(&subject));
        }
    }
}

fn in_a_packet(input: &[u8]) {
    let Some(value) = cookie(input, b"msts") else { return };
    let length = usize::from(u16::from_be_bytes([input[2], input[3]]));
    let packet = &input[..length.min(input.len())];
    assert_eq!(cookie(packet, b"msts"), Some(value), "nothing behind the packet counts");
    assert!(value.len() + 11 + b"Cookie: msts=\r\n".len() <= packet.len());
    assert!(!value.windows(2).any(|two| two == b"\r\n"));
}
