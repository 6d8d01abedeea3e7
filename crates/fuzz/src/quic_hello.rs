//! The ClientHello in the first datagrams of a QUIC connection: for any datagrams, also with packets that are sealed correctly
//! around any frames, there is no panic, and a ClientHello that is found is one message of the length that it announces.
//!
//! The input is a sequence of datagrams: a byte that selects the kind, two bytes with the length, and that many bytes.

use tls::quic::{Side, initial_keys};
use tls::quic_hello::{HelloCollector, LARGEST, Progress};
use wire::client_hello::{Message, Recognition, message};
use wire::quic::{Header, LONGEST_ID, header, initials};

const ID: &[u8; 8] = b"any id 8";
/// Size of a client's first datagrams in bytes (RFC 9000, section 14.1).
const FIRST: usize = 1_200;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let mut collector = HelloCollector::default();
    let (mut rest, mut number) = (data, 0);
    while let Some(([kind, high, low], after)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (bytes, after) = after.split_at(after.len().min(length));
        rest = after;
        number += 1;
        let datagram = if kind & 1 == 0 { bytes.to_vec() } else { sealed(number, bytes) };
        inspect(&datagram);
        if let Progress::Whole(record) = collector.add(&datagram) {
            assert!(record.len() <= LARGEST + 5);
            let Recognition::Whole(Message::Contiguous(found)) = message(&record) else { panic!("{record:x?}") };
            assert_eq!(found, &record[5..]);
        }
    }
}

/// Everything that is read of a datagram is within it.
fn inspect(datagram: &[u8]) {
    if let Some(Header::Long(header)) = header(datagram) {
        assert!(header.destination.len() + header.source.len() + 7 <= datagram.len());
        let is_known = header.packet_type().is_some();
        assert!(!is_known || header.destination.len().max(header.source.len()) <= LONGEST_ID);
    }
    let mut bytes = 0;
    for initial in initials(datagram) {
        assert!(initial.number_at <= initial.packet.len());
        bytes += initial.packet.len();
    }
    assert!(bytes <= datagram.len());
}

/// Returns a datagram with an Initial packet of version 1 that has these frames and padding.
fn sealed(number: u8, frames: &[u8]) -> Vec<u8> {
    let keys = initial_keys(ID, Side::Client).expect("the cipher is there").local;
    let payload = frames.len().clamp(FIRST - 40, 16_000);
    let length = ((payload + 17) as u16 | 0x4000).to_be_bytes();
    let mut packet = [&[0xc0, 0, 0, 0, 1, 8][..], ID, &[0, 0], &length, &[number]].concat();
    let begin = packet.len();
    packet.extend_from_slice(&frames[..frames.len().min(payload)]);
    packet.resize(begin + payload, 0);
    let (header, content) = packet.split_at_mut(begin);
    let tag = keys.packet.encrypt_in_place(number.into(), header, content).expect("it is short");
    packet.extend_from_slice(tag.as_ref());
    let (header, rest) = packet.split_at_mut(begin - 1);
    let (number, rest) = rest.split_at_mut(1);
    keys.header.encrypt_in_place(&rest[3..19], &mut header[0], number).expect("the sample is long enough");
    packet
}
