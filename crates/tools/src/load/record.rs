//! Output of `--json`, line by line: the format read by programs, including the benchmark. Must never lose a field
//! without an update of the format's documentation.

use super::counters::{Counters, Times};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// A second of the run.
    Second(Counts),
    /// The end of the run.
    Summary {
        /// Counts of the whole run.
        #[serde(flatten)]
        counts: Counts,
        /// Percentiles of the time to the last byte with microseconds, ascending, from the shortest (0) to the longest
        /// (100).
        last_byte: Vec<(f64, f64)>,
        /// Percentiles of the time to the first byte.
        first_byte: Vec<(f64, f64)>,
        /// Percentiles of the reference client's time to the last byte; empty without one.
        reference: Vec<(f64, f64)>,
        /// Complete responses by status code.
        #[serde(deserialize_with = "codes")]
        statuses: std::collections::BTreeMap<u16, u64>,
    },
}

/// Counts of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// End of the interval, in seconds since the start of the run.
    pub at: f64,
    /// Length of the interval, in seconds.
    pub length: f64,
    /// End of the interval, in whole seconds since 1970.
    pub wall: i64,
    /// Open connections at its end.
    pub open: u64,
    /// Connections begun.
    pub connections: u64,
    /// Requests begun.
    pub requests: u64,
    /// Complete responses.
    pub answers: u64,
    /// Bytes received.
    pub received: u64,
    /// Failures to connect.
    pub error_connect: u64,
    /// I/O timeouts.
    pub error_timeout: u64,
    /// Connections lost before the response was complete.
    pub error_reset: u64,
    /// Responses that are not valid HTTP.
    pub error_protocol: u64,
    /// Responses with a status of 400 or above.
    pub error_status: u64,
    /// Requests without a response at the end of the run; 0 before.
    pub unanswered: u64,
    /// Complete responses with a status of 100 to 199.
    pub status_1xx: u64,
    /// 200 to 299.
    pub status_2xx: u64,
    /// 300 to 399.
    pub status_3xx: u64,
    /// 400 to 499.
    pub status_4xx: u64,
    /// 500 to 599.
    pub status_5xx: u64,
    /// Mean time to the first byte, microseconds; 0 without a response.
    pub first_byte_mean: f64,
    /// Mean time to the last byte, microseconds; 0 without a response.
    pub last_byte_mean: f64,
    /// 99th percentile of the time to the last byte, microseconds; 0 without a response.
    pub last_byte_p99: f64,
    /// Responses to the reference client.
    pub reference_answers: u64,
    /// Mean of its time to the last byte, microseconds; 0 without a response.
    pub reference_mean: f64,
    /// 99th percentile of its time to the last byte, microseconds; 0 without a response.
    pub reference_p99: f64,
    /// Completed TLS handshakes.
    #[serde(default)]
    pub handshakes: u64,
    /// Handshakes that resumed a session.
    #[serde(default)]
    pub resumed: u64,
}

/// Parses status codes from the keys of an object: in a tagged enum, serde does not convert keys to numbers.
fn codes<'de, D: serde::Deserializer<'de>>(from: D) -> Result<std::collections::BTreeMap<u16, u64>, D::Error> {
    let written = std::collections::BTreeMap::<String, u64>::deserialize(from)?;
    let read = written.into_iter().map(|(code, count)| Ok((code.parse().map_err(serde::de::Error::custom)?, count)));
    read.collect()
}

/// Time of an interval, and data that is not in the counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment {
    /// End of the interval, since the start of the run.
    pub at: Duration,
    /// Length of the interval.
    pub length: Duration,
    /// End of the interval, in whole seconds since 1970.
    pub wall: i64,
    /// Open connections at its end.
    pub open: u64,
}

impl Counts {
    /// Converts a set of counters.
    #[must_use]
    pub fn of(counters: &Counters, moment: &Moment) -> Self {
        let classes = classes(counters);
        Self {
            at: moment.at.as_secs_f64(),
            length: moment.length.as_secs_f64(),
            wall: moment.wall,
            open: moment.open,
            connections: counters.connections,
            requests: counters.requests,
            answers: counters.answers,
            received: counters.received,
            error_connect: counters.errors.connect,
            error_timeout: counters.errors.timeout,
            error_reset: counters.errors.reset,
            error_protocol: counters.errors.protocol,
            error_status: counters.errors.status,
            unanswered: counters.unanswered,
            status_1xx: classes[0],
            status_2xx: classes[1],
            status_3xx: classes[2],
            status_4xx: classes[3],
            status_5xx: classes[4],
            first_byte_mean: counters.first_byte.mean() / 1e3,
            last_byte_mean: counters.last_byte.mean() / 1e3,
            last_byte_p99: percentile(&counters.last_byte, 99.0),
            reference_answers: counters.reference.len(),
            reference_mean: counters.reference.mean() / 1e3,
            reference_p99: percentile(&counters.reference, 99.0),
            handshakes: counters.handshakes,
            resumed: counters.resumed,
        }
    }
}

impl Record {
    /// Returns the record of the end of a run.
    #[must_use]
    pub fn summary(total: &Counters, moment: &Moment) -> Self {
        let codes = (100..).zip(total.statuses.iter().copied());
        Self::Summary {
            counts: Counts::of(total, moment),
            last_byte: distribution(&total.last_byte),
            first_byte: distribution(&total.first_byte),
            reference: distribution(&total.reference),
            statuses: codes.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// Returns complete responses by the first digit of their status, from 1 to 5.
#[must_use]
pub fn classes(counters: &Counters) -> [u64; 5] {
    let mut sums = [0; 5];
    for (sum, codes) in sums.iter_mut().zip(counters.statuses.chunks(100)) {
        *sum = codes.iter().sum();
    }
    sums
}

/// Returns a percentile in microseconds; 0 without any time.
#[must_use]
pub fn percentile(times: &Times, percentile: f64) -> f64 {
    if times.is_empty() {
        return 0.0;
    }
    let nanos = times.histogram.value_at_percentile(percentile);
    // The end of a bucket may be above the longest time in it.
    nanos.min(times.histogram.max()) as f64 / 1e3
}

/// Percentiles that are printed, as in h1load.
pub const PERCENTILES: &[f64] = &[
    10.0, 20.0, 30.0, 40.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0, 80.0, 82.0, 84.0, 86.0, 88.0, 90.0, 91.0, 92.0, 93.0,
    94.0, 95.0, 95.5, 96.0, 96.5, 97.0, 97.5, 98.0, 98.5, 99.0, 99.1, 99.2, 99.3, 99.4, 99.5, 99.55, 99.6, 99.65, 99.7,
    99.75, 99.8, 99.85, 99.9, 99.91, 99.92, 99.93, 99.94, 99.95, 99.96, 99.965, 99.97, 99.975, 99.98, 99.985, 99.99,
    99.995, 99.996, 99.9965, 99.997, 99.9975, 99.998, 99.9985, 99.999, 99.9995, 99.9999,
];

/// Returns all of them with their microseconds, from the shortest to the longest time; empty without any time.
#[must_use]
pub fn distribution(times: &Times) -> Vec<(f64, f64)> {
    if times.is_empty() {
        return Vec::new();
    }
    let ends = |rank: f64, nanos: u64| (rank, nanos as f64 / 1e3);
    let mut rows = vec![ends(0.0, times.histogram.min())];
    rows.extend(PERCENTILES.iter().map(|rank| (*rank, percentile(times, *rank))));
    rows.push(ends(100.0, times.histogram.max()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Counters {
        let mut counters = Counters::new();
        for millis in 1..=1000 {
            counters.last_byte.record(millis * 1_000_000);
        }
        (counters.answers, counters.errors.reset) = (1000, 7);
        for status in [200, 204, 404, 599] {
            counters.count_status(status);
        }
        counters
    }

    #[test]
    fn a_record_reads_back_what_it_was() {
        let moment =
            Moment { at: Duration::from_secs(2), length: Duration::from_secs(1), wall: 1_800_000_000, open: 9 };
        for record in [Record::Second(Counts::of(&sample(), &moment)), Record::summary(&sample(), &moment)] {
            let line = serde_json::to_string(&record).expect("JSON");
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Record>(&line).expect("a record"), record);
        }
    }

    #[test]
    fn the_forms_say_of_what_type_they_are() {
        let text = |record| serde_json::to_string(&record).expect("JSON");
        let second = text(Record::Second(Counts::of(&sample(), &Moment::default())));
        assert!(second.starts_with(r#"{"type":"second","at":0.0,"length":0.0,"wall":0,"open":0,"#), "{second}");
        assert!(second.contains(r#""status_2xx":2,"status_3xx":0,"status_4xx":1,"status_5xx":1,"#), "{second}");
        let summary = text(Record::summary(&sample(), &Moment::default()));
        assert!(summary.starts_with(r#"{"type":"summary","at":"#), "{summary}");
        assert!(summary.ends_with(r#""reference":[],"statuses":{"200":1,"204":1,"404":1,"599":1}}"#), "{summary}");
    }

    #[test]
    fn percentiles_rise_and_end_at_the_longest_time() {
        let rows = distribution(&sample().last_byte);
        assert_eq!(rows.len(), PERCENTILES.len() + 2);
        assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{rows:?}");
        let near = |rank: f64, micros: f64| {
            let told = rows.iter().find(|row| row.0 == rank).expect("a row").1;
            assert!((told / micros - 1.0).abs() < 0.002, "{rank}: {told}");
        };
        near(50.0, 500_000.0);
        near(99.0, 990_000.0);
        near(99.9999, 1_000_000.0);
        assert_eq!(distribution(&Counters::new().last_byte), []);
    }
}
