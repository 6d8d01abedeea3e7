//! An hour of history of the process, of frontends and of backends, for the dashboard: a sample every ten seconds, of the
//! busiest objects. Bounded: [`MOST_BYTES`]. Must never read a counter or a clock.

mod selection;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::WallTime;
use base::text::beginning;

use selection::Selection;

/// Time between two samples.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// Time between two readings of latencies: a reading covers the last five to ten seconds.
pub const LATENCY_INTERVAL: Duration = Duration::from_secs(5);
/// Number of samples that are kept.
pub const CAPACITY: usize = 360;
/// Maximum number of frontends, and of backends, whose history is kept.
pub const MOST_SERIES: usize = 200;
/// Maximum memory of a history in bytes.
pub const MOST_BYTES: usize = 8_000_000;

/// Maximum length of a name in bytes: objects with the same beginning and the same index are taken for the same.
const LONGEST_NAME: usize = 256;
/// The bucket of a quantile without requests.
const NO_BUCKET: u8 = u8::MAX;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryKind {
    Process,
    Frontend,
    Backend,
}

/// Cumulative counters of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Requests; in TCP mode sessions.
    pub requests: u64,
    /// Responses with a status 4xx, and 5xx.
    pub client_errors: u64,
    pub server_errors: u64,
    /// Invalid requests, failed connections, failed responses.
    pub failures: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub sessions: u64,
    pub connections: u64,
}

/// Values of an object at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Levels {
    /// Current sessions.
    pub sessions: u32,
    /// Requests in the queue.
    pub queue: u32,
    pub servers_usable: u32,
    pub servers_down: u32,
    pub latencies: Quantiles,
}

/// The quantiles of a sample, in thousandths.
pub const QUANTILES: [u64; 3] = [500, 950, 990];

/// Buckets of the quantiles of [`QUANTILES`]; `None`: no requests.
pub type Quantiles = [Option<u8>; 3];

/// A reading of latencies within an interval.
#[derive(Debug, Clone, Copy)]
pub struct LatencyReading {
    pub kind: HistoryKind,
    /// Index of the proxy; 0 for the process.
    pub index: usize,
    pub latencies: Quantiles,
}

/// Counters and values of an object at one time.
#[derive(Debug, Clone)]
pub struct Reading {
    pub kind: HistoryKind,
    /// Index of the proxy; 0 for the process.
    pub index: usize,
    /// Name of the proxy; empty for the process.
    pub name: Box<str>,
    pub totals: Totals,
    pub levels: Levels,
}

/// An interval of an object. Compact: there are [`CAPACITY`] of them for each object.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    pub requests: u32,
    pub client_errors: u32,
    pub server_errors: u32,
    pub failures: u32,
    pub sessions: u32,
    pub connections: u32,
    /// Sums above 16 megabytes are rounded to their 24 upper bits.
    pub bytes_in: f32,
    pub bytes_out: f32,
    pub current_sessions: u32,
    pub queue: u32,
    pub servers_usable: u16,
    pub servers_down: u16,
    latencies: [u8; 3],
}

impl Sample {
    fn new(before: &Totals, after: &Totals, levels: &Levels, is_sum: bool) -> Self {
        let between = |of: fn(&Totals) -> u64| {
            let (before, after) = (of(before), of(after));
            // A cleared counter begins at 0 again. Of a sum, only some counters were cleared: nothing is known.
            after.checked_sub(before).unwrap_or(if is_sum { 0 } else { after })
        };
        let count = |of: fn(&Totals) -> u64| u32::try_from(between(of)).unwrap_or(u32::MAX);
        Self {
            requests: count(|totals| totals.requests),
            client_errors: count(|totals| totals.client_errors),
            server_errors: count(|totals| totals.server_errors),
            failures: count(|totals| totals.failures),
            sessions: count(|totals| totals.sessions),
            connections: count(|totals| totals.connections),
            bytes_in: between(|totals| totals.bytes_in) as f32,
            bytes_out: between(|totals| totals.bytes_out) as f32,
            current_sessions: levels.sessions,
            queue: levels.queue,
            servers_usable: u16::try_from(levels.servers_usable).unwrap_or(u16::MAX),
            servers_down: u16::try_from(levels.servers_down).unwrap_or(u16::MAX),
            latencies: levels.latencies.map(|bucket| bucket.unwrap_or(NO_BUCKET)),
        }
    }

    /// Returns a quantile in milliseconds, by its index in [`QUANTILES`]; `None`: there were no requests.
    pub fn latency(&self, which: usize) -> Option<f64> {
        let bucket = *self.latencies.get(which)?;
        (bucket != NO_BUCKET).then(|| crate::counters::latency_of(bucket))
    }
}

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    pub end: WallTime,
    pub length: Duration,
}

/// The samples of one object.
#[derive(Debug)]
struct Series {
    kind: HistoryKind,
    index: usize,
    name: Box<str>,
    /// Number of its first interval.
    first: u64,
    /// The counters at the end of the last interval.
    totals: Totals,
    /// The highest latencies since then.
    latencies: Quantiles,
    /// By number of the interval modulo [`CAPACITY`].
    samples: Box<[Sample; CAPACITY]>,
}

impl Reading {
    /// Creates the reading of the process, with zeros.
    pub fn of_process() -> Self {
        let (kind, totals, levels) = (HistoryKind::Process, Totals::default(), Levels::default());
        Self { kind, index: 0, name: "".into(), totals, levels }
    }

    const fn key(&self) -> (HistoryKind, usize) {
        (self.kind, self.index)
    }
}

impl Series {
    const fn key(&self) -> (HistoryKind, usize) {
        (self.kind, self.index)
    }

    /// Begins with the interval of that number.
    fn new(first: u64, reading: &Reading) -> Self {
        Self {
            kind: reading.kind,
            index: reading.index,
            name: beginning(&reading.name, LONGEST_NAME).into(),
            first,
            totals: reading.totals,
            latencies: Quantiles::default(),
            samples: Box::new([Sample::default(); CAPACITY]),
        }
    }

    /// Records the counters at the end of the interval of that number, if one ends.
    fn add(&mut self, number: u64, ends: bool, reading: &Reading) {
        if ends {
            let is_sum = self.kind == HistoryKind::Process;
            self.note(reading.levels.latencies);
            let levels = Levels { latencies: self.latencies, ..reading.levels };
            let sample = Sample::new(&self.totals, &reading.totals, &levels, is_sum);
            self.samples[number as usize % CAPACITY] = sample;
        }
        self.totals = reading.totals;
        self.latencies = Quantiles::default();
    }

    /// Records latencies: of several readings within an interval, the highest ones are kept.
    fn note(&mut self, latencies: Quantiles) {
        for (highest, latency) in self.latencies.iter_mut().zip(latencies) {
            *highest = (*highest).max(latency);
        }
    }
}

/// The objects whose history is kept in an interval.
#[derive(Debug, Default)]
pub struct Kept {
    chosen: [Vec<u32>; 2],
    /// Objects that are kept although they were not chosen.
    free: [usize; 2],
}

impl Kept {
    /// Whether an object is kept. Call it once for each object.
    pub fn has(&mut self, kind: HistoryKind, index: usize) -> bool {
        let Some(side) = side_of(kind) else { return true };
        let Ok(index) = u32::try_from(index) else { return false };
        if self.chosen[side].binary_search(&index).is_ok() {
            return true;
        }
        let is_free = self.free[side] > 0;
        self.free[side] -= usize::from(is_free);
        is_free
    }
}

const fn side_of(kind: HistoryKind) -> Option<usize> {
    match kind {
        HistoryKind::Process => None,
        HistoryKind::Frontend => Some(0),
        HistoryKind::Backend => Some(1),
    }
}

/// Counters of activity by proxy index, as a frontend and as a backend; `None`: the proxy is none.
#[derive(Debug, Default)]
pub struct Activities {
    pub frontends: Vec<Option<u64>>,
    pub backends: Vec<Option<u64>>,
}

/// A range of intervals for a reader, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// Number of the first interval.
    pub first: u64,
    pub intervals: Vec<Interval>,
}

/// The samples of an object within a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesSamples {
    /// The place of the first sample in the intervals of the span.
    pub first: usize,
    pub samples: Vec<Sample>,
}

/// The history.
#[derive(Debug, Default)]
pub struct History(Mutex<HistoryState>);

#[derive(Debug, Default)]
struct HistoryState {
    /// A task records.
    is_recorded: bool,
    /// Number of intervals so far.
    count: u64,
    /// By number modulo [`CAPACITY`].
    intervals: Vec<Interval>,
    selections: [Selection; 2],
    /// In ascending order of their keys.
    series: Vec<Series>,
}

impl History {
    fn lock(&self) -> MutexGuard<'_, HistoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a history; false: it is recorded already.
    pub fn begin(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_recorded, true)
    }

    /// Ends the history and frees its memory.
    pub fn end(&self) {
        *self.lock() = HistoryState::default();
    }

    /// Returns the objects that have to be read for the next interval: the busiest ones, and others while there are few.
    pub fn kept(&self) -> Kept {
        let state = self.lock();
        let chosen = [0, 1].map(|side| state.selections[side].busiest().to_vec());
        let free = [0, 1].map(|side| MOST_SERIES.saturating_sub(chosen[side].len()));
        Kept { chosen, free }
    }

    /// Records latencies within an interval. Readings of objects without a history are ignored.
    pub fn note(&self, readings: &[LatencyReading]) {
        let state = &mut *self.lock();
        for reading in readings {
            let key = (reading.kind, reading.index);
            if let Ok(at) = state.series.binary_search_by_key(&key, Series::key) {
                state.series[at].note(reading.latencies);
            }
        }
    }

    /// Records the end of an interval. The history of an object without a reading is dropped; that of an object with a first
    /// reading begins with the next interval. `interval`: `None` for the first readings of all.
    pub fn record(&self, interval: Option<Interval>, mut readings: Vec<Reading>, activities: &Activities) {
        readings.sort_unstable_by_key(Reading::key);
        let state = &mut *self.lock();
        let number = state.count;
        if let Some(interval) = interval {
            let place = number as usize % CAPACITY;
            if place == state.intervals.len() {
                state.intervals.reserve_exact(1);
                state.intervals.push(interval);
            } else {
                state.intervals[place] = interval;
            }
            state.count += 1;
        }
        state.series.retain(|series| {
            let found = readings.binary_search_by_key(&series.key(), Reading::key);
            found.is_ok_and(|at| *series.name == *beginning(&readings[at].name, LONGEST_NAME))
        });
        let known = state.series.len();
        for reading in readings {
            let found = state.series[..known].binary_search_by_key(&reading.key(), Series::key);
            match found.ok().and_then(|at| state.series.get_mut(at)) {
                Some(series) => series.add(number, interval.is_some(), &reading),
                None => state.series.push(Series::new(state.count, &reading)),
            }
        }
        state.series.sort_unstable_by_key(Series::key);
        state.series.shrink_to_fit();
        let [frontends, backends] = &mut state.selections;
        frontends.record(&activities.frontends, MOST_SERIES);
        backends.record(&activities.backends, MOST_SERIES);
    }

    /// Returns the intervals that end after `since`.
    pub fn span(&self, since: WallTime) -> Span {
        let state = self.lock();
        let oldest = state.count.saturating_sub(CAPACITY as u64);
        let intervals = (oldest..state.count).map(|number| state.intervals[number as usize % CAPACITY]);
        let is_later =
            |interval: &Interval| (interval.end.seconds, interval.end.millis()) > (since.seconds, since.millis());
        let intervals: Vec<Interval> = intervals.skip_while(|interval| !is_later(interval)).collect();
        Span { first: state.count - intervals.len() as u64, intervals }
    }

    /// Returns the indexes and the names of the objects of a kind that have a history.
    pub fn objects(&self, kind: HistoryKind) -> Vec<(usize, Box<str>)> {
        let state = self.lock();
        let series = state.series.iter().filter(|series| series.kind == kind);
        series.map(|series| (series.index, series.name.clone())).collect()
    }

    /// Returns the samples of an object within a span; `None`: it has none.
    pub fn samples(&self, kind: HistoryKind, index: usize, span: &Span) -> Option<SeriesSamples> {
        let state = self.lock();
        let series = state.series.binary_search_by_key(&(kind, index), Series::key).ok()?;
        let series = &state.series[series];
        let oldest = state.count.saturating_sub(CAPACITY as u64);
        let first = series.first.max(oldest).max(span.first);
        let samples = (first..span.first + span.intervals.len() as u64)
            .map(|number| series.samples[number as usize % CAPACITY])
            .collect();
        Some(SeriesSamples { first: (first - span.first) as usize, samples })
    }

    /// Returns the number of allocated bytes.
    pub fn bytes(&self) -> usize {
        let state = self.lock();
        let of_series = |series: &Series| series.name.len() + size_of_val(&*series.samples);
        size_of::<Self>()
            + state.intervals.capacity() * size_of::<Interval>()
            + state.selections.iter().map(Selection::bytes).sum::<usize>()
            + state.series.capacity() * size_of::<Series>()
            + state.series.iter().map(of_series).sum::<usize>()
    }
}
