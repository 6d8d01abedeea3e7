//! The order in which servers are selected, compared with sequences of HAProxy 2.6 and 3.5, and a suite over every row
//! of the table: shares by weight, full servers, the server to avoid, changing weights.

use super::*;
use config::span::{Span, Spanned};
use config::spec::UriSpec;
use std::collections::BTreeMap;
use std::net::IpAddr;

fn candidate(server: usize, weight: u32, id: u32) -> Candidate {
    Candidate { server, weight, scale: 1, id, place: id * 4_096 }
}

fn candidates(weights: &[u32]) -> Vec<Candidate> {
    let servers = weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
    servers.map(|(server, &weight)| candidate(server, weight, server as u32 + 1)).collect()
}

/// An algorithm with its servers' loads, as in a backend.
struct Farm {
    state: State,
    loads: Loads,
    weights: Vec<u32>,
    random: u64,
}

impl Farm {
    fn new(spec: &BalanceSpec, weights: &[u32]) -> Self {
        Self::hashed(spec, &HashSpec::default(), weights)
    }

    fn hashed(spec: &BalanceSpec, hash: &HashSpec, weights: &[u32]) -> Self {
        let (_, state) = find(spec, hash);
        let mut farm = Self { state, loads: Loads::new(weights.len()), weights: Vec::new(), random: 1 };
        farm.weigh(weights);
        farm
    }

    fn weigh(&mut self, weights: &[u32]) {
        self.weights = weights.to_vec();
        self.state.rebuild(&candidates(weights), weights.len());
        for Candidate { server, .. } in candidates(weights) {
            let load = self.loads[server];
            self.state.on_load(server, Change { load, turned: load.has_slot() });
        }
    }

    fn set(&mut self, server: usize, load: Load) {
        let before = std::mem::replace(&mut self.loads[server], load);
        if self.weights[server] > 0 {
            self.state.on_load(server, Change { load, turned: before.has_slot() != load.has_slot() });
        }
    }

    fn limited(mut self, server: usize, limit: u32) -> Self {
        self.set(server, Load { limit, ..self.loads[server] });
        self
    }

    fn change(&mut self, server: usize, by: i32) {
        let load = self.loads[server];
        self.set(server, Load { served: load.served.strict_add_signed(by), ..load });
    }

    /// Selects a server, and takes its slot if it has one.
    fn hold(&mut self, pick: Pick) -> Option<usize> {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let requests = 1 + (0..self.weights.len()).map(|server| self.loads[server].in_flight()).sum::<u32>();
        let server = self.state.pick(&Pick { random: self.random, requests, ..pick }, &self.loads)?;
        if self.loads[server].has_slot() {
            self.change(server, 1);
        }
        Some(server)
    }

    /// Selects a server, and releases its slot immediately.
    fn pass(&mut self, pick: Pick) -> Option<usize> {
        let has_slot: Vec<bool> = (0..self.weights.len()).map(|server| self.loads[server].has_slot()).collect();
        let server = self.hold(pick)?;
        if has_slot[server] {
            self.change(server, -1);
        }
        Some(server)
    }

    fn names(&mut self, count: usize, mut how: impl FnMut(&mut Self) -> Option<usize>) -> String {
        (0..count).map(|_| how(self).map_or('-', |server| char::from(b'a' + server as u8))).collect()
    }
}

fn one_after_another(spec: &BalanceSpec, weights: &[u32], count: usize) -> String {
    Farm::new(spec, weights).names(count, |farm| farm.pass(Pick::default()))
}

#[test]
fn roundrobin_has_haproxys_order() {
    let rows: &[(&[u32], &str)] = &[
        (&[1, 1, 1], "abcabcabca"),
        (&[1, 1, 1, 1, 1], "abcdeabcdeabcd"),
        (&[2, 1], "aabaabaaba"),
        (&[1, 2], "bbabbabbab"),
        (&[3, 2, 1], "abacababacababac"),
        (&[1, 2, 3], "cbcacbcbcacbcbca"),
        (&[5, 1, 1], "aaabaacaaabaacaaab"),
        (&[1, 0, 2], "ccaccaccac"),
        (&[4, 4, 2], "ababcababcababcababcabab"),
        (&[100, 50, 10], "aabaabacabaabaabaabaabacabaabaabaabaabacabaabaabaabaabacabaa"),
        (&[10, 50, 100], "ccbccbcacbccbccbccbccbcacbccbccbccbccbcacbccbccbccbccbcacbcc"),
        (&[7, 5, 3, 2], "abacbadabcabaacbdabacbadabcabaacbdabac"),
        (&[2, 3, 5, 7], "dcdbcdadcbdcddbcadcdbcdadcbdcddbcadcdb"),
        (&[3, 5], "bbababbabbababba"),
        (&[4, 7], "bbabbababbabbabbababba"),
        (&[8, 5], "aababaabaababaababaabaabab"),
        (&[1, 2, 5], "ccbccacbccbccacb"),
        (&[3, 4, 5], "cbcabcbcacbacbcabcbcacba"),
        (&[8, 1, 1, 1, 1], "aabaacaadaaeaabaacaadaae"),
        (&[12, 5, 4, 1, 1], "aabacabadacabaeacbaabac"),
        (&[2, 3, 3], "bcbcabcb"),
    ];
    for (weights, order) in rows {
        assert_eq!(one_after_another(&BalanceSpec::RoundRobin, weights, order.len()), *order, "{weights:?}");
    }
}

#[test]
fn static_rr_has_haproxys_order() {
    let rows: &[(&[u32], &str)] = &[
        (&[1, 1, 1], "abcabcabca"),
        (&[1, 2], "abbabbabba"),
        (&[3, 2, 1], "aababcaababcaaba"),
        (&[1, 2, 3], "acbcbcacbcbcacbc"),
        (&[5, 1, 1], "aaabaacaaabaacaaab"),
        (&[1, 0, 2], "accaccacca"),
        (&[100, 50, 10], "aabaabaababaabacaabaabaababaabacaabaabaababaabacaabaabaababa"),
        (&[7, 5, 3, 2], "ababacbadabcabacdababacbadabcabacdabab"),
        (&[2, 3, 5, 7], "abdcdbcdadcbdcdcdabdcdbcdadcbdcdcdabdc"),
    ];
    for (weights, order) in rows {
        assert_eq!(one_after_another(&BalanceSpec::StaticRr, weights, order.len()), *order, "{weights:?}");
    }
}

#[test]
fn leastconn_has_the_order_of_haproxy_2_6() {
    // Requests end before the next one arrives: all servers are idle each time.
    assert_eq!(one_after_another(&BalanceSpec::LeastConn, &[7, 5, 3], 8), "abcabcab");
    // Requests do not end.
    let rows: &[(&[u32], &str)] = &[
        (&[1, 1, 1], "abcabcabcabcabcabcabcabcab"),
        (&[2, 1], "abaabaabaabaabaabaabaabaab"),
        (&[3, 2, 1], "abcabaabacbaabacbaabacbaab"),
        (&[1, 2, 3], "abccbccbcabccbcabccbcabccb"),
        (&[5, 1, 1], "abcaaaaaaaabcaaaaabcaaaaab"),
        (&[4, 3], "abababaabababaabababaababa"),
        (&[7, 5, 3], "abcabaabcabacbaabacbaabcab"),
        (&[10, 1], "abaaaaaaaaaaaaaaaaaabaaaaa"),
    ];
    for (weights, order) in rows {
        let found = Farm::new(&BalanceSpec::LeastConn, weights).names(order.len(), |farm| farm.hold(Pick::default()));
        assert_eq!(found, *order, "{weights:?}");
    }
}

/// Server a has one slot, taken by the first request; then some requests arrive, the slot is freed, and more arrive.
#[test]
fn a_full_server_is_passed_over_and_loses_its_turns_as_in_haproxy() {
    let rows: &[(BalanceSpec, &[u32], &str, &str)] = &[
        (BalanceSpec::RoundRobin, &[1, 1, 1], "abcb", "cabcabcabcabca"),
        (BalanceSpec::RoundRobin, &[1, 1, 1], "abcbcbcb", "cabcabcabcabca"),
        (BalanceSpec::RoundRobin, &[1, 1, 1], "abcbcbcbc", "abcabcabcabcab"),
        (BalanceSpec::RoundRobin, &[4, 4, 4], "abcbcbcbc", "abcabcabcabcab"),
        (BalanceSpec::RoundRobin, &[3, 2, 1], "abcb", "abacababacabab"),
        (BalanceSpec::StaticRr, &[1, 1, 1], "abcbcbcb", "cabcabcabcabca"),
        (BalanceSpec::StaticRr, &[3, 2, 1], "abbc", "aababcaababcaa"),
        (BalanceSpec::StaticRr, &[3, 2, 1], "abbcbbcb", "abcaababcaabab"),
    ];
    for (spec, weights, full, free) in rows {
        let mut farm = Farm::new(spec, weights).limited(0, 1);
        let mut found = farm.names(1, |farm| farm.hold(Pick::default()));
        found += &farm.names(full.len() - 1, |farm| farm.pass(Pick::default()));
        farm.change(0, -1);
        assert_eq!(found, *full, "{spec:?} {weights:?}");
        assert_eq!(
            farm.names(free.len(), |farm| farm.pass(Pick::default())),
            *free,
            "{spec:?} {weights:?} after {full}"
        );
    }
}

#[test]
fn source_divides_the_address_as_haproxy_does() {
    // Addresses, and the servers selected by HAProxy 2.6 and 3.5, out of 20 and out of 7.
    let rows = [
        ("10.0.0.0", 'a', 'd'),
        ("10.0.0.1", 'b', 'e'),
        ("10.0.0.39", 't', 'a'),
        ("192.168.0.7", 'h', 'd'),
        ("192.168.19.7", 'l', 'c'),
        ("1.2.3.4", 'a', 'a'),
        ("255.255.255.255", 'p', 'd'),
        ("127.0.0.1", 'n', 'c'),
        ("2001:db8::1", 'b', 'f'),
        ("2001:db8::18", 'q', 'b'),
        ("2001:db8:1:2:3:4:5:6", 'a', 'a'),
        ("fe80::1", 'n', 'a'),
        ("::1", 'b', 'b'),
    ];
    let mut twenty = Farm::new(&BalanceSpec::Source, &[1; 20]);
    let mut seven = Farm::new(&BalanceSpec::Source, &[1; 7]);
    for (address, of_twenty, of_seven) in rows {
        let source = Some(address.parse::<IpAddr>().unwrap());
        let recogniser = Recogniser::new(&BalanceSpec::Source, &HashSpec::default()).unwrap();
        let hash = recogniser.hash(&Subject { source, ..Subject::default() });
        let pick = Pick { hash, ..Pick::default() };
        let found = twenty.names(1, |farm| farm.pass(pick)) + &seven.names(1, |farm| farm.pass(pick));
        assert_eq!(found, format!("{of_twenty}{of_seven}"), "{address}");
    }
}

/// One specification for every row of the table.
const SPECS: &[BalanceSpec] = &[
    BalanceSpec::RoundRobin,
    BalanceSpec::StaticRr,
    BalanceSpec::LeastConn,
    BalanceSpec::First,
    BalanceSpec::Source,
    BalanceSpec::Uri(UriSpec { len: None, depth: None, whole: false, path_only: false }),
    BalanceSpec::UrlParam { name: String::new(), check_post: false },
    BalanceSpec::Header { name: String::new(), domain_only: false },
    BalanceSpec::RdpCookie { name: String::new() },
    BalanceSpec::Random { draws: 1 },
    BalanceSpec::Random { draws: 2 },
    BalanceSpec::Ewma { decay: 10_000 },
    BalanceSpec::Random { draws: 5 },
    BalanceSpec::LogHash(Spanned { value: String::new(), span: Span { file: 0, line: 0, start: 0, end: 0 } }),
    BalanceSpec::Hash(Spanned { value: String::new(), span: Span { file: 0, line: 0, start: 0, end: 0 } }),
    BalanceSpec::Sticky,
];

/// Returns the parameters of client number `number`.
fn client(number: u32) -> Pick {
    let hash = number.wrapping_mul(2_654_435_761).rotate_left(7);
    Pick { hash: Some(hash), ..Pick::default() }
}

#[test]
fn every_row_is_named_once_documented_and_found() {
    let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
    for (place, row) in TABLE.iter().enumerate() {
        assert!(!names[..place].contains(&row.name), "{} is there twice", row.name);
        assert!(row.doc.ends_with('.'), "{} is not documented", row.name);
        let specs = SPECS.iter().filter(|spec| find(spec, &HashSpec::default()).0.name == row.name);
        assert!(specs.count() > 0, "{} is not tested", row.name);
    }
    for spec in SPECS {
        assert_eq!(TABLE.iter().filter(|row| (row.make)(spec, &HashSpec::default()).is_some()).count(), 1, "{spec:?}");
    }
}

#[test]
fn the_manual_has_every_row_in_its_own_words() {
    let manual = include_str!("../../../docs/balancing.md");
    for row in TABLE {
        let line = format!("| `{}` | {} |", row.name, row.doc);
        assert!(manual.contains(&line), "docs/balancing.md lacks: {line}");
    }
}

/// Returns the number of requests that each server got out of `count`; they do not end if the algorithm depends on the
/// load.
fn shares(farm: &mut Farm, spec: &BalanceSpec, count: u32) -> Vec<u32> {
    let mut shares = vec![0; farm.weights.len()];
    for number in 0..count {
        let pick = if find(spec, &HashSpec::default()).0.hashes { client(number) } else { Pick::default() };
        let stays = matches!(spec, BalanceSpec::LeastConn | BalanceSpec::Random { .. } | BalanceSpec::Ewma { .. });
        let server = if stays { farm.hold(pick) } else { farm.pass(pick) };
        shares[server.unwrap()] += 1;
    }
    shares
}

#[test]
fn shares_follow_the_weights() {
    for spec in SPECS {
        for weights in [&[1, 1, 1][..], &[1, 2, 3, 4], &[256, 1], &[0, 5, 0, 7], &[1; 40]] {
            let total: u32 = weights.iter().sum();
            let count = total * 400;
            let found = shares(&mut Farm::new(spec, weights), spec, count);
            if matches!(spec, BalanceSpec::First | BalanceSpec::Sticky) {
                let first = weights.iter().position(|weight| *weight > 0).unwrap();
                assert_eq!(found[first], count);
                continue;
            }
            for (server, weight) in weights.iter().enumerate() {
                let due = weight * 400;
                // Random draws and hashes vary; the others may differ by rounding.
                let by_lot = matches!(spec, BalanceSpec::Random { .. } | BalanceSpec::Ewma { .. });
                let slack = if find(spec, &HashSpec::default()).0.hashes || by_lot { due / 4 + 20 } else { 4 };
                let slack = if *weight == 0 { 0 } else { slack };
                assert!(
                    found[server].abs_diff(due) <= slack,
                    "{spec:?} {weights:?}: server {server} got {}",
                    found[server]
                );
            }
        }
    }
}

#[test]
fn a_full_server_gets_nothing_unless_the_request_is_bound_to_it() {
    for spec in SPECS {
        let hashes = find(spec, &HashSpec::default()).0.hashes;
        let mut farm = Farm::new(spec, &[2, 3, 1]).limited(0, 1).limited(1, 2).limited(2, 1);
        let mut got = vec![0; 3];
        while let Some(server) = farm.hold(Pick::default()) {
            got[server] += 1;
            assert!(got[server] <= farm.loads[server].limit, "{spec:?}");
        }
        assert_eq!(got, [1, 2, 1], "{spec:?}");
        assert_eq!(farm.hold(client(7)).is_some(), hashes, "{spec:?}");
        for server in [1, 0, 2] {
            farm.change(server, -1);
            assert_eq!(farm.hold(Pick::default()), Some(server), "{spec:?}");
        }
    }
}

#[test]
fn the_server_to_avoid_is_taken_only_when_no_other_can_be() {
    for spec in SPECS {
        for avoid in 0..3 {
            for number in 0..200 {
                let mut farm = Farm::new(spec, &[2, 3, 1]);
                let pick = Pick { avoid: Some(avoid), ..client(number) };
                // A map determines the server of a key, even after a failure there.
                let mapped = find(spec, &HashSpec::default()).0.hashes;
                let unavoided = Farm::new(spec, &[2, 3, 1]).pass(client(number));
                let found = farm.pass(pick);
                assert!(if mapped { found == unavoided } else { found != Some(avoid) }, "{spec:?}");
                let mut alone = Farm::new(spec, &[2, 3, 1]);
                for server in (0..3).filter(|server| *server != avoid) {
                    alone = alone.limited(server, 0);
                }
                let bare = Pick { hash: None, ..pick };
                assert_eq!(alone.pass(bare), Some(avoid), "{spec:?}");
            }
        }
    }
}

#[test]
fn a_server_that_does_not_take_part_is_never_chosen_whatever_is_said_of_its_load() {
    for spec in SPECS {
        let mut farm = Farm::new(spec, &[1, 0, 1]);
        farm.change(1, 1);
        farm.change(1, -1);
        for number in 0..100 {
            assert_ne!(farm.pass(client(number)), Some(1), "{spec:?}");
            assert_ne!(farm.pass(Pick::default()), Some(1), "{spec:?}");
        }
        let mut empty = Farm::new(spec, &[0, 0]);
        assert_eq!([empty.pass(client(1)), empty.pass(Pick::default())], [None, None], "{spec:?}");
    }
}

#[test]
fn the_same_client_gets_the_same_server_while_nothing_changes() {
    let mut farm = Farm::new(&BalanceSpec::Source, &[1, 2, 3]);
    let first: BTreeMap<u32, Option<usize>> = (0..100).map(|number| (number, farm.hold(client(number)))).collect();
    for number in 0..100 {
        assert_eq!(farm.hold(client(number)), first[&number]);
    }
}

#[test]
fn roundrobin_turns_are_spread_evenly_and_follow_changed_weights_at_once() {
    let mut farm = Farm::new(&BalanceSpec::RoundRobin, &[1, 1, 1]);
    farm.names(100, |farm| farm.pass(Pick::default()));
    for weights in [[10, 1, 1], [1, 7, 3], [0, 1, 1], [4, 4, 4], [256, 1, 128]] {
        farm.weigh(&weights);
        let total: u32 = weights.iter().sum();
        let order: Vec<usize> = (0..total * 3).map(|_| farm.pass(Pick::default()).unwrap()).collect();
        for window in order.windows(total as usize) {
            for (server, weight) in weights.iter().enumerate() {
                let got = window.iter().filter(|picked| **picked == server).count() as u32;
                assert!(got.abs_diff(*weight) <= 1, "{weights:?}: {got} for {server} in {window:?}");
            }
        }
    }
}

#[test]
fn a_draw_of_two_evens_out_what_a_draw_of_one_leaves_to_chance() {
    let spread = |draws| {
        let mut farm = Farm::new(&BalanceSpec::Random { draws }, &[1; 20]);
        let found = shares(&mut farm, &BalanceSpec::Random { draws }, 2_000);
        found.iter().max().unwrap() - found.iter().min().unwrap()
    };
    assert!(spread(2) < 8, "{}", spread(2));
    assert!(spread(1) > 20, "{}", spread(1));
}

#[test]
fn idle_servers_are_drawn_in_fair_shares_although_all_draws_are_ties() {
    let mut farm = Farm::new(&BalanceSpec::Random { draws: 2 }, &[1, 3]);
    let got = farm.names(4_000, |farm| farm.pass(Pick::default())).matches('a').count();
    assert!((800..1_200).contains(&got), "{got}");
}

#[test]
fn first_goes_by_id() {
    let mut farm = Farm::new(&BalanceSpec::First, &[1, 1, 1]);
    let by_id: Vec<Candidate> = (0..).zip([30, 10, 20]).map(|(server, id)| candidate(server, 1, id)).collect();
    farm.state.rebuild(&by_id, 3);
    for server in 0..3 {
        farm.state.on_load(server, Change { load: Load::IDLE, turned: true });
    }
    let mut farm = farm.limited(0, 1).limited(1, 1).limited(2, 1);
    assert_eq!(farm.names(4, |farm| farm.hold(Pick::default())), "bca-");
}

#[test]
fn leastconn_lets_requests_wait_at_a_server_with_a_maxqueue() {
    let mut farm = Farm::new(&BalanceSpec::LeastConn, &[1, 1]);
    let full = Load { served: 1, limit: 1, ..Load::IDLE };
    farm.set(1, full);
    for (queued, picked) in [(0, Some(0)), (1, Some(0)), (2, None)] {
        farm.set(0, Load { queued, maxqueue: 2, ..full });
        assert_eq!(farm.state.pick(&Pick::default(), &farm.loads), picked);
    }
}
