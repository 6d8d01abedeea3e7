//! An unreliable network: loss, duplicates, changed bytes, late datagrams, and another address of the client.

use std::net::SocketAddr;
use std::time::Duration;

use base::moment::Moment;
use weir_quic::congestion::{Algorithm, Settings as Congestion};
use weir_quic::transport::Settings;
use weir_quic::{Direction, Event};

use crate::streams::Pair;
use crate::world::{CLIENT, SERVER, World, read};

/// A generator of numbers from a seed (xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Transfers bytes from the server to the client. Returns when they have arrived.
fn transfer(pair: &mut Pair, length: usize) -> Moment {
    let id = pair.ask(b"x", true);
    let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
    let (client, server) = (pair.client, pair.server);
    let (mut sent, mut got, mut is_open) = (0, Vec::new(), false);
    let done = pair.world.until(|world| {
        let server = world.server.connections.get_mut(&server).unwrap();
        if !is_open && server.accept(Direction::Bidirectional).is_some() {
            is_open = true;
        }
        if is_open && sent < length {
            sent += server.write(id, &bytes[sent..]).unwrap_or(0);
            if sent == length {
                server.finish(id).unwrap();
            }
        }
        let (part, is_whole) = read(world.client.connections.get_mut(&client).unwrap(), id);
        got.extend(part);
        is_whole
    });
    assert!(done && got == bytes, "{} of {length} bytes", got.len());
    pair.world.now
}

#[test]
fn handshakes_survive_the_loss_of_any_datagram() {
    for lost in 0..14 {
        let (mut world, tls) = World::usual();
        world.link = Box::new(move |number, _| number != lost);
        let handle = world.connect(&tls, "a.test");
        world.shake(handle);
    }
}

#[test]
fn bytes_survive_loss_duplicates_disorder_and_changed_bits() {
    for algorithm in [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr, Algorithm::Fixed] {
        let congestion = Congestion { algorithm, max_window: 64 * 1024 };
        let settings = Settings { congestion, ..Settings::default() };
        let mut pair = Pair::with(&settings, &settings);
        let mut numbers = Numbers(0x5eed);
        pair.world.link = Box::new(move |_, packet| {
            match numbers.below(100) {
                0..5 => return false,
                5..8 => {
                    let at = numbers.below(packet.bytes.len() as u64) as usize;
                    packet.bytes[at] ^= 1 << numbers.below(8);
                }
                8..20 => packet.at = packet.at + Duration::from_millis(numbers.below(30)),
                _ => {}
            }
            true
        });
        transfer(&mut pair, 300_000);
        let statistics = pair.server().statistics();
        assert!(statistics.lost_packets > 0 && statistics.window <= 64 * 1024, "{algorithm:?} {statistics:?}");
    }
}

/// A transfer with a larger window needs fewer round trips.
#[test]
fn windows_bound_transfers() {
    let time = |max_window| {
        let congestion = Congestion { algorithm: Algorithm::Fixed, max_window };
        let mut pair = Pair::with(&Settings { congestion, ..Settings::default() }, &Settings::default());
        let begin = pair.world.now;
        transfer(&mut pair, 400_000).saturating_since(begin)
    };
    let (small, large) = (time(20_000), time(400_000));
    assert!(small > large * 3, "{small:?} {large:?}");
}

/// A NAT gives the client another port in the middle of a transfer (RFC 9000, section 9.3).
#[test]
fn connections_follow_the_client() {
    let mut pair = Pair::usual();
    let moved = SocketAddr::new(CLIENT.ip(), 5000);
    pair.world.link = Box::new(move |_, packet| {
        if packet.from == CLIENT {
            packet.from = moved;
        }
        true
    });
    assert_eq!(pair.server().peer(), CLIENT);
    transfer(&mut pair, 100_000);
    assert_eq!(pair.server().peer(), moved);
    assert_eq!(pair.server().local(), Some(SERVER.ip()));
}

#[test]
fn keys_are_updated() {
    let mut pair = Pair::usual();
    for _ in 0..3 {
        pair.client().update_keys();
        transfer(&mut pair, 10_000);
        pair.server().update_keys();
        transfer(&mut pair, 10_000);
        pair.pass();
    }
    assert!(!pair.client().is_closed() && !pair.server().is_closed());
}

/// Before the client's address is confirmed, at most three times as many bytes are sent as were received (section 8.1).
#[test]
fn answers_to_unconfirmed_addresses_are_bounded() {
    let (mut world, tls) = World::usual();
    let mut first = true;
    // Only the first datagram of the client arrives.
    world.link = Box::new(move |_, packet| packet.to != SERVER || std::mem::take(&mut first));
    world.connect(&tls, "a.test");
    world.run_for(Duration::from_secs(20));
    let received = world.log.iter().find(|(from, _)| *from == CLIENT).map_or(0, |(_, bytes)| bytes.len());
    let sent: usize = world.log.iter().filter(|(from, _)| *from == SERVER).map(|(_, bytes)| bytes.len()).sum();
    assert!(sent > 0 && sent <= 3 * received, "{sent} for {received}");
}

#[test]
fn marks_of_congestion_reduce_the_window() {
    let mut pair = Pair::usual();
    transfer(&mut pair, 200_000);
    let before = pair.server().statistics();
    pair.world.link = Box::new(|_, packet| {
        if packet.from == SERVER {
            packet.ecn = 3;
        }
        true
    });
    transfer(&mut pair, 50_000);
    let after = pair.server().statistics();
    assert_eq!((before.congestion_events, after.lost_packets), (0, 0));
    assert!(after.congestion_events > 0, "{after:?}");
    assert!(!pair.world.server.events_of(pair.server).iter().any(|event| matches!(event, Event::Closed(_))));
}

/// Handshakes survive a network that loses or corrupts a third of all datagrams (interoperability cases "handshake loss" and
/// "handshake corruption").
#[test]
fn handshakes_survive_heavy_loss_and_corruption() {
    for corrupts in [false, true] {
        for seed in 1..30 {
            let (mut world, tls) = World::usual();
            let mut numbers = Numbers(seed * 0x5eed);
            world.link = Box::new(move |_, packet| {
                if numbers.below(100) >= 30 {
                    return true;
                }
                let at = numbers.below(packet.bytes.len() as u64) as usize;
                packet.bytes[at] ^= 1 << numbers.below(8);
                corrupts
            });
            let handle = world.connect(&tls, "a.test");
            let settled = world.until(|world| {
                let ended = |event: &&Event| matches!(event, Event::Connected | Event::Closed(_));
                world.client.events_of(handle).iter().any(ended)
            });
            let events = world.client.events_of(handle);
            assert!(settled && events.contains(&&Event::Connected), "{corrupts} {seed}: {events:?}");
        }
    }
}

/// Nothing passes for some seconds in the middle of a transfer ("blackhole").
#[test]
fn transfers_survive_a_silent_network() {
    let mut pair = Pair::usual();
    let begin = pair.world.now;
    let silent = Duration::from_millis(20)..Duration::from_secs(6);
    pair.world.link = Box::new(move |_, packet| !silent.contains(&packet.at.saturating_since(begin)));
    let end = transfer(&mut pair, 300_000);
    assert!(end.saturating_since(begin) > Duration::from_secs(6), "it was interrupted");
    assert!(pair.server().statistics().lost_packets > 0);
}

/// The client moves to another address of another network in the middle of a transfer ("connection migration"): until that is
/// validated, at most three times as many bytes are sent to it as were received from it.
#[test]
fn connections_migrate() {
    let mut pair = Pair::usual();
    let moved: SocketAddr = "198.51.100.7:6000".parse().unwrap();
    let (mut count, mut received, mut sent, mut validated) = (0, 0, 0, false);
    pair.world.link = Box::new(move |_, packet| {
        count += 1;
        if packet.from == CLIENT && count > 20 {
            packet.from = moved;
        }
        // The answer to the challenge arrives with the second datagram from there at the earliest.
        validated |= received > 0 && packet.from == moved;
        if packet.from == moved {
            received += packet.bytes.len();
        } else if packet.to == moved && !validated {
            sent += packet.bytes.len();
            assert!(sent <= 3 * received, "{sent} for {received}");
        }
        true
    });
    transfer(&mut pair, 200_000);
    assert_eq!(pair.server().peer(), moved);
}

/// Keys are updated while packets are lost and reordered ("key update").
#[test]
fn keys_are_updated_over_a_bad_network() {
    let mut pair = Pair::usual();
    let mut numbers = Numbers(77);
    pair.world.link = Box::new(move |_, packet| {
        packet.at = packet.at + Duration::from_millis(numbers.below(20));
        numbers.below(100) >= 5
    });
    for _ in 0..5 {
        pair.client().update_keys();
        transfer(&mut pair, 50_000);
        pair.server().update_keys();
        transfer(&mut pair, 50_000);
        pair.pass();
    }
    assert!(!pair.client().is_closed() && !pair.server().is_closed());
}

/// An attacker that observes the connection repeats the client's datagrams from its own address: the server goes on with the
/// client (RFC 9000, section 9.3.3).
#[test]
fn repeated_datagrams_do_not_move_a_connection() {
    let mut pair = Pair::usual();
    let attacker: SocketAddr = "203.0.113.9:9".parse().unwrap();
    let observed = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let taken = std::rc::Rc::clone(&observed);
    pair.world.link = Box::new(move |_, packet| {
        if packet.from == CLIENT {
            taken.borrow_mut().push(packet.bytes.clone());
        }
        true
    });
    transfer(&mut pair, 20_000);
    for bytes in observed.borrow().iter() {
        pair.world.inject(attacker, SERVER, bytes);
    }
    pair.pass();
    transfer(&mut pair, 20_000);
    assert_eq!(pair.server().peer(), CLIENT);
}
