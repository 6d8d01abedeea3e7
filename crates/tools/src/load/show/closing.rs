//! Output at the end: h1load's percentiles if requested, errors, a summary. Everything but h1load's
//! table is printed as comments, so that programs that read columns skip it.

use super::number::{grouped, short, time};
use super::percentiles::{reference_table, table};
use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::{Counters, Times};
use crate::load::plan::{Pace, Plan};
use crate::load::record::percentile;
use std::fmt::Write;
use std::time::Duration;

/// Percentiles in the summary.
const RANKS: &[f64] = &[50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];

/// The end of a run.
#[derive(Debug)]
pub struct Closing {
    out: Sink,
    percentiles: bool,
    summary: bool,
    pace: Pace,
}

impl Closing {
    /// Creates it, with or without a summary.
    #[must_use]
    pub fn new(plan: &Plan, summary: bool, out: Sink) -> Self {
        Self { out, percentiles: plan.output.percentiles, summary, pace: plan.pace }
    }

    fn text(&self, total: &Counters, length: Duration) -> String {
        let mut text = String::new();
        if self.percentiles {
            text.push_str(&table(total));
            if !total.reference.is_empty() {
                text.push_str(&reference_table(&total.reference));
            }
        }
        if self.summary {
            text.push_str(&summary(total, length, self.pace));
        }
        text.push_str(&faults(total));
        text
    }
}

/// Returns the errors by kind; empty if there are none.
fn faults(total: &Counters) -> String {
    let mut text = String::new();
    let errors = &total.errors;
    if errors.failures() + errors.status > 0 {
        let _ = writeln!(
            text,
            "# errors: connect {}, timeout {}, reset {}, protocol {}, status {}",
            errors.connect, errors.timeout, errors.reset, errors.protocol, errors.status
        );
    }
    if total.unanswered > 0 {
        let _ = writeln!(text, "# unanswered at the end: {}", total.unanswered);
    }
    text
}

fn summary(total: &Counters, length: Duration, pace: Pace) -> String {
    let seconds = length.as_secs_f64().max(1e-6);
    let rate = |count: u64| short(count as f64 / seconds);
    let mut text = format!(
        "# {:.2} s: {} answers ({}/s), {} connections ({}/s), {} bytes ({}bit/s)\n",
        length.as_secs_f64(),
        grouped(total.answers),
        rate(total.answers),
        grouped(total.connections),
        rate(total.connections),
        grouped(total.received),
        short(total.received as f64 * 8.0 / seconds),
    );
    if total.handshakes > 0 {
        let (handshakes, resumed) = (grouped(total.handshakes), grouped(total.resumed));
        let _ = writeln!(text, "# {handshakes} handshakes ({}/s), {resumed} of them resumed", rate(total.handshakes));
    }
    if total.packets > 0 {
        let _ =
            writeln!(text, "# {} packets sent, {} of them lost", grouped(total.packets), grouped(total.lost_packets));
    }
    if let Pace::Constant(offered) = pace {
        let _ = writeln!(text, "# {}/s were due, and times count from when each request was due", short(offered));
    }
    text.push_str("#               mean    p50    p90    p99  p99.9 p99.99 p99.999 p99.9999    max\n");
    row(&mut text, "first byte", &total.first_byte);
    row(&mut text, "last byte", &total.last_byte);
    if !total.reference.is_empty() {
        row(&mut text, "reference", &total.reference);
    }
    let codes = (100..).zip(total.statuses.iter()).filter(|(_, count)| **count > 0);
    let codes: Vec<String> = codes.map(|(code, count)| format!("{code}: {}", grouped(*count))).collect();
    if !codes.is_empty() {
        let _ = writeln!(text, "# status {}", codes.join(", "));
    }
    text
}

fn row(text: &mut String, name: &str, times: &Times) {
    const WIDTHS: &[usize] = &[6, 6, 6, 6, 6, 7, 8];
    let shown = |micros: f64| time((!times.is_empty()).then_some(micros / 1e6));
    let _ = write!(text, "# {name:<10}  {}", shown(times.mean() / 1e3));
    for (rank, width) in RANKS.iter().zip(WIDTHS) {
        let _ = write!(text, " {:>width$}", shown(percentile(times, *rank)));
    }
    let _ = writeln!(text, " {}", shown(percentile(times, 100.0)));
}

impl Show for Closing {
    fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
        Ok(())
    }

    fn second(&mut self, _: &Second, _: &Counters) -> Result<(), Outcome> {
        Ok(())
    }

    fn end(&mut self, total: &Counters, length: Duration) -> Result<(), Outcome> {
        let text = self.text(total, length);
        if text.is_empty() { Ok(()) } else { self.out.write(&text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::show::tests::{plan, total};

    fn closing(line: &[&str], summary: bool, total: &Counters) -> String {
        Closing::new(&plan(line), summary, Sink::Stdout).text(total, Duration::from_secs(2))
    }

    #[test]
    fn a_run_without_faults_ends_as_with_h1load() {
        assert_eq!(closing(&["a"], false, &Counters::new()), "");
        assert_eq!(closing(&["-P", "a"], false, &Counters::new()), table(&Counters::new()));
    }

    #[test]
    fn faults_are_told_apart_in_a_comment() {
        let mut faulty = Counters::new();
        (faulty.errors.connect, faulty.errors.reset, faulty.unanswered) = (3, 1, 9);
        assert_eq!(
            closing(&["a"], false, &faulty),
            "# errors: connect 3, timeout 0, reset 1, protocol 0, status 0\n# unanswered at the end: 9\n"
        );
    }

    #[test]
    fn the_summary_is_made_of_comments() {
        let text = closing(&["--constant", "50", "a"], true, &total());
        assert_eq!(
            text,
            "# 2.00 s: 1,000 answers (500./s), 4 connections (2.00/s), 1,062,000 bytes (4M24bit/s)\n\
             # 50.0/s were due, and times count from when each request was due\n\
             #               mean    p50    p90    p99  p99.9 p99.99 p99.999 p99.9999    max\n\
             # first byte  250.2u 250.1u 450.0u 495.1u 500.2u 500.2u  500.2u   500.2u 500.2u\n\
             # last byte   500.5u 500.2u 900.0u 990.2u 1.000m 1.000m  1.000m   1.000m 1.000m\n\
             # status 200: 990, 404: 10\n\
             # errors: connect 0, timeout 0, reset 0, protocol 0, status 10\n"
        );
    }

    #[test]
    fn without_an_answer_there_is_no_time() {
        let text = closing(&["a"], true, &Counters::new());
        let row = text.lines().find(|line| line.starts_with("# last byte")).expect("a row");
        assert_eq!(row.split_whitespace().skip(3).collect::<Vec<_>>(), ["-"; 9]);
    }
}
