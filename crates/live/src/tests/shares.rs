//! The guarantees of each algorithm hold after any history: servers that are added and removed, go to maintenance, down
//! and back, and get other weights.

use super::arrivals::another;
use super::*;
use config::spec::{HashFunction, HashMethod, HashSpec};

/// The expected state of the servers, and the state under test.
struct Farm {
    state: Arc<ProxyState>,
    dice: Dice,
    known: Vec<Server>,
    /// The history, for failure messages.
    story: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    weight: u32,
    ready: bool,
    up: bool,
    removed: bool,
}

impl Server {
    fn takes_part(self) -> bool {
        self.ready && self.up && !self.removed && self.weight > 0
    }
}

impl Farm {
    fn new(balance: &BalanceSpec, hash: &HashSpec, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let plans: Vec<Plan> = (0..2 + dice.below(5)).map(|_| Plan(1 + dice.below(8) as u32, 0, 0)).collect();
        let mut proxy = plan(balance.clone(), &plans);
        proxy.hash = *hash;
        let known = plans.iter().map(|plan| Server { weight: plan.0, ready: true, up: true, removed: false });
        let story = vec![format!("{balance:?} {hash:?} {plans:?}")];
        Self { known: known.collect(), state: state_of(proxy), dice, story }
    }

    /// Applies a random change to one server; returns which. Algorithms with fixed tables support no other weights, and
    /// no new servers.
    fn change(&mut self, fixed: bool) -> usize {
        let kinds = if fixed { 2 } else { 6 };
        let (server, count) = (self.dice.below(self.known.len()), self.known.len());
        let known = &mut self.known[server];
        let told = match self.dice.below(kinds) {
            0 if !known.removed => {
                // A server that leaves maintenance counts as up.
                (known.ready, known.up) = (!known.ready, true);
                set_enabled(&self.state, server, known.ready);
                format!("{server} ready: {}", known.ready)
            }
            1 if !known.removed => {
                known.up = !known.up;
                set_up(&self.state, server, known.up, Moment::ZERO);
                format!("{server} up: {}", known.up)
            }
            2 | 3 if !known.removed => {
                known.weight = self.dice.below(12) as u32;
                self.state.set_weight(server, known.weight);
                format!("{server} weighs {}", known.weight)
            }
            4 if count < 12 => return self.add(),
            5 if !known.removed && !known.ready => {
                known.removed = true;
                assert_eq!(self.state.remove_server(server, Moment::ZERO), Removal::Possible);
                format!("{server} removed")
            }
            _ => String::new(),
        };
        self.story.push(told);
        server
    }

    fn add(&mut self) -> usize {
        let (server, weight) = (self.known.len(), 1 + self.dice.below(8) as u32);
        assert!(self.state.add_server(&another(server, weight, 0), Moment::ZERO));
        set_enabled(&self.state, server, true);
        self.known.push(Server { weight, ready: true, up: true, removed: false });
        self.story.push(format!("{server} added, weighs {weight}"));
        server
    }

    fn weights(&self) -> Vec<u32> {
        self.known.iter().map(|server| if server.takes_part() { server.weight } else { 0 }).collect()
    }

    /// A request that keeps its slot.
    fn send(&mut self, hash: Option<u32>) -> Option<ServerSlot> {
        let random = (self.dice.below(1 << 30) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.state.assign(&PickContext { hash, random, ..ANY }) {
            Assignment::Slot(slot) => {
                assert!(self.known[slot.server()].takes_part(), "to {}: {:?}", slot.server(), self.story);
                Some(slot)
            }
            Assignment::Unavailable => {
                assert_eq!(self.weights().iter().sum::<u32>(), 0, "nobody: {:?}", self.story);
                None
            }
            other => panic!("{other:?}: {:?}", self.story),
        }
    }
}

#[test]
fn turns_follow_the_weights_after_every_change() {
    for (balance, fixed) in [(BalanceSpec::RoundRobin, false), (BalanceSpec::StaticRr, true)] {
        for seed in 1..40 {
            let mut farm = Farm::new(&balance, &HashSpec::default(), seed);
            for _ in 0..40 {
                farm.change(fixed);
                let weights = farm.weights();
                let total: u32 = weights.iter().sum();
                let mut got = vec![0; weights.len()];
                for _ in 0..total * 4 {
                    got[farm.send(None).map_or(0, |slot| slot.server())] += 1;
                }
                for (got, weight) in got.iter().zip(&weights) {
                    let slack = if *weight == 0 { 0 } else { 2 };
                    assert!(u32::abs_diff(*got, weight * 4) <= slack, "{got} for {weight}: {:?}", farm.story);
                }
            }
        }
    }
}

#[test]
fn the_least_loaded_gets_the_next_one_after_every_change() {
    for seed in 1..60 {
        let mut farm = Farm::new(&BalanceSpec::LeastConn, &HashSpec::default(), seed);
        let mut held: Vec<ServerSlot> = Vec::new();
        for _ in 0..60 {
            // Requests keep their server after any change, so servers with requests are not removed.
            held.retain(|slot| farm.known[slot.server()].ready);
            farm.change(false);
            for _ in 0..farm.dice.below(20) {
                if farm.dice.below(3) == 0 && !held.is_empty() {
                    held.swap_remove(farm.dice.below(held.len()));
                }
                let load = |server: usize| held.iter().filter(|slot| slot.server() == server).count() as u32;
                let loads: Vec<u32> = (0..farm.known.len()).map(load).collect();
                let Some(slot) = farm.send(None) else { break };
                let (taken, weights) = (slot.server(), farm.weights());
                for (other, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
                    let fair = loads[taken] * weight <= (loads[other] + 1) * weights[taken];
                    assert!(fair, "{taken} before {other} with {loads:?} and {weights:?}: {:?}", farm.story);
                }
                held.push(slot);
            }
        }
    }
}

const KEYS: u32 = 600;

#[test]
fn no_key_of_a_consistent_hash_moves_but_to_and_from_the_server_that_changed() {
    for function in [None, Some(HashFunction::Crc32)] {
        let hash = HashSpec { method: HashMethod::Consistent, function, ..HashSpec::default() };
        for seed in 1..30 {
            let mut farm = Farm::new(&BalanceSpec::Source, &hash, seed);
            let places = |farm: &mut Farm| -> Vec<Option<usize>> {
                (0..KEYS).map(|key| key.wrapping_mul(2_654_435_761)).map(|key| farm.place(key)).collect()
            };
            let mut before = places(&mut farm);
            for _ in 0..30 {
                let weights = farm.weights();
                let changed = farm.change(false);
                let now = places(&mut farm);
                let (was, is) = (weights.get(changed).copied().unwrap_or(0), farm.weights()[changed]);
                for (old, new) in before.iter().zip(&now).filter(|(old, new)| old != new) {
                    let right = if is > was { *new == Some(changed) } else { *old == Some(changed) };
                    let alone = old.is_none() || new.is_none();
                    assert!(right || alone, "{old:?} became {new:?} as {changed} changed: {:?}", farm.story);
                }
                before = now;
            }
        }
    }
}

impl Farm {
    /// The server of a key, which is the hash, or the random number.
    fn place(&mut self, key: u32) -> Option<usize> {
        match self.state.assign(&PickContext { hash: Some(key), random: u64::from(key) << 32 | u64::from(key), ..ANY })
        {
            Assignment::Slot(slot) => Some(slot.server()),
            _ => None,
        }
    }
}
