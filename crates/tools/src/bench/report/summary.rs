//! The report's view of the results: the measured ways, their settings, and the medians of their rounds. Figures shared
//! with the sizing page are in `bench/figures.rs`. Must never count a round with a fault.

use super::chart::{COLOURS, Colour};
use super::quantity::{Unit, grouped};
use super::statistics::{self, Spread};
use crate::bench::figures;
use crate::bench::results::{Point, Results, Round};
use crate::load::record::Counts;

/// Maximum number of ways of a report; further ones are left out, and the report mentions it.
pub const MOST_WAYS: usize = 16;
/// Maximum number of points of a report.
const MOST_POINTS: usize = 4000;
/// Maximum number of rounds of a point.
const MOST_ROUNDS: usize = 100;

/// A proxy, or the direct way without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender {
    /// The proxy's name; `None` without a proxy.
    pub proxy: Option<String>,
    /// Name in the report.
    pub label: String,
    /// Colour, the same in all charts.
    pub colour: Colour,
}

/// Common parameters of the measurements that are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Size of the object, in bytes.
    pub size: u64,
    /// Offered requests per second.
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

    /// Whether a point belongs to it. Workers are ignored for the direct way.
    pub fn holds(&self, point: &Point) -> bool {
        let own = Self::of(point);
        Self { workers: if point.proxy.is_none() { self.workers } else { own.workers }, ..own } == *self
    }

    /// Returns a description in words.
    pub fn text(&self) -> String {
        self.words(None)
    }

    /// Returns a description in words, without the swept parameter.
    pub fn words(&self, swept: Option<SweepParameter>) -> String {
        let plural =
            |count: u32, one: &str| format!("{} {one}{}", grouped(f64::from(count)), if count == 1 { "" } else { "s" });
        let mut words = Vec::new();
        // A scenario without a sweep of sizes may have no size.
        if swept != Some(SweepParameter::Size) && self.size > 0 {
            words.push(format!("{} objects", Unit::Size.show(self.size as f64)));
        }
        if swept != Some(SweepParameter::Workers) && self.workers > 0 {
            words.push(plural(self.workers, "worker"));
        }
        if swept != Some(SweepParameter::Connections) {
            words.push(plural(self.connections, "connection"));
        }
        if let (Some(rate), true) = (self.rate, swept != Some(SweepParameter::Rate)) {
            words.push(format!("{} requests a second offered", grouped(rate)));
        }
        words.join(", ")
    }
}

/// Parameter of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepParameter {
    /// Size of the object.
    Size,
    /// Offered rate.
    Rate,
    /// Threads of the proxy.
    Workers,
    /// Connections of the load.
    Connections,
}

impl SweepParameter {
    fn value(self, point: &Point) -> Option<f64> {
        match self {
            Self::Size => Some(point.size as f64),
            Self::Rate => point.rate.filter(|rate| rate.is_finite()),
            Self::Workers => (point.workers > 0 || point.proxy.is_none()).then_some(f64::from(point.workers)),
            Self::Connections => Some(f64::from(point.connections)),
        }
    }

    /// Returns the setting without the swept parameter.
    fn fixed(self, setting: Setting) -> Setting {
        match self {
            Self::Size => Setting { size: 0, ..setting },
            Self::Rate => Setting { rate: None, ..setting },
            Self::Workers => Setting { workers: 0, ..setting },
            Self::Connections => Setting { connections: 0, ..setting },
        }
    }
}

/// A point with its valid rounds.
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    /// Index of the way.
    pub way: usize,
    /// The point in the results.
    pub point: &'a Point,
    /// Rounds without a fault, in their order.
    pub rounds: Vec<&'a Round>,
}

impl<'a> Measured<'a> {
    /// Returns the spread of a figure over the rounds.
    pub fn spread(&self, figure: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| figure(round)))
    }

    /// Returns the index of the round whose requests per second are closest to the median.
    pub fn middle(&self) -> Option<usize> {
        let rates: Vec<f64> = self.rounds.iter().map(|round| rate(round).unwrap_or(f64::NAN)).collect();
        statistics::nearest_to_median(&rates)
    }

    /// Returns the median of each percentile over the rounds, ascending; of the reference client if `reference` is set.
    /// They end where most rounds had no slower response: further percentiles would repeat the slowest one.
    pub fn percentiles(&self, reference: bool) -> Vec<(f64, f64)> {
        let of = |round: &'a Round| if reference { &round.reference } else { &round.latency };
        let mut named: Vec<f64> = self.rounds.iter().flat_map(|round| of(round).iter().map(|row| row.0)).collect();
        named.retain(|percentile| percentile.is_finite());
        named.sort_by(f64::total_cmp);
        named.dedup();
        let median = |percentile: f64| {
            let rounds = || self.rounds.iter().map(|round| of(round)).filter(|rows| !rows.is_empty());
            // A round that has ended still contributes its slowest response, or the line would fall.
            let values = Spread::of(rounds().filter_map(|rows| lookup(rows, percentile)))?;
            let going_on = rounds().filter(|rows| lookup(shown_percentiles(rows), percentile).is_some()).count();
            (going_on * 2 > rounds().count()).then_some((percentile, values.median))
        };
        statistics::evenly(&named, 1000).into_iter().filter_map(median).collect()
    }
}

/// Summary of the results.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    pub results: &'a Results,
    /// The proxies in the order of the scenario, followed by the direct way if it was measured.
    pub ways: Vec<Contender>,
    /// All points, in the order of the results.
    pub points: Vec<Measured<'a>>,
    /// Settings, in the order of their first occurrence.
    pub settings: Vec<Setting>,
}

impl<'a> Summary<'a> {
    /// Summarizes the results.
    pub fn of(results: &'a Results) -> Self {
        let ways = ways(results);
        let measured = |point: &'a Point| {
            let way = ways.iter().position(|way| way.proxy == point.proxy)?;
            let rounds = figures::counted(point).take(MOST_ROUNDS).collect();
            Some(Measured { way, point, rounds })
        };
        let points: Vec<_> = results.points.iter().take(MOST_POINTS).filter_map(measured).collect();
        let mut settings: Vec<Setting> = Vec::new();
        // Points of proxies first: the direct way matches any number of workers.
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

    /// Returns the measurements of a setting, in the order of the ways.
    pub fn within(&self, setting: &Setting) -> Vec<&Measured<'a>> {
        let mut found: Vec<_> = self.points.iter().filter(|each| setting.holds(each.point)).collect();
        found.retain(|each| !each.rounds.is_empty());
        found.sort_by_key(|each| each.way);
        found.dedup_by_key(|each| each.way);
        found
    }

    /// Returns the way of a measurement.
    pub fn way(&self, measured: &Measured<'_>) -> &Contender {
        &self.ways[measured.way]
    }

    /// Returns the sweeps with at least `least` values, those with the most values first.
    pub fn sweeps(&self, along: SweepParameter, least: usize) -> Vec<Sweep<'_>> {
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

/// Measurements that differ in one parameter.
#[derive(Debug, Clone)]
pub struct Sweep<'a> {
    /// Common parameters.
    pub fixed: Setting,
    /// Values of the swept parameter, ascending, with their measurements.
    pub steps: Vec<(f64, &'a Measured<'a>)>,
}

impl Sweep<'_> {
    /// Returns the values of proxies (or of the direct way if there is no proxy), ascending and without duplicates.
    pub fn values(&self) -> Vec<f64> {
        let proxied = self.steps.iter().any(|(_, each)| each.point.proxy.is_some());
        let steps = self.steps.iter().filter(|(_, each)| each.point.proxy.is_some() || !proxied);
        let mut values: Vec<f64> = steps.map(|(value, _)| *value).collect();
        values.dedup();
        values
    }

    /// Returns the steps of one of the ways.
    pub fn of_way(&self, way: usize) -> impl Iterator<Item = (f64, &Measured<'_>)> {
        self.steps.iter().filter(move |(_, each)| each.way == way).map(|(value, each)| (*value, *each))
    }
}

fn ways(results: &Results) -> Vec<Contender> {
    let mut names: Vec<&str> = Vec::new();
    let named = results.proxies.iter().map(|proxy| proxy.name.as_str());
    for name in named.chain(results.points.iter().filter_map(|point| point.proxy.as_deref())) {
        if names.len() < MOST_WAYS && !names.contains(&name) {
            names.push(name);
        }
    }
    let colours = colours(&names);
    let proxies = names.into_iter().zip(colours).map(|(name, colour)| Contender {
        proxy: Some(name.to_owned()),
        label: name.chars().take(60).collect(),
        colour: Colour::Proxy(colour),
    });
    let direct = results.points.iter().any(|point| point.proxy.is_none());
    let direct = direct.then(|| Contender { proxy: None, label: "direct".to_owned(), colour: Colour::Direct });
    proxies.chain(direct).collect()
}

/// Programs that have the same colour in every report.
const KNOWN: [&str; COLOURS] =
    ["weir", "haproxy", "haproxy-2", "nginx", "envoy", "baseline", "weir-without", "haproxy-without"];

/// Returns the colour of each name: that of a known program, or the last free one.
fn colours(names: &[&str]) -> Vec<usize> {
    let known = |name: &str| KNOWN.iter().position(|known| *known == name);
    let mut taken: Vec<usize> = names.iter().filter_map(|name| known(name)).collect();
    let free = |taken: &mut Vec<usize>| {
        // When all are taken, numbers beyond repeat colours with other shapes.
        let colour = (0..COLOURS).rev().chain(COLOURS..).find(|colour| !taken.contains(colour)).unwrap_or(COLOURS);
        taken.push(colour);
        colour
    };
    names.iter().map(|name| known(name).unwrap_or_else(|| free(&mut taken))).collect()
}

/// Returns complete responses per second over a round.
pub fn rate(round: &Round) -> Option<f64> {
    statistics::ratio(round.total.answers as f64, round.total.length)
}

/// Returns the relevant samples of a round: a fragment at its end, shorter than half of the longest, is noise.
pub fn seconds(round: &Round) -> impl Iterator<Item = &Counts> {
    let longest =
        round.seconds.iter().map(|second| second.length).filter(|length| length.is_finite()).fold(0.0, f64::max);
    round.seconds.iter().filter(move |second| second.length > 0.0 && second.length * 2.0 >= longest)
}

/// Returns gigabits per second received over a round.
pub fn gigabits(round: &Round) -> Option<f64> {
    statistics::ratio(round.total.received as f64 * 8.0 / 1e9, round.total.length)
}

/// Returns a percentile of the time to the last byte, in microseconds.
pub fn percentile(round: &Round, percentile: f64) -> Option<f64> {
    lookup(&round.latency, percentile)
}

/// Returns the percentiles up to the first one that is the slowest response.
fn shown_percentiles(rows: &[(f64, f64)]) -> &[(f64, f64)] {
    let slowest = rows.iter().map(|row| row.1).fold(f64::NEG_INFINITY, f64::max);
    let first = rows.iter().position(|row| row.1 >= slowest);
    first.map_or(rows, |first| &rows[..=first])
}

fn lookup(rows: &[(f64, f64)], percentile: f64) -> Option<f64> {
    rows.iter().find(|row| (row.0 - percentile).abs() < 1e-9).map(|row| row.1).filter(|value| value.is_finite())
}

/// Returns the CPU time of the proxy per complete response, in microseconds.
pub fn cpu(round: &Round) -> Option<f64> {
    let sum = round.threads.iter().map(|thread| thread.user + thread.system).sum();
    statistics::ratio(sum, round.total.answers as f64).filter(|cpu| *cpu > 0.0)
}

/// Returns the anonymous memory of the proxy at the end, in bytes; `None` if it was not read.
pub fn memory(round: &Round) -> Option<f64> {
    (round.memory.anonymous > 0).then_some(round.memory.anonymous as f64)
}

/// Returns the packets per complete response, received and sent together; `None` if not counted.
pub fn packets(round: &Round) -> Option<f64> {
    let sum = round.packets.0 as f64 + round.packets.1 as f64;
    statistics::ratio(sum, round.total.answers as f64).filter(|packets| *packets > 0.0)
}

/// Returns the number of failed requests and connections, without responses with a bad status.
pub fn errors(round: &Round) -> f64 {
    let total = &round.total;
    [total.error_connect, total.error_timeout, total.error_reset, total.error_protocol].iter().map(|n| *n as f64).sum()
}
