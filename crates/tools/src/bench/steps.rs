//! Order of the measurements: every combination of the sweep, every way, every round. Must never start
//! anything.

use super::scenario::Scenario;
use super::scenario::quantity::Rate;

/// One combination of the sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchStep {
    /// Object size, bytes.
    pub size: u64,
    /// Offered requests per second.
    pub rate: Option<Rate>,
    /// Threads of the proxy.
    pub workers: u32,
    /// Connections of the load.
    pub connections: u32,
}

/// Returns every combination, in the order of the lists: connections vary fastest.
#[must_use]
pub fn steps(scenario: &Scenario) -> Vec<BenchStep> {
    let (load, sweep) = (&scenario.load, &scenario.sweep);
    let sizes = or_one(sweep.sizes.iter().map(|size| size.0).collect(), 0);
    let rates = or_one(sweep.rates.iter().copied().map(Some).collect(), load.rate);
    let workers = or_one(sweep.workers.iter().map(|number| *number.get_ref()).collect(), 1);
    let connections =
        or_one(sweep.connections.iter().map(|number| *number.get_ref()).collect(), *load.connections.get_ref());
    let mut found = Vec::new();
    for &size in &sizes {
        for &rate in &rates {
            for &workers in &workers {
                found.extend(connections.iter().map(|&connections| BenchStep { size, rate, workers, connections }));
            }
        }
    }
    found
}

fn or_one<T>(list: Vec<T>, other: T) -> Vec<T> {
    if list.is_empty() { vec![other] } else { list }
}

/// Reduces a list to the first, the middle and the last entry, for a trial.
pub fn thin<T: Clone>(list: &mut Vec<T>) {
    if list.len() > 3 {
        *list = [0, list.len() / 2, list.len() - 1].map(|at| list[at].clone()).to_vec();
    }
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Round, from 0.
    pub round: u32,
    /// Index of the combination.
    pub step: usize,
    /// Index of the proxy; `None`: the direct way.
    pub proxy: Option<usize>,
}

/// Returns all turns: rounds are the outermost loop, so that drift of the machine affects every combination alike; the
/// direct way is first, followed by the proxies, in reverse order in every other round. The direct way does not depend
/// on the number of workers, and is measured with the first number only.
#[must_use]
pub fn turns(rounds: u32, steps: &[BenchStep], proxies: usize, direct: bool) -> Vec<Measurement> {
    let mut found = Vec::new();
    for round in 0..rounds {
        for (step, each) in steps.iter().enumerate() {
            if direct && steps.first().is_some_and(|first| first.workers == each.workers) {
                found.push(Measurement { round, step, proxy: None });
            }
            let turn = |proxy| Measurement { round, step, proxy: Some(proxy) };
            if round % 2 == 0 {
                found.extend((0..proxies).map(turn));
            } else {
                found.extend((0..proxies).rev().map(turn));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario::read;

    fn scenario(sweep: &str) -> Scenario {
        let text = format!(
            "name = \"a\"\ntitle = \"\"\n[load]\npath = \"/\"\nduration = 1\nconnections = 7\n{sweep}\n\
             [[proxy]]\nname = \"p\"\ncommand = [\"p\"]\n"
        );
        read("a.toml", &text).unwrap().scenario
    }

    #[test]
    fn a_sweep_is_every_combination() {
        assert_eq!(steps(&scenario("")), [BenchStep { size: 0, rate: None, workers: 1, connections: 7 }]);
        assert_eq!(steps(&scenario("rate = 5"))[0].rate, Some(Rate::Absolute(5.0)));
        let all = steps(&scenario("[sweep]\nsizes = [1, 2]\nrates = [3]\nworkers = [1, 2]\nconnections = [4, 5]"));
        let seen: Vec<_> = all.iter().map(|step| (step.size, step.workers, step.connections)).collect();
        assert_eq!(seen, [(1, 1, 4), (1, 1, 5), (1, 2, 4), (1, 2, 5), (2, 1, 4), (2, 1, 5), (2, 2, 4), (2, 2, 5)]);
        assert!(all.iter().all(|step| step.rate == Some(Rate::Absolute(3.0))));
    }

    #[test]
    fn the_order_turns_round_in_every_other_round() {
        let step = BenchStep { size: 0, rate: None, workers: 1, connections: 1 };
        let order: Vec<_> = turns(3, &[step], 2, true).iter().map(|turn| (turn.round, turn.proxy)).collect();
        let expected = [
            (0, None),
            (0, Some(0)),
            (0, Some(1)),
            (1, None),
            (1, Some(1)),
            (1, Some(0)),
            (2, None),
            (2, Some(0)),
            (2, Some(1)),
        ];
        assert_eq!(order, expected);
        assert!(turns(2, &[step], 2, false).iter().all(|turn| turn.proxy.is_some()));
    }

    #[test]
    fn the_direct_way_is_measured_once_for_all_numbers_of_workers() {
        let step = |workers| BenchStep { size: 0, rate: None, workers, connections: 1 };
        let direct: Vec<_> =
            turns(1, &[step(2), step(4)], 1, true).into_iter().filter(|turn| turn.proxy.is_none()).collect();
        assert_eq!(direct, [Measurement { round: 0, step: 0, proxy: None }]);
    }

    #[test]
    fn a_trial_takes_three_of_a_list() {
        let mut list = vec![1, 2, 3, 4, 5];
        thin(&mut list);
        assert_eq!(list, [1, 3, 5]);
        let mut list = vec![1, 2];
        thin(&mut list);
        assert_eq!(list, [1, 2]);
    }
}
