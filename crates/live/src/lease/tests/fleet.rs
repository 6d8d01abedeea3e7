//! Several nodes and a store with a delay, compared with one limit that sees all requests at once.

use super::*;
use std::collections::VecDeque;

/// Duration of a run in milliseconds.
const END: usize = 25_000;
/// Duration over which errors are measured.
const WINDOW: usize = 10_000;

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
        let left = ((now + tolerance - self.arrival) / interval).floor();
        Grant::Tokens { count: count as u32, left: left as i64 }
    }
}

/// A node: its requests per second at a time, and the answers on their way.
struct Node<'a> {
    limit: Limit,
    demand: &'a dyn Fn(usize) -> f64,
    due: f64,
    asked: VecDeque<(usize, Ask)>,
    answered: VecDeque<(usize, Ask, Grant)>,
}

/// Numbers of admitted requests up to each millisecond: of the nodes, and of one limit for all.
struct Outcome {
    nodes: Vec<i64>,
    ideal: Vec<i64>,
}

/// Runs nodes whose requests to the store take `delay` milliseconds, half of it before the store has them.
fn run(plan: &LimitPlan, delay: usize, demands: &[&dyn Fn(usize) -> f64]) -> Outcome {
    let number = demands.len() as u32;
    let mut nodes: Vec<Node<'_>> = demands
        .iter()
        .map(|demand| Node {
            limit: limit(plan.clone(), number),
            demand: *demand,
            due: 0.0,
            asked: VecDeque::new(),
            answered: VecDeque::new(),
        })
        .collect();
    let ideal = limit(LimitPlan { lost: LostMode::Local, ..plan.clone() }, 0);
    let (mut store, mut outcome) = (Store::default(), Outcome { nodes: vec![0], ideal: vec![0] });
    for millis in 0..END {
        let (mut by_nodes, mut by_ideal) = (0, 0);
        for (place, node) in nodes.iter_mut().enumerate() {
            while let Some((_, ask, grant)) = node.answered.pop_front_if(|answer| answer.0 <= millis) {
                node.limit.settle(&ask, grant, at(millis as u64));
            }
            node.due += (node.demand)(millis) / 1_000.0;
            let count = node.due as usize;
            node.due -= count as f64;
            by_nodes += admitted(&node.limit, "a", millis as u64, count) as i64;
            by_ideal += admitted(&ideal, "a", millis as u64, count) as i64;
            let mut asks = Vec::new();
            // Nodes are not in step.
            if (millis + 3 * place) % 10 == 0 {
                node.limit.ask_urgent(at(millis as u64), Duration::from_millis(delay as u64), 100, &mut asks);
            }
            if (millis + 37 * place) % 100 == 0 {
                let delay = Duration::from_millis(delay as u64);
                node.limit.ask_due(at(millis as u64), delay, 100, &mut asks);
            }
            node.asked.extend(asks.into_iter().map(|ask| (millis + delay / 2, ask)));
            while let Some((_, ask)) = node.asked.pop_front_if(|ask| ask.0 <= millis) {
                let grant = store.take(&node.limit, delay, millis as f64, &ask);
                node.answered.push_back((millis + delay / 2, ask, grant));
            }
        }
        outcome.nodes.push(outcome.nodes[millis] + by_nodes);
        outcome.ideal.push(outcome.ideal[millis] + by_ideal);
    }
    outcome
}

/// Returns the largest shortage and the largest excess, as parts of what the limit adds in a time. The shortage: fewer requests than
/// one limit for all admits, from the start to a time of ten seconds or more. The excess: more requests than the burst and the rate
/// allow, in any ten seconds.
fn errors(plan: &LimitPlan, outcome: &Outcome) -> [f64; 2] {
    let (mut shortage, mut excess) = (0.0_f64, 0.0_f64);
    let added = |millis: usize| f64::from(plan.rate) * millis as f64 / plan.period.as_millis() as f64;
    for end in WINDOW..=END {
        let missing = (outcome.ideal[end] - outcome.nodes[end]) as f64 / added(end);
        let count = (outcome.nodes[end] - outcome.nodes[end - WINDOW]) as f64;
        shortage = shortage.max(missing);
        excess = excess.max((count - f64::from(plan.burst)) / added(WINDOW) - 1.0);
    }
    [shortage * 100.0, excess * 100.0]
}

/// Requests per second of a node, by millisecond.
type Demand<'a> = &'a dyn Fn(usize) -> f64;

#[test]
fn errors_over_ten_seconds_are_about_one_percent_at_most() {
    let steady = |rate: f64| move |_: usize| rate;
    let waves = |millis: usize| if millis % 7_000 < 3_000 { 900.0 } else { 30.0 };
    let late = |millis: usize| if millis > 12_000 { 600.0 } else { 0.0 };
    let (hundred, twenty, many, few) = (steady(100.0), steady(20.0), steady(5_000.0), steady(333.0));
    let pulses = |millis: usize| if millis % 700 < 10 { 5_000.0 } else { 0.0 };
    let rare = |millis: usize| if millis % 3_000 < 20 { 5_000.0 } else { 0.0 };
    // The largest shortage with a delay of 100 ms, in percent. Pulses are shorter than that.
    let rows: [(&str, u32, u32, f64, Vec<Demand<'_>>); 12] = [
        ("one node", 100, 20, 0.0, vec![&hundred]),
        ("below the limit", 100, 100, 0.0, vec![&twenty, &twenty, &twenty]),
        ("twice the limit", 100, 100, 1.0, vec![&hundred, &hundred]),
        ("far above the limit", 1_000, 1_000, 1.0, vec![&many, &many, &many, &many]),
        ("unequal demand", 1_000, 300, 1.0, vec![&many, &twenty, &few]),
        ("a small burst", 1_000, 10, 1.2, vec![&few, &few, &few, &few]),
        ("waves", 1_000, 1_000, 1.6, vec![&waves, &waves, &waves]),
        ("a node that joins late", 1_000, 500, 1.5, vec![&few, &few, &few, &late]),
        ("many nodes", 1_000, 1_000, 1.0, vec![&few; 10]),
        ("pulses", 100, 20, 100.0, vec![&pulses, &pulses]),
        ("rare pulses", 20, 30, 100.0, vec![&rare, &rare, &rare]),
        ("one in pulses", 1_000, 100, 100.0, vec![&few, &pulses, &few]),
    ];
    for (name, rate, burst, most, demands) in rows {
        let plan = plan(rate, burst);
        for (delay, most) in [(2, if most < 100.0 { 0.5 } else { 100.0 }), (100, most)] {
            let outcome = run(&plan, delay, &demands);
            let [shortage, excess] = errors(&plan, &outcome);
            let found = format!("{name}, delay {delay} ms: {shortage:.3} % fewer, {excess:.3} % more");
            assert!(excess <= 1.0 && shortage <= most, "{found}");
        }
    }
}
