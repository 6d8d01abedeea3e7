//! A histogram of request latencies over the last seconds. Allocated only if it is displayed somewhere. Must never be
//! written by two threads, and never grow.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::Moment;

/// Number of bits after the leading one that select a bucket: the width of a bucket is at most an eighth of its value.
const FINE_BITS: u32 = 3;
const FINE: usize = 1 << FINE_BITS;
/// Latencies from 2^27 microseconds on, more than two minutes, share the last bucket.
const OCTAVES: usize = 25;
/// Number of buckets of a histogram. The number of a bucket fits into a byte, and is not 255.
const BUCKETS: usize = OCTAVES * FINE;
const _: () = assert!(BUCKETS < u8::MAX as usize);
/// Seconds that a bank is written. A reader sees between one and two such periods.
const BANK_SECONDS: u64 = 5;

/// Maximum number of servers with a histogram: those with the lowest serial numbers. Bounds the memory, 1.7 kilobytes
/// per object and worker.
pub(super) const MOST_SERVERS: usize = 1024;

/// The counts of one worker, in two banks that are written alternately.
#[derive(Debug)]
pub struct Latencies {
    banks: [Bank; 2],
}

#[derive(Debug)]
struct Bank {
    /// The number of the period that it counts, from 1; 0: none.
    epoch: AtomicU64,
    buckets: [AtomicU32; BUCKETS],
}

impl Default for Bank {
    fn default() -> Self {
        Self { epoch: AtomicU64::new(0), buckets: [const { AtomicU32::new(0) }; BUCKETS] }
    }
}

/// The period of a time.
const fn epoch_of(now: Moment) -> u64 {
    now.as_nanos() / (BANK_SECONDS * 1_000_000_000) + 1
}

/// The bucket of a latency in microseconds.
fn bucket_of(micros: u64) -> usize {
    if micros < FINE as u64 {
        return micros as usize;
    }
    let shift = micros.ilog2() - FINE_BITS;
    let place = (shift as usize + 1) * FINE + ((micros >> shift) as usize & (FINE - 1));
    place.min(BUCKETS - 1)
}

/// The middle of a bucket in microseconds.
fn middle_of(bucket: usize) -> f64 {
    if bucket < FINE {
        return bucket as f64 + 0.5;
    }
    let (shift, fine) = (bucket / FINE - 1, bucket % FINE);
    let width = (1_u64 << shift) as f64;
    ((FINE + fine) as f64 + 0.5) * width
}

/// Returns the latency of a bucket in milliseconds.
pub fn latency_of(bucket: u8) -> f64 {
    middle_of(usize::from(bucket)) / 1000.0
}

impl Latencies {
    fn new() -> Box<Self> {
        Box::new(Self { banks: [Bank::default(), Bank::default()] })
    }

    /// Counts a request.
    pub fn add(&self, took: Duration, now: Moment) {
        let epoch = epoch_of(now);
        let bank = &self.banks[(epoch % 2) as usize];
        if bank.epoch.load(Relaxed) != epoch {
            bank.buckets.iter().for_each(|bucket| bucket.store(0, Relaxed));
            bank.epoch.store(epoch, Relaxed);
        }
        let bucket = &bank.buckets[bucket_of(u64::try_from(took.as_micros()).unwrap_or(u64::MAX))];
        bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// An optional histogram.
#[derive(Debug, Default)]
pub struct LatencyCell(OnceLock<Box<Latencies>>);

impl LatencyCell {
    /// Returns the histogram; `None`: not displayed.
    #[inline]
    pub fn get(&self) -> Option<&Latencies> {
        self.0.get().map(|latencies| &**latencies)
    }

    /// Allocates the histogram.
    pub(super) fn begin(&self) {
        self.0.get_or_init(Latencies::new);
    }
}

/// The requests of the last seconds, of several workers or objects.
#[derive(Debug)]
pub struct LatencySum {
    counts: [u64; BUCKETS],
    total: u64,
}

impl Default for LatencySum {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], total: 0 }
    }
}

impl LatencySum {
    /// Adds the counts of the last seconds of one worker and object.
    pub fn add(&mut self, latencies: &Latencies, now: Moment) {
        let newest = epoch_of(now);
        for bank in &latencies.banks {
            let epoch = bank.epoch.load(Relaxed);
            if epoch == newest || epoch + 1 == newest {
                for (sum, bucket) in self.counts.iter_mut().zip(&bank.buckets) {
                    let count = u64::from(bucket.load(Relaxed));
                    *sum += count;
                    self.total += count;
                }
            }
        }
    }

    /// Adds another sum.
    pub fn join(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.total += other.total;
    }

    /// Returns the latency in milliseconds that `per_mille` thousandths of the requests did not exceed; `None`: no
    /// requests.
    pub fn quantile(&self, per_mille: u64) -> Option<f64> {
        self.bucket(per_mille).map(latency_of)
    }

    /// Returns the bucket of that latency, for [`latency_of`].
    pub fn bucket(&self, per_mille: u64) -> Option<u8> {
        let wanted = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if self.total > 0 && seen >= wanted {
                return u8::try_from(bucket).ok();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn every_time_has_a_bucket_that_is_narrow() {
        let mut last = 0;
        for exponent in 0..40 {
            for micros in [1_u64 << exponent, (1 << exponent) + (1 << exponent) / 3] {
                let bucket = bucket_of(micros);
                assert!(bucket >= last && bucket < BUCKETS, "{micros}");
                last = bucket;
                if exponent < 27 {
                    let error = (middle_of(bucket) - micros as f64).abs() / micros as f64;
                    assert!(error <= 0.5 || micros < 2, "{micros}: {}", middle_of(bucket));
                    assert!(error <= 0.07 || micros < 16, "{micros}: {}", middle_of(bucket));
                }
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_last_seconds() {
        let latencies = Latencies::new();
        let read = |now| {
            let mut sum = LatencySum::default();
            sum.add(&latencies, now);
            [500, 950, 990].map(|per_mille| sum.quantile(per_mille).map(f64::round))
        };
        assert_eq!(read(at(0)), [None; 3]);
        for millis in 1..=100 {
            latencies.add(Duration::from_millis(millis), at(100));
        }
        let near = |value: Option<f64>, wanted: f64| (value.expect("requests") - wanted).abs() <= wanted * 0.08;
        for now in [100, 104, 109] {
            let [half, most, nearly_all] = read(at(now));
            assert!(near(half, 50.0) && near(most, 95.0) && near(nearly_all, 99.0), "{now}: {half:?} {most:?}");
        }
        assert_eq!(read(at(110)), [None; 3]);
        // The bank of that period is cleared.
        latencies.add(Duration::from_millis(7), at(110));
        assert!(near(read(at(110))[0], 7.0));
        assert!(near(read(at(110))[2], 7.0));
    }

    #[test]
    fn sums_join() {
        let (one, two) = (Latencies::new(), Latencies::new());
        one.add(Duration::from_millis(1), at(1));
        two.add(Duration::from_secs(1000), at(1));
        let (mut sum, mut other) = (LatencySum::default(), LatencySum::default());
        sum.add(&one, at(1));
        other.add(&two, at(1));
        sum.join(&other);
        assert!(sum.quantile(500).is_some_and(|time| time < 2.0));
        assert!(sum.quantile(1000).is_some_and(|time| time > 60_000.0));
    }
}
