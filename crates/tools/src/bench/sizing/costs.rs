//! Costs of a proxy, taken from the results of the shipped scenarios by their names. Must never guess: a scenario
//! without results leaves its figure empty.

use crate::bench::figures::{self, count};
use crate::bench::results::{Point, Results};
use crate::bench::text::program;

/// The scenarios that the model reads, and their use.
pub const READS: &[(&str, &str)] = &[
    ("size-sweep", "CPU of a keep-alive request by size: the cost of a request and of a byte"),
    ("keep-alive", "the same for a small object, where the sweep was not run"),
    ("server-close", "a connection to the server for each request"),
    ("forward-close", "a connection for each request on both sides"),
    ("connection-rate", "a connection passed on over tcp"),
    ("workers-sweep", "what the second core adds"),
    ("connections", "memory of an open connection"),
];

/// Costs of one proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    pub proxy: String,
    /// Program and version.
    pub version: String,
    /// CPU of a keep-alive request by object size, microseconds; ascending sizes, at least one.
    pub by_size: Vec<(u64, f64)>,
    /// Bytes of a response besides its body.
    pub head: f64,
    /// CPU of a small request with a new connection to the server, microseconds.
    pub server_close: Option<f64>,
    /// CPU of a small request with new connections on both sides, microseconds.
    pub close: Option<f64>,
    /// CPU of a TCP connection with one small exchange, microseconds.
    pub connection: Option<f64>,
    /// Share of its work that a core still does when there are two: 1 is all of it.
    pub kept: Option<f64>,
    /// Anonymous memory of an open connection, bytes.
    pub memory: Option<f64>,
}

impl Costs {
    /// Returns the CPU of a keep-alive request of that size in microseconds: interpolated linearly between measured
    /// sizes, constant below the smallest one, extrapolated through the last two above the largest one.
    #[must_use]
    pub fn request(&self, size: u64) -> f64 {
        let after = self.by_size.partition_point(|(measured, _)| *measured < size);
        let last = self.by_size.len() - 1;
        if after == 0 || last == 0 {
            return self.by_size[0].1;
        }
        let upper = after.min(last);
        let (left, right) = (self.by_size[upper - 1], self.by_size[upper]);
        let slope = ((right.1 - left.1) / (count(right.0) - count(left.0))).max(0.0);
        // Above the largest size the line starts there, so that measured sizes return exactly the measured values.
        let from = if after > last || size == right.0 { right } else { left };
        from.1 + slope * (count(size) - count(from.0))
    }

    /// Whether exactly that size was measured.
    #[must_use]
    pub fn is_measured(&self, size: u64) -> bool {
        self.by_size.iter().any(|(measured, _)| *measured == size)
    }

    /// Returns the CPU of each further byte in microseconds: the slope between the smallest and the largest object.
    #[must_use]
    pub fn byte(&self) -> Option<f64> {
        let (first, last) = (self.by_size.first()?, self.by_size.last()?);
        (last.0 > first.0).then(|| ((last.1 - first.1) / (count(last.0) - count(first.0))).max(0.0))
    }

    /// Returns the additional CPU of new connections on both sides for a small request, in microseconds.
    #[must_use]
    pub fn connections(&self) -> Option<f64> {
        Some((self.close? - self.by_size[0].1).max(0.0))
    }
}

/// Returns the costs of every proxy that has any, in the order of the results.
#[must_use]
pub fn gather(results: &[Results]) -> Vec<Costs> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for proxy in results.iter().flat_map(|result| &result.proxies) {
        if !names.iter().any(|(name, _)| *name == proxy.name) {
            names.push((&proxy.name, &proxy.version));
        }
    }
    names.into_iter().filter_map(|(name, version)| of_proxy(results, name, version)).collect()
}

fn of_proxy(results: &[Results], proxy: &str, version: &str) -> Option<Costs> {
    let (by_size, head) = sizes(results, proxy)?;
    let small = |scenario| run_of(results, scenario).and_then(|run| single(run, proxy)).and_then(cost);
    Some(Costs {
        proxy: proxy.to_owned(),
        version: program(version, proxy),
        by_size,
        head,
        server_close: small("server-close"),
        close: small("forward-close"),
        connection: small("connection-rate"),
        kept: run_of(results, "workers-sweep").and_then(|run| kept(run, proxy)),
        memory: run_of(results, "connections").and_then(|run| figures::memory_of_one(run, proxy)),
    })
}

/// Returns the first run of that scenario.
#[must_use]
pub fn run_of<'a>(results: &'a [Results], scenario: &str) -> Option<&'a Results> {
    results.iter().find(|result| result.scenario.name == scenario)
}

fn cost(point: &Point) -> Option<f64> {
    figures::cpu(point).map(figures::Cpu::whole)
}

/// Returns the first point of a proxy with one worker and at full speed.
fn single<'a>(run: &'a Results, proxy: &'a str) -> Option<&'a Point> {
    figures::points(run, Some(proxy)).find(|point| point.workers == 1 && point.rate.is_none())
}

fn sizes(results: &[Results], proxy: &str) -> Option<(Vec<(u64, f64)>, f64)> {
    let run = ["size-sweep", "keep-alive"]
        .iter()
        .filter_map(|scenario| run_of(results, scenario))
        .find(|run| single(run, proxy).and_then(cost).is_some())?;
    let mut sizes: Vec<(u64, f64)> = Vec::new();
    for point in figures::points(run, Some(proxy)).filter(|point| point.workers == 1 && point.rate.is_none()) {
        if let Some(cost) = cost(point)
            && !sizes.iter().any(|(size, _)| *size == point.size)
        {
            sizes.push((point.size, cost));
        }
    }
    sizes.sort_by_key(|(size, _)| *size);
    let smallest = figures::points(run, Some(proxy)).min_by_key(|point| point.size)?;
    Some((sizes, figures::head(smallest).unwrap_or(0.0)))
}

/// Returns CPU with one worker over CPU with two, for the smallest object. Values above 1 are noise of the measurement
/// and are limited to 1.
fn kept(run: &Results, proxy: &str) -> Option<f64> {
    let smallest = figures::points(run, Some(proxy)).map(|point| point.size).min()?;
    let with = |workers| {
        figures::points(run, Some(proxy))
            .find(|point| point.size == smallest && point.workers == workers && point.rate.is_none())
            .and_then(cost)
    };
    Some((with(1)? / with(2)?).min(1.0))
}
