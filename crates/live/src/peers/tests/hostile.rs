//! Peers that send invalid or unexpected messages.

use super::super::*;
use super::net::{Net, counters, section};
use base::moment::Moment;
use std::time::Duration;
use wire::peers::{Control, Hello, Malformed, Status};

fn hello(minor: u32, remote: &str, local: &str) -> Hello {
    Hello { minor, remote: remote.to_owned(), local: local.to_owned(), pid: 1 }
}

fn now() -> Moment {
    Moment::ZERO + Duration::from_secs(10)
}

#[test]
fn strangers_and_mistakes_are_told_so() {
    let mut node = section(&["a", "b"], 0, &[], &counters(10), now(), false);
    let mut greet = |hello: &Hello| node.section.greeted(hello, now()).err();
    assert_eq!(greet(&hello(1, "x", "b")), Some(Status::LocalName));
    assert_eq!(greet(&hello(1, "a", "x")), Some(Status::RemoteName));
    assert_eq!(greet(&hello(2, "a", "b")), Some(Status::Version));
    assert_eq!(greet(&hello(0, "a", "b")), None);
    assert_eq!(greet(&hello(1, "a", "a")), None);
    // Only one older process may be connected.
    assert_eq!(greet(&hello(1, "a", "a")), Some(Status::TryAgain));
    let status = node.section.status();
    assert_eq!((status.peers[0].running, status.peers[1].running), (true, true));
}

#[test]
fn a_peer_that_comes_anew_replaces_itself() {
    let mut node = section(&["a", "b"], 0, &[], &counters(10), now(), false);
    let first = node.section.greeted(&hello(1, "a", "b"), now()).unwrap();
    let second = node.section.greeted(&hello(1, "a", "b"), now()).unwrap();
    assert!(!node.section.stands(first) && node.section.stands(second));
    assert_eq!(node.section.hear(first, &[0, 4], now()), ReceiveResult::End(End::Replaced));
    assert_eq!(node.section.say(first, &mut Vec::new(), now(), 100), Err(End::Replaced));
    // Closing the first one does not close the second one.
    node.section.ended(first, now(), 0);
    assert!(node.section.stands(second));
}

#[test]
fn silence_ends_a_connection_and_what_is_no_message_too() {
    let mut node = section(&["a", "b"], 0, &[], &counters(10), now(), false);
    let ticket = node.section.greeted(&hello(1, "a", "b"), now()).unwrap();
    let mut out = Vec::new();
    let later = now() + Duration::from_secs(3);
    assert_eq!(node.section.say_at(ticket, false), Some(later));
    assert_eq!((node.section.say(ticket, &mut out, later, 100), &out[..]), (Ok(false), &[0, 4][..]));
    assert_eq!(node.section.say_at(ticket, false), Some(now() + Duration::from_secs(5)));
    assert_eq!(node.section.say(ticket, &mut out, now() + Duration::from_secs(5), 100), Err(End::Silent));
    for (bytes, why) in [
        (&[0, 9][..], Malformed::Unknown),
        (&[10, 128, 0xf0, 0xdb, 0x2f], Malformed::TooLong),
        (&[10, 130, 2, 1, 0], Malformed::Value),
    ] {
        assert_eq!(node.section.hear(ticket, bytes, now()), ReceiveResult::End(End::Malformed(why)), "{bytes:?}");
    }
    assert_eq!(node.section.hear(ticket, &[1, 0], now()), ReceiveResult::End(End::Told));
    assert_eq!(node.section.status().peers[0].protocol_errors, 3);
}

#[test]
fn controls_without_end_are_answered_in_short() {
    let mut node = section(&["a", "b"], 0, &[], &counters(10), now(), false);
    let ticket = node.section.greeted(&hello(1, "a", "b"), now()).unwrap();
    let mut flood = Vec::new();
    for _ in 0..2_000 {
        Control::ResyncFinished.encode(&mut flood);
        Control::ResyncConfirm.encode(&mut flood);
        Control::ResyncRequest.encode(&mut flood);
    }
    assert_eq!(node.section.hear(ticket, &flood, now()), ReceiveResult::Taken(flood.len()));
    let mut out = Vec::new();
    for _ in 0..10 {
        node.section.say(ticket, &mut out, now(), 1_000).unwrap();
    }
    assert!(out.len() < 100, "{}", out.len());
}

#[test]
fn no_bytes_do_harm() {
    let mut seed = 11_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    // The messages of a real peer, with random errors.
    let mut net = Net::new(&["a", "b"], &counters(1_000));
    net.until(|net| net.nodes.iter().all(|node| node.section.is_complete()));
    for key in 0..100 {
        net.nodes[0].bump(key, net.now);
    }
    let mut said = Vec::new();
    let speaker = net.nodes[0].section.greeted(&hello(1, "a", "b"), net.now).unwrap();
    net.nodes[0].section.hear(speaker, &[0, 0], net.now);
    while net.nodes[0].section.say(speaker, &mut said, net.now, 100_000).unwrap() {}
    assert!(said.len() > 1_000);
    for _ in 0..2_000 {
        let mut node = section(&["a", "b"], 0, &[], &counters(50), now(), false);
        let ticket = node.section.greeted(&hello(1, "a", "b"), now()).unwrap();
        let mut bytes = said.clone();
        for _ in 0..random() % 8 {
            let at = random() as usize % bytes.len();
            bytes[at] = random() as u8;
        }
        let mut at = 0;
        while at < bytes.len() {
            let end = (at + 1 + random() as usize % 400).min(bytes.len());
            match node.section.hear(ticket, &bytes[at..end], now()) {
                ReceiveResult::Taken(0) if end == bytes.len() || end - at >= 400 => break,
                ReceiveResult::Taken(taken) => at += taken,
                ReceiveResult::End(_) => break,
            }
        }
        assert!(node.table.used() <= 50);
    }
}
