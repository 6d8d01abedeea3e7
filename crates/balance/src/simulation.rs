//! Compares `balance ewma` with `leastconn` and `random`: simulated servers of which one is temporarily slow, requests
//! that arrive evenly and in bursts, one seed. Must never read a clock.

use super::*;
use std::collections::BinaryHeap;

const SERVERS: usize = 8;
/// Number of requests that a server processes concurrently; more wait inside it.
const PARALLEL: usize = 8;
const MEAN_NANOS: f64 = 10e6;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uniform number from 0 to 1, never 0.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -self.share().ln() * mean
    }
}

/// The results of a run.
#[derive(Debug)]
struct SimulationResult {
    mean_millis: f64,
    p99_millis: f64,
    /// Requests sent to the slow server while it was slow.
    to_slow: usize,
    /// The maximum number of requests of one burst at a server.
    most_of_burst: u32,
}

/// The arrival pattern of requests.
#[derive(Clone, Copy)]
enum Traffic {
    Even,
    /// Bursts of this number of requests.
    Bursts(usize),
}

/// Runs 20 simulated seconds; from 5 to 15 s the first server is `slowness` times as slow as the others.
fn run(spec: &BalanceSpec, traffic: Traffic, slowness: f64) -> SimulationResult {
    let mut dice = Dice(7);
    let (_, mut state) = find(spec, &HashSpec::default());
    let mut loads = Loads::new(SERVERS);
    let candidates: Vec<Candidate> =
        (0..SERVERS).map(|server| Candidate { server, weight: 1, scale: 1, id: server as u32 + 1, place: 0 }).collect();
    state.rebuild(&candidates, SERVERS);
    for server in 0..SERVERS {
        state.on_load(server, Change { load: loads[server], turned: true });
    }
    // When each processing slot of a server becomes free.
    let mut free = [[0_u64; PARALLEL]; SERVERS];
    let mut running: BinaryHeap<(std::cmp::Reverse<u64>, u64, usize)> = BinaryHeap::new();
    let (mut now, mut took, mut to_slow, mut most_of_burst) = (0_u64, Vec::new(), 0, 0);
    // A load of 60 % of the capacity of all servers.
    let gap = MEAN_NANOS / (SERVERS * PARALLEL) as f64 / 0.6;
    while now < 20_000_000_000 {
        let size = if let Traffic::Bursts(size) = traffic { size } else { 1 };
        now += dice.exponential(gap * size as f64) as u64;
        while let Some(&(std::cmp::Reverse(end), begun, server)) = running.peek().filter(|next| next.0.0 <= now) {
            running.pop();
            let load = Load { served: loads[server].served - 1, ..loads[server] };
            loads[server] = load;
            state.on_load(server, Change { load, turned: false });
            state.on_answer(server, Duration::from_nanos(end - begun), Moment::from_nanos(end));
            took.push(end - begun);
        }
        let is_slow = (5_000_000_000..15_000_000_000).contains(&now);
        let mut of_burst = [0; SERVERS];
        for _ in 0..size {
            let pick = Pick { random: dice.next(), requests: 1, now: Moment::from_nanos(now), ..Pick::default() };
            let server = state.pick(&pick, &loads).unwrap_or_default();
            let load = Load { served: loads[server].served + 1, ..loads[server] };
            loads[server] = load;
            state.on_load(server, Change { load, turned: false });
            let slow = server == 0 && is_slow;
            to_slow += usize::from(slow);
            of_burst[server] += 1;
            let work = dice.exponential(MEAN_NANOS * if slow { slowness } else { 1.0 }) as u64;
            let place = free[server].iter_mut().min();
            let Some(place) = place else { continue };
            *place = (*place).max(now) + work;
            running.push((std::cmp::Reverse(*place), now, server));
        }
        most_of_burst = most_of_burst.max(of_burst.into_iter().max().unwrap_or(0));
    }
    took.sort_unstable();
    let mean_millis = took.iter().map(|nanos| *nanos as f64).sum::<f64>() / took.len() as f64 / 1e6;
    SimulationResult { mean_millis, p99_millis: took[took.len() * 99 / 100] as f64 / 1e6, to_slow, most_of_burst }
}

const EWMA: BalanceSpec = BalanceSpec::Ewma { decay: 10_000 };
const RANDOM: BalanceSpec = BalanceSpec::Random { draws: 2 };

#[test]
fn a_slow_server_costs_least_with_ewma() {
    for traffic in [Traffic::Even, Traffic::Bursts(40)] {
        let [ewma, leastconn, random] = [EWMA, BalanceSpec::LeastConn, RANDOM].map(|spec| run(&spec, traffic, 20.0));
        let all = format!("ewma {ewma:?}, leastconn {leastconn:?}, random {random:?}");
        println!("{all}");
        assert!(ewma.to_slow * 2 < leastconn.to_slow && ewma.to_slow * 2 < random.to_slow, "{all}");
        assert!(ewma.mean_millis < leastconn.mean_millis && ewma.mean_millis < random.mean_millis, "{all}");
        assert!(ewma.p99_millis < leastconn.p99_millis && ewma.p99_millis < random.p99_millis, "{all}");
    }
}

#[test]
fn a_burst_is_spread() {
    let [ewma, random] = [EWMA, RANDOM].map(|spec| run(&spec, Traffic::Bursts(80), 1.0));
    // Ten would be even; no server gets the whole burst because it was the fastest one just before.
    assert!(ewma.most_of_burst <= 40, "{ewma:?}");
    assert!(ewma.mean_millis < random.mean_millis * 1.25, "{ewma:?} {random:?}");
}
