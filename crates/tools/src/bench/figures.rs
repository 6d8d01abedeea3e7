//! Figures computed from a measured point: medians over its rounds. The report, the tables and the sizing
//! page share them, so that they cannot differ. Must never fill a gap: a figure that was not measured is `None`.

use super::results::{Point, Results, Round};

/// CPU time of the proxy per request, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cpu {
    /// In user space.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

impl Cpu {
    /// Returns the sum.
    #[must_use]
    pub fn whole(self) -> f64 {
        self.user + self.system
    }
}

/// Returns the median, the mean of the middle two of an even number; `None` if there is none, or one is not finite.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    if sorted.is_empty() || sorted.iter().any(|value| !value.is_finite()) {
        return None;
    }
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) })
}

/// Returns the valid rounds: those without a fault and with at least one request.
pub fn counted(point: &Point) -> impl Iterator<Item = &Round> {
    point.rounds.iter().filter(|round| round.fault.is_none() && requests(round) > 0 && round.total.length > 0.0)
}

/// Returns the number of requests of a round: its responses, or its connections if there was no response at all, as
/// with a proxy that rejects every connection.
#[must_use]
pub fn requests(round: &Round) -> u64 {
    if round.total.answers > 0 { round.total.answers } else { round.total.connections }
}

/// Returns the CPU time per request: user and system time of the round whose sum is the median, if the number of
/// rounds is odd; otherwise the median of each.
#[must_use]
pub fn cpu(point: &Point) -> Option<Cpu> {
    let mut rounds: Vec<Cpu> = counted(point).filter_map(cpu_of_round).collect();
    rounds.sort_by(|left, right| left.whole().total_cmp(&right.whole()));
    match rounds.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(rounds[odd / 2]),
        _ => Some(Cpu {
            user: median(rounds.iter().map(|cpu| cpu.user))?,
            system: median(rounds.iter().map(|cpu| cpu.system))?,
        }),
    }
}

fn cpu_of_round(round: &Round) -> Option<Cpu> {
    if round.threads.is_empty() {
        return None;
    }
    let answers = count(requests(round));
    let cpu = Cpu {
        user: round.threads.iter().map(|thread| thread.user).sum::<f64>() / answers,
        system: round.threads.iter().map(|thread| thread.system).sum::<f64>() / answers,
    };
    (cpu.whole().is_finite() && cpu.whole() > 0.0).then_some(cpu)
}

/// Returns the requests per second.
#[must_use]
pub fn rate(point: &Point) -> Option<f64> {
    median(counted(point).map(|round| count(requests(round)) / round.total.length))
}

/// Returns the number of bytes of a response that are not its body.
#[must_use]
pub fn head(point: &Point) -> Option<f64> {
    let answered = counted(point).filter(|round| round.total.answers > 0);
    let whole = median(answered.map(|round| count(round.total.received) / count(round.total.answers)))?;
    Some((whole - count(point.size)).max(0.0))
}

/// Returns a latency of the main load in microseconds at that percentile.
#[must_use]
pub fn latency(point: &Point, percentile: f64) -> Option<f64> {
    median(counted(point).filter_map(|round| at(&round.latency, percentile)))
}

/// Returns a latency of the reference client in microseconds at that percentile.
#[must_use]
pub fn reference(point: &Point, percentile: f64) -> Option<f64> {
    median(counted(point).filter_map(|round| at(&round.reference, percentile)))
}

/// Returns the value at the first stored percentile that is not below the requested one.
fn at(values: &[(f64, f64)], percentile: f64) -> Option<f64> {
    values.iter().find(|(stored, _)| *stored >= percentile - 1e-9).map(|(_, value)| *value)
}

/// Returns the anonymous memory used by the connections of this point, in bytes.
#[must_use]
pub fn memory(point: &Point) -> Option<f64> {
    median(
        counted(point)
            .filter(|round| round.memory.anonymous > 0)
            .map(|round| count(round.memory.anonymous) - count(round.memory.before.min(round.memory.anonymous))),
    )
}

/// Returns the anonymous memory of one connection in bytes: the slope between the lowest and the highest measured
/// number of connections, or from zero if there is only one number.
#[must_use]
pub fn memory_of_one(run: &Results, proxy: &str) -> Option<f64> {
    let mut measured: Vec<(f64, f64)> =
        points(run, Some(proxy)).filter_map(|point| Some((f64::from(point.connections), memory(point)?))).collect();
    measured.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (first, last) = (*measured.first()?, *measured.last()?);
    let from = if last.0 > first.0 { first } else { (0.0, 0.0) };
    (last.0 > from.0).then(|| ((last.1 - from.1) / (last.0 - from.0)).max(0.0))
}

/// Returns the points of one proxy (`None`: without a proxy), in the order of measurement.
pub fn points<'a>(results: &'a Results, proxy: Option<&'a str>) -> impl Iterator<Item = &'a Point> {
    results.points.iter().filter(move |point| point.proxy.as_deref() == proxy)
}

/// Converts a count to a number for divisions.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub fn count(value: u64) -> f64 {
    value as f64
}
