//! Tests of [`HelloCollector`]: the packets of the RFCs, and ClientHellos in pieces.

use std::cell::Cell;

use super::*;
use wire::client_hello::{Hello, Message, Recognition, message};

/// The client's Initial packets of RFC 9001, appendix A.2, and of RFC 9369, appendix A.2: the same ClientHello.
const VERSIONS: [&str; 2] = [include_str!("initial-v1.hex"), include_str!("initial-v2.hex")];

thread_local! {
    /// Number of times that keys were derived.
    pub(super) static DERIVATIONS: Cell<usize> = const { Cell::new(0) };
}

fn bytes(text: &str) -> Vec<u8> {
    base::hex::decode(text.trim().as_bytes()).expect("hexadecimal")
}

/// Returns the ClientHello of the RFCs, in its record.
fn record() -> Vec<u8> {
    match HelloCollector::default().add(&bytes(VERSIONS[0])) {
        Progress::Whole(record) => record,
        other => panic!("{other:?}"),
    }
}

const ID: &[u8] = b"client's id";

/// Returns a datagram with an Initial packet, padded to that size.
fn sealed(version: u32, id: &[u8], number: u8, frames: &[u8], size: usize) -> Vec<u8> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().unwrap().quic_suite().unwrap();
    let label = if version == VERSION_2 { Version::V2 } else { Version::V1 };
    let keys = suite.keys(id, Side::Client, label).local;
    let first = if version == VERSION_2 { 0xd0 } else { 0xc0 };
    let mut packet = [&[first][..], &version.to_be_bytes(), &[id.len() as u8], id, &[0, 0]].concat();
    let payload = size - packet.len() - 3 - 16;
    packet.extend(((payload + 17) as u16 | 0x4000).to_be_bytes());
    let number_at = packet.len();
    packet.push(number);
    packet.extend_from_slice(frames);
    packet.resize(number_at + 1 + payload, 0);
    let (header, content) = packet.split_at_mut(number_at + 1);
    let tag = keys.packet.encrypt_in_place(number.into(), header, content).unwrap();
    packet.extend_from_slice(tag.as_ref());
    let (header, rest) = packet.split_at_mut(number_at);
    let (number, sample) = rest.split_at_mut(NUMBER);
    keys.header.encrypt_in_place(&sample[..16], &mut header[0], &mut number[..1]).unwrap();
    packet
}

fn crypto(offset: usize, content: &[u8]) -> Vec<u8> {
    let number = |value: usize| (value as u32 | 0x8000_0000).to_be_bytes();
    [&[6][..], &number(offset), &number(content.len()), content].concat()
}

/// Returns a datagram with these pieces of a message, in that order.
fn pieces(number: u8, message: &[u8], ranges: &[std::ops::Range<usize>]) -> Vec<u8> {
    let frames: Vec<u8> = ranges.iter().flat_map(|range| crypto(range.start, &message[range.clone()])).collect();
    sealed(1, ID, number, &frames, 1_200)
}

#[test]
fn the_packets_of_the_rfcs_are_read() {
    for text in VERSIONS {
        let Progress::Whole(record) = HelloCollector::default().add(&bytes(text)) else { panic!("{text}") };
        let Recognition::Whole(Message::Contiguous(message)) = message(&record) else { panic!("{record:x?}") };
        let hello = Hello::of(message).and_then(|hello| hello.client()).expect("a ClientHello");
        assert_eq!(hello.server_name(), Some(&b"example.com"[..]));
        assert_eq!(hello.protocols().next(), Some(&b"alpn"[..]));
        assert_eq!(record.len(), 5 + 241);
    }
}

/// Each bit of a packet is authenticated.
#[test]
fn a_changed_packet_is_not_read() {
    let packet = bytes(VERSIONS[0]);
    for at in [0, 3, 5, 8, 14, 18, 22, 600, 1_199] {
        let mut changed = packet.clone();
        changed[at] ^= 1;
        assert!(!matches!(HelloCollector::default().add(&changed), Progress::Whole(_)), "{at}");
    }
}

#[test]
fn pieces_arrive_in_any_order() {
    let record = record();
    let message = &record[5..];
    let end = message.len();
    let whole = || Progress::Whole(record.clone());
    // Chrome divides the message into many pieces and shuffles them over datagrams.
    let first = pieces(0, message, &[100..150, 0..3, 40..100]);
    let second = pieces(1, message, &[200..end, 3..40]);
    let third = pieces(2, message, std::slice::from_ref(&(150..200)));
    let orders = [[&first, &second, &third], [&third, &second, &first], [&second, &first, &third]];
    for order in orders {
        let mut collector = HelloCollector::default();
        assert_eq!(collector.add(order[0]), Progress::Part);
        assert_eq!(collector.add(order[0]), Progress::Part);
        assert_eq!(collector.add(order[1]), Progress::Part);
        assert_eq!(collector.add(order[2]), whole());
    }
    // Two Initial packets in one datagram, with an ACK and a PING; the second one is padded.
    let short = sealed(1, ID, 0, &[&[1, 2, 5, 0, 1, 5, 0, 0][..], &crypto(0, &message[..50])].concat(), 160);
    let both = [short, sealed(1, ID, 1, &crypto(50, &message[50..]), 1_100)].concat();
    assert_eq!(HelloCollector::default().add(&both), whole());
    let second_version = sealed(VERSION_2, ID, 7, &crypto(0, message), 1_300);
    assert_eq!(HelloCollector::default().add(&second_version), whole());
}

#[test]
fn other_datagrams_change_nothing() {
    let record = record();
    let message = &record[5..];
    let mut collector = HelloCollector::default();
    // 0-RTT that overtakes the Initial packet.
    let early = [&[0xd0, 0, 0, 0, 1, 11][..], ID, &[0, 4, 1, 2, 3, 4]].concat();
    assert_eq!(collector.add(&early), Progress::Part);
    assert_eq!(collector.add(&pieces(0, message, std::slice::from_ref(&(0..100)))), Progress::Part);
    let others = [
        sealed(1, b"another id", 1, &crypto(100, &message[100..]), 1_200),
        sealed(VERSION_2, ID, 1, &crypto(100, &message[100..]), 1_200),
        sealed(1, ID, 1, &crypto(100, &message[100..]), 1_199),
        vec![0x40; 1_200],
        Vec::new(),
    ];
    for other in &others {
        assert_eq!(collector.add(other), Progress::Part);
    }
    assert_eq!(
        collector.add(&pieces(1, message, std::slice::from_ref(&(100..message.len())))),
        Progress::Whole(record.clone())
    );
}

#[test]
fn violations_end_the_search() {
    let record = record();
    let message = &record[5..];
    let mut changed = message.to_vec();
    changed[50] ^= 1;
    let largest = |length: usize| [&[1][..], &(length as u32).to_be_bytes()[1..]].concat();
    let rows: [(&str, Vec<u8>); 9] = [
        ("two contents of one byte", [crypto(40, &message[40..60]), crypto(0, &changed)].concat()),
        ("another message", crypto(0, &[2, 0, 0, 1])),
        ("a message that is too large", crypto(0, &largest(LARGEST - HEADER + 1))),
        ("an offset that is too large", crypto(LARGEST, b"x")),
        ("the largest offset", [6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1].to_vec()),
        ("a length beyond the packet", [6, 0, 0x7f, 0xff].to_vec()),
        ("a STREAM frame", vec![0x0a, 0, 1, 1]),
        ("ACK ranges without end", [2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80].to_vec()),
        ("a frame type that is truncated", [&[1; 1_161][..], &[0xc0]].concat()),
    ];
    for (name, frames) in rows {
        let datagram = sealed(1, ID, 0, &frames, 1_200);
        assert_eq!(HelloCollector::default().add(&datagram), Progress::Broken, "{name}");
    }
    let fits = sealed(1, ID, 0, &crypto(0, &largest(LARGEST - HEADER)), 1_200);
    assert_eq!(HelloCollector::default().add(&fits), Progress::Part);
    // The first Initial packet cannot be decrypted: another client's keys, an ID that is too short.
    assert_eq!(HelloCollector::default().add(&sealed(1, b"7 bytes", 0, &[1], 1_200)), Progress::Broken);
    let mut forged = sealed(1, ID, 0, &[1], 1_200);
    forged[1_100] ^= 1;
    assert_eq!(HelloCollector::default().add(&forged), Progress::Broken);
}

/// A datagram that consists of Initial packets costs no more than one of them.
#[test]
fn keys_are_derived_once_for_a_datagram() {
    // Each has an ID of its own, and cannot be decrypted.
    let packet = |number: u8| [&[0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, number, 0, 0, 20][..], &[7; 20]].concat();
    let datagram: Vec<u8> = (0..40).flat_map(packet).collect();
    assert!(datagram.len() >= LEAST_DATAGRAM && initials(&datagram).count() == 40);
    DERIVATIONS.set(0);
    assert_eq!(HelloCollector::default().add(&datagram), Progress::Broken);
    assert_eq!(DERIVATIONS.get(), 1);
    // Those of a connection are derived for its first packet only.
    let message = &record()[5..];
    DERIVATIONS.set(0);
    let mut collector = HelloCollector::default();
    assert_eq!(collector.add(&pieces(1, message, &[0..20, 20..50])), Progress::Part);
    assert_eq!(collector.add(&datagram), Progress::Part);
    assert!(matches!(collector.add(&pieces(2, message, &[50..60, 60..message.len()])), Progress::Whole(_)));
    assert_eq!(DERIVATIONS.get(), 1);
}
