//! What the report reads out of the results: the ways that were measured, the settings in which they were, and the
//! medians of their rounds. What the sizing page needs too is in `bench/figures.rs`. Must never count a round that had a
//! fault.

use super::chart::{COLOURS, Colour};
use super::quantity::{Unit, grouped};
use super::statistics::{self, Spread};
use crate::bench::figures;
use crate::bench::results::{Point, Results, Round};
use crate::load::record::Counts;

/// The most ways of a report; further ones are left out, and it says so.
pub const MOST_WAYS: usize = 16;
/// The most points of a report.
const MOST_POINTS: usize = 4000;
/// The most rounds of a point.
const MOST_ROUNDS: usize = 100;

/// A proxy, or the way without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The proxy's name; nothing without a proxy.
    pub proxy: Option<String>,
    /// What it is called.
    pub label: String,
    /// Its colour, the same everywhere.
    pub colour: Colour,
}

/// What a measurement had in common with those that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Bytes of the object.
    pub size: u64,
    /// Offered requests a second.
    pub rate: Option<f64>,
    /// Threads of the proxy.
    pub workers: u32,
    /// Connections of the load.
    pub connections: u32,
}

impl Setting {
    fn of(point: &Point) -> Self {
        Self { size: point.size, rate: point.rate, workers: point.workers, connections: point.connections }
    }

    /// Whether a point belongs to it. What has no proxy has no workers either.
    pub fn holds(&self, point: &Point) -> bool {
        let own = Self::of(point);
        Self { workers: if point.proxy.is_none() { self.workers } else { own.workers }, ..own } == *self
    }

    /// In words.
    pub fn text(&self) -> String {
        self.words(None)
    }

    /// In words, without what is swept.
    pub fn words(&self, swept: Option<Along>) -> String {
        let plural =
            |count: u32, one: &str| format!("{} {one}{}", grouped(f64::from(count)), if count == 1 { "" } else { "s" });
        let mut words = Vec::new();
        // A scenario that sweeps no size need not know one.
        if swept != Some(Along::Size) && self.size > 0 {
            words.push(format!("{} objects", Unit::Size.show(self.size as f64)));
        }
        if swept != Some(Along::Workers) && self.workers > 0 {
            words.push(plural(self.workers, "worker"));
        }
        if swept != Some(Along::Connections) {
            words.push(plural(self.connections, "connection"));
        }
        if let (Some(rate), true) = (self.rate, swept != Some(Along::Rate)) {
            words.push(format!("{} requests a second offered", grouped(rate)));
        }
        words.join(", ")
    }
}

/// What is varied in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// The size of the object.
    Size,
    /// The rate that is offered.
    Rate,
    /// Threads of the proxy.
    Workers,
    /// Connections of the load.
    Connections,
}

impl Along {
    fn value(self, point: &Point) -> Option<f64> {
        match self {
            Self::Size => Some(point.size as f64),
            Self::Rate => point.rate.filter(|rate| rate.is_finite()),
            Self::Workers => (point.workers > 0 || point.proxy.is_none()).then_some(f64::from(point.workers)),
            Self::Connections => Some(f64::from(point.connections)),
        }
    }

    /// The setting without what is varied.
    fn fixed(self, setting: Setting) -> Setting {
        match self {
            Self::Size => Setting { size: 0, ..setting },
            Self::Rate => Setting { rate: None, ..setting },
            Self::Workers => Setting { workers: 0, ..setting },
            Self::Connections => Setting { connections: 0, ..setting },
        }
    }
}

/// A point with the rounds that count.
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    /// Which of the ways.
    pub way: usize,
    /// As it stands in the results.
    pub point: &'a Point,
    /// The rounds without a fault, in their order.
    pub rounds: Vec<&'a Round>,
}

impl<'a> Measured<'a> {
    /// The median of a figure over the rounds.
    pub fn spread(&self, figure: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| figure(round)))
    }

    /// The round whose requests a second are closest to the median.
    pub fn middle(&self) -> Option<usize> {
        let rates: Vec<f64> = self.rounds.iter().map(|round| rate(round).unwrap_or(f64::NAN)).collect();
        statistics::nearest_to_median(&rates)
    }

    /// The median of each percentile over the rounds, rising; of the reference client where asked for. They end where
    /// most rounds had no slower answer: behind that a percentile repeats the slowest one.
    pub fn percentiles(&self, reference: bool) -> Vec<(f64, f64)> {
        let of = |round: &'a Round| if reference { &round.reference } else { &round.latency };
        let mut named: Vec<f64> = self.rounds.iter().flat_map(|round| of(round).iter().map(|row| row.0)).collect();
        named.retain(|percentile| percentile.is_finite());
        named.sort_by(f64::total_cmp);
        named.dedup();
        let median = |percentile: f64| {
            let rounds = || self.rounds.iter().map(|round| of(round)).filter(|rows| !rows.is_empty());
            // A round that has ended counts with its slowest answer still, or the line would fall.
            let values = Spread::of(rounds().filter_map(|rows| lookup(rows, percentile)))?;
            let going_on = rounds().filter(|rows| lookup(told(rows), percentile).is_some()).count();
            (going_on * 2 > rounds().count()).then_some((percentile, values.median))
        };
        statistics::evenly(&named, 1000).into_iter().filter_map(median).collect()
    }
}

/// The whole of it.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    /// As it was read.
    pub results: &'a Results,
    /// The proxies in the order of the scenario, behind them the way without one if it was measured.
    pub ways: Vec<Way>,
    /// Every point, in the order of the results.
    pub points: Vec<Measured<'a>>,
    /// Settings, in the order in which they first occur.
    pub settings: Vec<Setting>,
}

impl<'a> Summary<'a> {
    /// Reads the results.
    pub fn of(results: &'a Results) -> Self {
        let ways = ways(results);
        let measured = |point: &'a Point| {
            let way = ways.iter().position(|way| way.proxy == point.proxy)?;
            let rounds = figures::counted(point).take(MOST_ROUNDS).collect();
            Some(Measured { way, point, rounds })
        };
        let points: Vec<_> = results.points.iter().take(MOST_POINTS).filter_map(measured).collect();
        let mut settings: Vec<Setting> = Vec::new();
        // Those of proxies first: what has no proxy joins any number of workers.
        for proxied in [true, false] {
            for each in points.iter().filter(|each| each.point.proxy.is_some() == proxied) {
                let known = settings.iter().any(|setting| setting.holds(each.point));
                if !known && !each.rounds.is_empty() {
                    settings.push(Setting::of(each.point));
                }
            }
        }
        Self { results, ways, points, settings }
    }

    /// What was measured in a setting, in the order of the ways.
    pub fn within(&self, setting: &Setting) -> Vec<&Measured<'a>> {
        let mut found: Vec<_> = self.points.iter().filter(|each| setting.holds(each.point)).collect();
        found.retain(|each| !each.rounds.is_empty());
        found.sort_by_key(|each| each.way);
        found.dedup_by_key(|each| each.way);
        found
    }

    /// The way of a measurement.
    pub fn way(&self, measured: &Measured<'_>) -> &Way {
        &self.ways[measured.way]
    }

    /// The sweeps with at least so many values, those with the most values first.
    pub fn sweeps(&self, along: Along, least: usize) -> Vec<Sweep<'_>> {
        let mut sweeps: Vec<Sweep<'_>> = Vec::new();
        for proxied in [true, false] {
            for each in self.points.iter().filter(|each| each.point.proxy.is_some() == proxied) {
                let (Some(value), false) = (along.value(each.point), each.rounds.is_empty()) else { continue };
                let own = along.fixed(Setting::of(each.point));
                let same = |sweep: &Setting| match proxied {
                    true => own == *sweep,
                    false => Setting { workers: sweep.workers, ..own } == *sweep,
                };
                let mut joined = false;
                for sweep in sweeps.iter_mut().filter(|sweep| same(&sweep.fixed)) {
                    sweep.steps.push((value, each));
                    joined = true;
                }
                if !joined && sweeps.len() < MOST_POINTS {
                    sweeps.push(Sweep { fixed: own, steps: vec![(value, each)] });
                }
            }
        }
        sweeps.iter_mut().for_each(|sweep| sweep.steps.sort_by(|a, b| a.0.total_cmp(&b.0)));
        sweeps.retain(|sweep| sweep.values().len() >= least);
        sweeps.sort_by_key(|sweep| std::cmp::Reverse(sweep.values().len()));
        sweeps
    }
}

/// Measurements that differ in one thing.
#[derive(Debug, Clone)]
pub struct Sweep<'a> {
    /// What they have in common.
    pub fixed: Setting,
    /// What was varied, rising, and what was measured there.
    pub steps: Vec<(f64, &'a Measured<'a>)>,
}

impl Sweep<'_> {
    /// The values of proxies (or, where there is none, of the way without), rising, each once.
    pub fn values(&self) -> Vec<f64> {
        let proxied = self.steps.iter().any(|(_, each)| each.point.proxy.is_some());
        let steps = self.steps.iter().filter(|(_, each)| each.point.proxy.is_some() || !proxied);
        let mut values: Vec<f64> = steps.map(|(value, _)| *value).collect();
        values.dedup();
        values
    }

    /// The steps of one of the ways.
    pub fn of_way(&self, way: usize) -> impl Iterator<Item = (f64, &Measured<'_>)> {
        self.steps.iter().filter(move |(_, each)| each.way == way).map(|(value, each)| (*value, *each))
    }
}

fn ways(results: &Results) -> Vec<Way> {
    let mut names: Vec<&str> = Vec::new();
    let named = results.proxies.iter().map(|proxy| proxy.name.as_str());
    for name in named.chain(results.points.iter().filter_map(|point| point.proxy.as_deref())) {
        if names.len() < MOST_WAYS && !names.contains(&name) {
            names.push(name);
        }
    }
    let colours = colours(&names);
    let proxies = names.into_iter().zip(colours).map(|(name, colour)| Way {
        proxy: Some(name.to_owned()),
        label: name.chars().take(60).collect(),
        colour: Colour::Proxy(colour),
    });
    let direct = results.points.iter().any(|point| point.proxy.is_none());
    let direct = direct.then(|| Way { proxy: None, label: "direct".to_owned(), colour: Colour::Direct });
    proxies.chain(direct).collect()
}

/// The programs whose colours are the same in every report, whichever of them a run compares.
const KNOWN: [&str; COLOURS] =
    ["weir", "haproxy", "haproxy-2", "nginx", "envoy", "baseline", "weir-without", "haproxy-without"];

/// The colour of each name: that of a known program, or the last one that is free.
fn colours(names: &[&str]) -> Vec<usize> {
    let known = |name: &str| KNOWN.iter().position(|known| *known == name);
    let mut taken: Vec<usize> = names.iter().filter_map(|name| known(name)).collect();
    let free = |taken: &mut Vec<usize>| {
        // With all of them taken, numbers beyond repeat colours with other shapes.
        let colour = (0..COLOURS).rev().chain(COLOURS..).find(|colour| !taken.contains(colour)).unwrap_or(COLOURS);
        taken.push(colour);
        colour
    };
    names.iter().map(|name| known(name).unwrap_or_else(|| free(&mut taken))).collect()
}

/// Complete answers a second over a round.
pub fn rate(round: &Round) -> Option<f64> {
    statistics::ratio(round.total.answers as f64, round.total.length)
}

/// The samples of a round that say something: a fragment at its end, shorter than half of the longest, is noise.
pub fn seconds(round: &Round) -> impl Iterator<Item = &Counts> {
    let longest =
        round.seconds.iter().map(|second| second.length).filter(|length| length.is_finite()).fold(0.0, f64::max);
    round.seconds.iter().filter(move |second| second.length > 0.0 && second.length * 2.0 >= longest)
}

/// Gigabits a second received over a round.
pub fn gigabits(round: &Round) -> Option<f64> {
    statistics::ratio(round.total.received as f64 * 8.0 / 1e9, round.total.length)
}

/// A percentile of the time to the last byte, microseconds.
pub fn percentile(round: &Round, percentile: f64) -> Option<f64> {
    lookup(&round.latency, percentile)
}

/// The percentiles up to the first one that is the slowest answer.
fn told(rows: &[(f64, f64)]) -> &[(f64, f64)] {
    let slowest = rows.iter().map(|row| row.1).fold(f64::NEG_INFINITY, f64::max);
    let first = rows.iter().position(|row| row.1 >= slowest);
    first.map_or(rows, |first| &rows[..=first])
}

fn lookup(rows: &[(f64, f64)], percentile: f64) -> Option<f64> {
    rows.iter().find(|row| (row.0 - percentile).abs() < 1e-9).map(|row| row.1).filter(|value| value.is_finite())
}

/// CPU of the proxy a complete answer, microseconds.
pub fn cpu(round: &Round) -> Option<f64> {
    let sum = round.threads.iter().map(|thread| thread.user + thread.system).sum();
    statistics::ratio(sum, round.total.answers as f64).filter(|cpu| *cpu > 0.0)
}

/// Anonymous memory of the proxy at the end, bytes; nothing where none was read.
pub fn memory(round: &Round) -> Option<f64> {
    (round.memory.anonymous > 0).then_some(round.memory.anonymous as f64)
}

/// Packets a complete answer, received and sent together; nothing where none was counted.
pub fn packets(round: &Round) -> Option<f64> {
    let sum = round.packets.0 as f64 + round.packets.1 as f64;
    statistics::ratio(sum, round.total.answers as f64).filter(|packets| *packets > 0.0)
}

/// Failed requests and connections; answers with a bad status are told apart.
pub fn errors(round: &Round) -> f64 {
    let total = &round.total;
    [total.error_connect, total.error_timeout, total.error_reset, total.error_protocol].iter().map(|n| *n as f64).sum()
}
