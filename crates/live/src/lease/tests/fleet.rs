//! Several nodes and a store with a delay, compared with one limit that sees all requests at once.

use super::*;
use std::collections::VecDeque;

/// Duration of a run in milliseconds.
const END: usize = 25_000;
/// Duration over which errors are measured.
const WINDOW: usize = 10_000;
/// How often the task of a node runs.
const TICK: usize = 10;
/// Maximum delay by chance.
const LATEST: usize = 9;
const SEEDS: u64 = 4;

/// A store with one key, in milliseconds of one clock.
#[derive(Default)]
struct Store {
    arrival: f64,
}

impl Store {
    fn take(&mut self, limit: &Limit, delay: usize, now: f64, ask: &Ask) -> Grant {
        let (spent, want) = (ask.spent, ask.want);
        let interval = limit.plan.interval() as f64 / 1e6;
        let tolerance = interval * f64::from(limit.plan.burst);
        let advance = interval * f64::from(limit.advance(Duration::from_millis(delay as u64)));
        if spent > 0 {
            self.arrival = self.arrival.max(now - ask.age.as_secs_f64() * 1e3 - delay as f64 / 2.0);
        }
        self.arrival += spent as f64 * interval;
        let free = ((now + tolerance + advance - self.arrival.max(now)) / interval).floor();
        let count = free.clamp(0.0, want.into());
        if count > 0.0 {
            self.arrival = self.arrival.max(now) + count * interval;
        }
        let left = ((now + tolerance - self.arrival.max(now)) / interval).floor();
        Grant::Tokens { count: count as u32, left: left as i64 }
    }
}

/// A node: its requests per second at a time, when its task runs, and what is on its way.
struct Node<'a> {
    limit: Limit,
    demand: Demand<'a>,
    due: f64,
    tick: usize,
    refresh: usize,
    asked: VecDeque<(usize, Ask)>,
    answered: VecDeque<(usize, (Ask, Grant))>,
}

/// Requests per second of a node, by millisecond.
type Demand<'a> = &'a dyn Fn(usize) -> f64;

impl Node<'_> {
    /// Returns the number of requests in a millisecond.
    fn requests(&mut self, millis: usize) -> usize {
        self.due += (self.demand)(millis) / 1_000.0;
        let count = self.due as usize;
        self.due -= count as f64;
        count
    }

    /// Requests what the task would request.
    fn ask(&mut self, millis: usize, delay: Duration) -> Vec<Ask> {
        let (now, mut asks) = (at(millis as u64), Vec::new());
        if millis % TICK == self.tick {
            self.limit.ask_urgent(now, delay, 100, &mut asks);
            if millis >= self.refresh {
                self.refresh = millis + REFRESH.as_millis() as usize;
                self.limit.ask_due(now, delay, 100, &mut asks);
            }
        }
        asks
    }
}

/// Adds an element that is not before the last one, as on a connection.
fn send<T>(queue: &mut VecDeque<(usize, T)>, millis: usize, value: T) {
    let last = queue.back().map_or(0, |(last, _)| *last);
    queue.push_back((last.max(millis), value));
}

/// Numbers below a bound, from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Numbers of admitted requests up to each millisecond: of the nodes, and of one limit for all.
struct Outcome {
    nodes: Vec<i64>,
    ideal: Vec<i64>,
}

/// Runs nodes whose requests to the store take `delay` milliseconds, half of it before the store has them, and some milliseconds more
/// by chance. Their tasks run at times of their own.
fn run(plan: &LimitPlan, delay: usize, demands: &[Demand<'_>], seed: u64) -> Outcome {
    let number = demands.len() as u32;
    let mut numbers = Numbers(seed);
    let mut node = |demand| Node {
        limit: limit(plan.clone(), number),
        demand,
        due: 0.0,
        tick: numbers.below(TICK),
        refresh: numbers.below(100),
        asked: VecDeque::new(),
        answered: VecDeque::new(),
    };
    let mut nodes: Vec<Node<'_>> = demands.iter().map(|demand| node(*demand)).collect();
    let ideal = limit(LimitPlan { lost: LostMode::Local, ..plan.clone() }, 0);
    let (mut store, mut outcome) = (Store::default(), Outcome { nodes: vec![0], ideal: vec![0] });
    let mut late = |delay: usize| delay / 2 + numbers.below(1 + delay.min(LATEST));
    for millis in 0..END {
        let (mut by_nodes, mut by_ideal) = (0, 0);
        for node in &mut nodes {
            while let Some((_, (ask, grant))) = node.answered.pop_front_if(|answer| answer.0 <= millis) {
                node.limit.settle(&ask, grant, at(millis as u64));
            }
            let count = node.requests(millis);
            by_nodes += admitted(&node.limit, "a", millis as u64, count) as i64;
            by_ideal += admitted(&ideal, "a", millis as u64, count) as i64;
            for ask in node.ask(millis, Duration::from_millis(delay as u64)) {
                send(&mut node.asked, millis + late(delay), ask);
            }
            while let Some((_, ask)) = node.asked.pop_front_if(|ask| ask.0 <= millis) {
                let grant = store.take(&node.limit, delay, millis as f64, &ask);
                send(&mut node.answered, millis + late(delay), (ask, grant));
            }
        }
        outcome.nodes.push(outcome.nodes[millis] + by_nodes);
        outcome.ideal.push(outcome.ideal[millis] + by_ideal);
    }
    outcome
}

/// Returns the largest shortage and the largest excess in ten seconds, in percent of what the limit adds. The shortage: fewer requests
/// than one limit for all admits; those that were admitted before it would have admitted them do not count. The excess: more requests
/// than the burst and the rate allow.
fn errors(plan: &LimitPlan, outcome: &Outcome) -> [f64; 2] {
    let (mut shortage, mut excess) = (0, 0);
    let missing = |millis: usize| outcome.ideal[millis] - outcome.nodes[millis];
    let added = i64::from(plan.rate) * WINDOW as i64 / plan.period.as_millis() as i64;
    for end in WINDOW..=END {
        shortage = shortage.max(missing(end) - missing(end - WINDOW).max(0));
        excess = excess.max(outcome.nodes[end] - outcome.nodes[end - WINDOW] - i64::from(plan.burst) - added);
    }
    [shortage, excess].map(|count| count as f64 * 100.0 / added as f64)
}

/// Largest shortage of demand that is shorter than the delay of the store, which is documented, and of demand that returns often.
const PULSES: f64 = 100.0;
const OFTEN: f64 = 4.0;

#[test]
fn errors_over_ten_seconds_are_one_percent_at_most() {
    let steady = |rate: f64| move |_: usize| rate;
    let waves = |millis: usize| if millis % 7_000 < 3_000 { 900.0 } else { 30.0 };
    let often = |millis: usize| if millis % 2_000 < 1_000 { 900.0 } else { 30.0 };
    let late = |millis: usize| if millis > 12_000 { 600.0 } else { 0.0 };
    let grows = |millis: usize| millis as f64 * 0.036;
    let (hundred, twenty, many, few) = (steady(100.0), steady(20.0), steady(5_000.0), steady(333.0));
    let (almost, thousand) = (steady(480.0), steady(1_000.0));
    let pulses = |millis: usize| if millis % 700 < 10 { 5_000.0 } else { 0.0 };
    let rare = |millis: usize| if millis % 3_000 < 20 { 5_000.0 } else { 0.0 };
    // The largest shortage with a delay of 100 ms, in percent.
    let rows: [(&str, u32, u32, f64, Vec<Demand<'_>>); 17] = [
        ("one node", 100, 20, 0.0, vec![&hundred]),
        ("below the limit", 100, 100, 0.0, vec![&twenty, &twenty, &twenty]),
        ("almost the limit", 1_000, 100, 1.0, vec![&almost, &almost]),
        ("twice the limit", 100, 100, 1.0, vec![&hundred, &hundred]),
        ("twice a larger limit", 1_000, 100, 1.0, vec![&thousand, &thousand]),
        ("far above the limit", 1_000, 1_000, 1.0, vec![&many, &many, &many, &many]),
        ("unequal demand", 1_000, 300, 1.0, vec![&many, &twenty, &few]),
        ("a small burst", 1_000, 10, 1.0, vec![&few, &few, &few, &few]),
        ("waves", 1_000, 1_000, 1.0, vec![&waves, &waves, &waves]),
        ("a node that joins late", 1_000, 500, 1.0, vec![&few, &few, &few, &late]),
        ("demand that grows", 1_000, 300, 1.0, vec![&grows, &grows, &grows]),
        ("many nodes", 1_000, 1_000, 1.0, vec![&few; 10]),
        ("more nodes than a burst", 1_000, 20, 1.0, vec![&few; 30]),
        ("waves of a second", 1_000, 300, OFTEN, vec![&often, &often, &often]),
        ("pulses", 100, 20, PULSES, vec![&pulses, &pulses]),
        ("rare pulses", 20, 30, PULSES, vec![&rare, &rare, &rare]),
        ("one in pulses", 1_000, 100, PULSES, vec![&few, &pulses, &few]),
    ];
    for (name, rate, burst, most, demands) in rows {
        let plan = plan(rate, burst);
        for (delay, most) in [(2, if most < PULSES { most.min(1.0) } else { most }), (100, most)] {
            for seed in 0..SEEDS {
                let outcome = run(&plan, delay, &demands, seed);
                let [shortage, excess] = errors(&plan, &outcome);
                let found = format!("{name}, delay {delay} ms, seed {seed}: {shortage:.3} % fewer, {excess:.3} % more");
                assert!(excess <= 1.0 && shortage <= most, "{found}");
            }
        }
    }
}
