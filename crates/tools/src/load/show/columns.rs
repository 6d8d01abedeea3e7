//! The lines of h1load: heading, widths and formats, so that programs that read those can read these. Must never add a
//! column that h1load does not have.

use super::number::{short, time};
use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::{Counters, Times};
use crate::load::plan::Plan;
use crate::load::record::classes;
use std::fmt::Write;
use std::time::Duration;

/// Prints a line per second.
#[derive(Debug)]
pub struct Columns {
    out: Sink,
    /// 0, 1 for `-l`, 2 for `-ll`.
    long: u8,
    /// `-S`.
    statuses: bool,
    /// `-O`.
    overhead: Option<(u64, u64)>,
    /// Target and duration of the ramp-up.
    connections: u32,
    ramp_up: Duration,
    /// The last line: its second, and its wall clock time.
    line: u64,
    wall: i64,
}

impl Columns {
    /// Creates the columns of a plan.
    #[must_use]
    pub fn new(plan: &Plan, out: Sink) -> Self {
        let (long, statuses) = (plan.output.long, plan.output.statuses);
        let (overhead, connections, ramp_up) = (plan.overhead, plan.connections, plan.ramp_up);
        Self { out, long, statuses, overhead, connections, ramp_up, line: 0, wall: i64::MIN }
    }

    fn heading(&self) -> String {
        let columns = match self.long {
            0 => "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  bps   ttfb",
            1 => "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  Bps  bps   ttfb   ttlb",
            _ => "#_____time conns tot_conn  tot_req      tot_bytes    err thr cps rps Bps bps ttfb(us) ttlb(us)",
        };
        let statuses = if self.statuses { " 1xx 2xx 3xx 4xx 5xx" } else { "" };
        format!("{columns}{statuses}\n")
    }

    fn line(&mut self, second: &Second, total: &Counters) -> String {
        // The second that ends here; it increases even if lines are early or late.
        self.line = (self.line + 1).max(second.at.as_secs_f64().round() as u64);
        self.wall = self.wall.saturating_add(1).max(second.wall);
        let when = if self.long == 0 { i128::from(self.line) } else { i128::from(self.wall) };
        let counted = [second.open, total.connections, total.answers, total.received, total.errors.failures()];
        let [open, connections, answers, received, errors] = counted;
        let mut line = format!("{when:>10} {open:>5} {connections:>8} {answers:>8} {received:>14} {errors:>6} ");
        self.rates(&mut line, second);
        if self.statuses {
            for count in classes(&second.counters) {
                let _ = write!(line, "{count:>3} ");
            }
        }
        line.push('\n');
        line
    }

    /// Appends the rates of a second, and the times.
    fn rates(&self, line: &mut String, second: &Second) {
        let counters = &second.counters;
        // Avoid division by zero.
        let length = second.length.as_secs_f64().max(1e-6);
        let rate = |count: u64| count as f64 / length;
        let bytes = (counters.received as f64 + self.overhead(counters)) / length;
        let (connections, answers) = (rate(counters.connections), rate(counters.answers));
        let _ = match self.long {
            0 => {
                let first = time(mean(&counters.first_byte));
                write!(line, "{} {} {} {first} ", short(connections), short(answers), short(bytes * 8.0))
            }
            1 => {
                let (first, last) = (time(mean(&counters.first_byte)), time(mean(&counters.last_byte)));
                let rates = [connections, answers, bytes, bytes * 8.0].map(short);
                write!(line, "{} {first} {last} ", rates.join(" "))
            }
            _ => {
                let times = [&counters.first_byte, &counters.last_byte];
                let times = times.map(|times| mean(times).map_or("-".to_owned(), |mean| format!("{:.1}", mean * 1e6)));
                let throttle = self.throttle(second.at);
                write!(
                    line,
                    "{throttle:>3} {connections:.1} {answers:.1} {bytes:.1} {:.1} {} ",
                    bytes * 8.0,
                    times.join(" ")
                )
            }
        };
    }

    /// `-O`: returns the bytes of network overhead: for each started payload, and at least once for each response.
    fn overhead(&self, counters: &Counters) -> f64 {
        self.overhead.map_or(0.0, |(extra, payload)| {
            let payloads = counters.received.div_ceil(payload.max(1)).max(counters.answers);
            extra as f64 * payloads as f64
        })
    }

    /// Returns the current part of the load, in percent of the connections.
    fn throttle(&self, at: Duration) -> u64 {
        if at >= self.ramp_up {
            return 100;
        }
        let all = f64::from(self.connections.max(1));
        let there = (all * at.as_secs_f64() / self.ramp_up.as_secs_f64()).ceil();
        (there * 100.0 / all).floor() as u64
    }
}

/// Returns the mean in seconds.
fn mean(times: &Times) -> Option<f64> {
    (!times.is_empty()).then(|| times.mean() / 1e9)
}

impl Show for Columns {
    fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
        let heading = self.heading();
        self.out.write(&heading)
    }

    fn second(&mut self, second: &Second, total: &Counters) -> Result<(), Outcome> {
        let line = self.line(second, total);
        self.out.write(&line)
    }

    fn end(&mut self, _: &Counters, _: Duration) -> Result<(), Outcome> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
