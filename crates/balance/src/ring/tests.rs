//! The ring: shares, keys moved by removing a server, affinity, bounded loads; sequences are those of HAProxy 3.5.

use super::*;
use crate::Recogniser;
use config::spec::{BalanceSpec, HashMethod};

struct Farm {
    ring: Ring,
    loads: Loads,
    count: usize,
}

fn candidates(weights: &[u32]) -> Vec<Candidate> {
    let servers = weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
    let place = |server: usize| (server as u32 + 1) * 4_096;
    servers
        .map(|(server, &weight)| Candidate { server, weight, scale: 1, id: server as u32 + 1, place: place(server) })
        .collect()
}

impl Farm {
    fn new(hash: HashSpec, weights: &[u32]) -> Self {
        let mut farm = Self { ring: Ring::new(&hash), loads: Loads::new(weights.len()), count: weights.len() };
        farm.weigh(weights);
        farm
    }

    fn weigh(&mut self, weights: &[u32]) {
        let candidates = candidates(weights);
        self.ring.rebuild(&candidates, weights.len());
        for Candidate { server, .. } in candidates {
            let load = self.loads[server];
            self.ring.on_load(server, Change { load, turned: load.has_slot() });
        }
    }

    fn limit(mut self, limit: u32, maxqueue: u32) -> Self {
        (0..self.count).for_each(|server| self.set(server, Load { limit, maxqueue, ..Load::IDLE }));
        self
    }

    fn set(&mut self, server: usize, load: Load) {
        let before = std::mem::replace(&mut self.loads[server], load);
        self.ring.on_load(server, Change { load, turned: before.has_slot() != load.has_slot() });
    }

    fn pick(&mut self, hash: Option<u32>) -> usize {
        let requests = 1 + (0..self.count).map(|server| self.loads[server].in_flight()).sum::<u32>();
        self.ring.pick(&Pick { hash, requests, ..Pick::default() }, &self.loads).unwrap()
    }

    /// Takes a slot of a server, or a place in its queue.
    fn hold(&mut self, hash: u32) -> String {
        let server = self.pick(Some(hash));
        let load = self.loads[server];
        if load.has_slot() {
            self.set(server, Load { served: load.served + 1, ..load });
            server.to_string()
        } else if load.has_queue_room() {
            self.set(server, Load { queued: load.queued + 1, ..load });
            format!("q{server}")
        } else {
            "x".to_owned()
        }
    }
}

const CONSISTENT: HashSpec = HashSpec {
    method: HashMethod::Consistent,
    function: None,
    avalanche: false,
    balance_factor: None,
    affinity: HashAffinity::Always,
};

const KEY: u32 = 3_000_000_000;

fn hold(hash: HashSpec, weights: &[u32], limits: (u32, u32), count: usize) -> String {
    let mut farm = Farm::new(hash, weights).limit(limits.0, limits.1);
    let held: Vec<String> = (0..count).map(|_| farm.hold(KEY)).collect();
    held.join(" ")
}

#[test]
fn loads_are_bounded_as_in_haproxy() {
    let unlimited = (u32::MAX, u32::MAX);
    let rows: &[(u32, &[u32], &str)] = &[
        (150, &[1; 5], "1 0 3 4 1 3 0 4 1 0 3 1 0 3 1 3 0 4 1 0 3 1 0 3"),
        (110, &[1; 5], "1 0 3 4 4 2 1 3 0 4 1 3 0 4 2 1 3 0 4 2 1 0 3 4"),
        (150, &[4, 2, 1], "1 0 1 0 0 0 1 1 0 0 1 0 1 0 0 1 1 0 0 0 1 1 0 0"),
    ];
    for (factor, weights, expected) in rows {
        let hash = HashSpec { balance_factor: Some(*factor), ..CONSISTENT };
        assert_eq!(hold(hash, weights, unlimited, 24), *expected, "{factor} {weights:?}");
    }
}

#[test]
fn a_full_server_is_left_as_affinity_says() {
    let rows = [
        (HashAffinity::Always, (1, u32::MAX), "1 q1 q1 q1 q1"),
        (HashAffinity::Maxconn, (1, u32::MAX), "1 0 3 4 2 q2 q2"),
        (HashAffinity::Maxqueue, (1, 1), "1 q1 0 q0 3 q3 4 q4 2 q2 x x"),
        (HashAffinity::Maxqueue, (1, u32::MAX), "1 q1 q1"),
        (HashAffinity::Maxconn, (u32::MAX, u32::MAX), "1 1 1"),
    ];
    for (affinity, limits, expected) in rows {
        let hash = HashSpec { affinity, ..CONSISTENT };
        assert_eq!(hold(hash, &[1; 5], limits, expected.split(' ').count()), expected, "{affinity:?}");
    }
}

#[test]
fn requests_without_a_key_go_around_the_circle_as_in_haproxy() {
    let mut farm = Farm::new(CONSISTENT, &[1; 5]);
    let order: Vec<String> = (0..16).map(|_| farm.pick(None).to_string()).collect();
    assert_eq!(order.concat(), "2332314302030120");
}

/// Returns the hashes of 10,000 visitors.
fn keys() -> impl Iterator<Item = u32> {
    let hash = |number: u32| avalanche(base::hash::sdbm(format!("/visitor/{number}").as_bytes()));
    (0..10_000).map(hash)
}

#[test]
fn a_server_that_goes_or_changes_its_weight_moves_no_keys_but_its_own() {
    let mut farm = Farm::new(CONSISTENT, &[1, 2, 3, 4]);
    let before: Vec<usize> = keys().map(|key| farm.pick(Some(key))).collect();
    farm.weigh(&[1, 2, 0, 4]);
    for (key, server) in keys().zip(&before) {
        let now = farm.pick(Some(key));
        assert!(if *server == 2 { now != 2 } else { now == *server });
    }
    farm.weigh(&[1, 2, 5, 4]);
    assert!(keys().zip(&before).all(|(key, server)| [*server, 2].contains(&farm.pick(Some(key)))));
    farm.weigh(&[1, 2, 3, 4]);
    assert_eq!(keys().map(|key| farm.pick(Some(key))).collect::<Vec<_>>(), before, "and back again");
}

#[test]
fn any_history_of_weights_leads_to_the_same_circle() {
    let mut seed = 7_u64;
    let mut draw = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % bound
    };
    let mut farm = Farm::new(CONSISTENT, &[1; 6]);
    for _ in 0..200 {
        let weights: Vec<u32> = (0..6).map(|_| draw(20) as u32).collect();
        farm.weigh(&weights);
        assert_eq!(farm.ring.tables.nodes, Farm::new(CONSISTENT, &weights).ring.tables.nodes, "{weights:?}");
    }
}

#[test]
fn shares_are_as_even_as_so_many_places_make_them() {
    for weights in [&[1_u32, 1, 1][..], &[1, 2, 3, 4], &[10; 10], &[100, 50, 10]] {
        let mut farm = Farm::new(CONSISTENT, weights);
        let mut shares = vec![0_u32; weights.len()];
        keys().for_each(|key| shares[farm.pick(Some(key))] += 1);
        let total: u32 = weights.iter().sum();
        for (server, weight) in weights.iter().enumerate() {
            let due = 10_000 * weight / total;
            assert!(shares[server].abs_diff(due) * 2 <= due, "{weights:?}: {server} got {} of {due}", shares[server]);
        }
    }
}

#[test]
fn a_server_to_avoid_is_taken_only_when_it_is_alone() {
    let avoid = |farm: &mut Farm, server| {
        let pick = Pick { hash: Some(KEY), avoid: Some(server), ..Pick::default() };
        farm.ring.pick(&pick, &farm.loads)
    };
    assert_eq!(avoid(&mut Farm::new(CONSISTENT, &[1; 5]), 1), Some(0));
    assert_eq!(avoid(&mut Farm::new(CONSISTENT, &[0, 1, 0]), 1), Some(1));
    assert_eq!(avoid(&mut Farm::new(CONSISTENT, &[0, 0]), 1), None);
}

#[test]
fn places_are_found_across_the_end_of_the_circle() {
    let farm = Farm::new(CONSISTENT, &[1; 5]);
    let nodes = &farm.ring.tables.nodes;
    for (index, node) in nodes.iter().enumerate() {
        assert_eq!(farm.ring.tables.nearest(node.place()), Some(index));
    }
    let (first, last) = (nodes[0].place(), nodes[nodes.len() - 1].place());
    let gap = first.wrapping_sub(last);
    assert_eq!(farm.ring.tables.nearest(last.wrapping_add(gap / 2 + 1)), Some(0));
    assert_eq!(farm.ring.tables.nearest(last.wrapping_add(gap / 2 - 1)), Some(nodes.len() - 1));
    assert!(Recogniser::new(&BalanceSpec::Source, &CONSISTENT).is_some());
}
