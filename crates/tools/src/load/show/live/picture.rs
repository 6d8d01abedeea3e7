//! Content of the live view: the state kept from second to second, and its lines. Must never grow with the
//! length of a run.

use super::line::{Line, Style};
use crate::load::counters::{Counters, Times};
use crate::load::plan::{Pace, Plan};
use crate::load::record::{classes, percentile};
use crate::load::show::Second;
use crate::load::show::number::{grouped, human, human_time};
use std::collections::VecDeque;
use std::time::Duration;

/// Number of seconds in the charts: the widest terminal.
const MEMORY: usize = 512;
/// Width of the labels before a chart, in columns.
const MARGIN: usize = 12;
/// Height of the chart of rates, in rows.
const CHART: usize = 4;
/// Eighths of a cell.
const BLOCKS: &[char] = &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const RANKS: &[f64] = &[50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// State of the view.
#[derive(Debug)]
pub struct Picture {
    title: String,
    pace: Pace,
    duration: Option<Duration>,
    requests: Option<u64>,
    /// Responses per second and the 99th percentile in microseconds, oldest first.
    rates: VecDeque<f64>,
    tails: VecDeque<f64>,
    peak: f64,
    /// The last second, and the counters of the whole run so far.
    last: Option<(Second, Counters)>,
}

impl Picture {
    /// Creates the view of a plan, before the run.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let first = plan.targets.first().map_or("", |target| target.url.as_str());
        let more = match plan.targets.len() {
            0 | 1 => String::new(),
            number => format!(" and {} more", number - 1),
        };
        Self {
            title: format!("{first}{more}, {} connections, {} threads", plan.connections, plan.threads),
            pace: plan.pace,
            duration: plan.duration,
            requests: plan.requests,
            rates: VecDeque::new(),
            tails: VecDeque::new(),
            peak: 0.0,
            last: None,
        }
    }

    /// Records a second.
    pub fn take(&mut self, second: &Second, total: &Counters) {
        // The short last interval is not used for rates.
        if second.length >= Duration::from_millis(500) || self.last.is_none() {
            let rate = second.counters.answers as f64 / second.length.as_secs_f64().max(1e-6);
            self.peak = self.peak.max(rate);
            for (row, value) in
                [(&mut self.rates, rate), (&mut self.tails, percentile(&second.counters.last_byte, 99.0))]
            {
                row.push_back(value);
                if row.len() > MEMORY {
                    row.pop_front();
                }
            }
        }
        self.last = Some((second.clone(), total.clone()));
    }

    /// Returns the lines for a terminal of that width.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let mut lines = vec![Line::new().with(Style::Bold, "weir load ").with(Style::Plain, self.title.clone())];
        let Some((second, total)) = &self.last else {
            lines.push(Line::new().with(Style::Dim, "the first second has not passed yet; Ctrl-C ends the run"));
            return lines;
        };
        lines.push(self.progress(second, total, width));
        lines.push(Line::new());
        self.rates(&mut lines, second, total, width);
        lines.push(Line::new());
        self.times(&mut lines, second, total, width);
        lines.push(Line::new());
        lines.push(statuses(second, total));
        lines.push(errors(total));
        lines.push(connections(second, total));
        lines
    }

    /// Returns the progress line.
    fn progress(&self, second: &Second, total: &Counters, width: usize) -> Line {
        let seconds = second.at.as_secs();
        let of_time = self.duration.map(|all| second.at.as_secs_f64() / all.as_secs_f64());
        let of_requests = self.requests.map(|all| total.answers as f64 / all as f64);
        let Some(done) = of_time.into_iter().chain(of_requests).reduce(f64::max) else {
            return Line::new().with(Style::Dim, format!("{seconds} s, until Ctrl-C"));
        };
        let done = done.clamp(0.0, 1.0);
        let room = width.saturating_sub(24).min(60);
        let full = (done * room as f64) as usize;
        Line::new()
            .with(Style::Green, "━".repeat(full))
            .with(Style::Dim, "━".repeat(room - full))
            .with(Style::Plain, format!(" {:.0} %", (done * 100.0).floor()))
            .with(Style::Dim, format!(", {seconds} s"))
    }

    fn rates(&self, lines: &mut Vec<Line>, second: &Second, total: &Counters, width: usize) {
        let now = self.rates.back().copied().unwrap_or(0.0);
        let mean = total.answers as f64 / second.at.as_secs_f64().max(1e-6);
        let mut line = label("answers/s")
            .with(Style::Bold, human(now, ""))
            .with(Style::Dim, "   mean ")
            .with(Style::Plain, human(mean, ""))
            .with(Style::Dim, "   peak ")
            .with(Style::Plain, human(self.peak, ""));
        if let Pace::Constant(rate) | Pace::AtMost(rate) = self.pace {
            line = line.with(Style::Dim, "   asked for ").with(Style::Plain, human(rate, ""));
        }
        lines.push(line);
        for row in chart(&self.rates, width.saturating_sub(MARGIN), CHART) {
            lines.push(label("").with(Style::Blue, row));
        }
    }

    fn times(&self, lines: &mut Vec<Line>, second: &Second, total: &Counters, width: usize) {
        let heading = ["p50", "p90", "p99", "p99.9", "p99.99", "max"].map(|rank| format!("{rank:>8}")).concat();
        lines.push(label("last byte").with(Style::Dim, heading));
        let mut rows = vec![("this second", &second.counters.last_byte), ("whole run", &total.last_byte)];
        if !total.reference.is_empty() {
            rows.push(("reference", &total.reference));
        }
        for (name, times) in rows {
            let shown: String = RANKS.iter().map(|rank| format!("{:>8}", shown(times, *rank))).collect();
            lines.push(label(name).with(Style::Bold, shown));
        }
        for row in chart(&self.tails, width.saturating_sub(MARGIN), 1) {
            lines.push(label("p99").with(Style::Yellow, row));
        }
    }
}

fn label(name: &str) -> Line {
    Line::new().with(Style::Dim, format!("{name:<MARGIN$}"))
}

fn shown(times: &Times, rank: f64) -> String {
    human_time((!times.is_empty()).then(|| percentile(times, rank) / 1e6))
}

fn statuses(second: &Second, total: &Counters) -> Line {
    let (now, all) = (classes(&second.counters), classes(total));
    let mut line = label("statuses");
    for (index, style) in [Style::Plain, Style::Green, Style::Plain, Style::Yellow, Style::Red].into_iter().enumerate()
    {
        let style = if all[index] == 0 { Style::Dim } else { style };
        let more = if now[index] > 0 { format!(" (+{})", grouped(now[index])) } else { String::new() };
        line =
            line.with(Style::Dim, format!("{}xx ", index + 1)).with(style, format!("{}{more}   ", grouped(all[index])));
    }
    line
}

fn errors(total: &Counters) -> Line {
    let errors = &total.errors;
    let kinds = [
        ("connect", errors.connect),
        ("timeout", errors.timeout),
        ("reset", errors.reset),
        ("protocol", errors.protocol),
    ];
    kinds.iter().fold(label("errors"), |line, (name, count)| {
        let style = if *count == 0 { Style::Dim } else { Style::Red };
        line.with(Style::Dim, format!("{name} ")).with(style, format!("{}   ", grouped(*count)))
    })
}

fn connections(second: &Second, total: &Counters) -> Line {
    let bits = second.counters.received as f64 * 8.0 / second.length.as_secs_f64().max(1e-6);
    label("connections")
        .with(Style::Plain, format!("{} open", grouped(second.open)))
        .with(Style::Dim, "   begun ")
        .with(Style::Plain, grouped(total.connections))
        .with(Style::Dim, "   received ")
        .with(Style::Plain, format!("{}, {}", human(total.received as f64, "B"), human(bits, "bit/s")))
}

/// Draws columns of blocks: the last values that fit, scaled to the highest of them, as rows from the top.
fn chart(values: &VecDeque<f64>, width: usize, rows: usize) -> Vec<String> {
    let shown: Vec<f64> = values.iter().copied().skip(values.len().saturating_sub(width)).collect();
    let highest = shown.iter().copied().fold(0.0, f64::max);
    let eighths = |value: f64| {
        let full = (rows * 8) as f64;
        if highest > 0.0 { (value / highest * full).round() as usize } else { 0 }
    };
    let row = |row: usize| {
        let below = (rows - 1 - row) * 8;
        shown.iter().map(|value| BLOCKS[eighths(*value).saturating_sub(below).min(8)]).collect()
    };
    (0..rows).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::show::tests::{plan, second, total};

    fn text(picture: &Picture, width: usize) -> Vec<String> {
        picture.lines(width).iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn everything_is_shown() {
        let mut picture = Picture::new(&plan(&["-c", "4", "-d", "8", "--constant", "2k", "a/x", "a/y"]));
        let mut total = total();
        total.errors.timeout = 1;
        total.reference.record(2_000_000);
        picture.take(&second(1), &total);
        picture.take(&second(2), &total);
        assert_eq!(
            text(&picture, 80),
            [
                "weir load a/x and 1 more, 4 connections, 1 threads",
                "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 25 %, 2 s",
                "",
                "answers/s   1 k   mean 500   peak 1 k   asked for 2 k",
                "            ██",
                "            ██",
                "            ██",
                "            ██",
                "",
                "last byte        p50     p90     p99   p99.9  p99.99     max",
                "this second   500 µs  900 µs  990 µs    1 ms    1 ms    1 ms",
                "whole run     500 µs  900 µs  990 µs    1 ms    1 ms    1 ms",
                "reference       2 ms    2 ms    2 ms    2 ms    2 ms    2 ms",
                "p99         ██",
                "",
                "statuses    1xx 0   2xx 990 (+990)   3xx 0   4xx 10 (+10)   5xx 0",
                "errors      connect 0   timeout 1   reset 0   protocol 0",
                "connections 4 open   begun 4   received 1.06 MB, 8.49 Mbit/s",
            ]
        );
    }

    #[test]
    fn nothing_is_shown_of_nothing() {
        assert_eq!(text(&Picture::new(&plan(&["a"])), 80).len(), 2);
        let mut picture = Picture::new(&plan(&["a"]));
        let empty = Second { counters: Counters::new(), ..second(1) };
        picture.take(&empty, &Counters::new());
        let lines = text(&picture, 80);
        assert_eq!(lines[1], "1 s, until Ctrl-C");
        assert!(
            lines.iter().any(|line| line == "this second        -       -       -       -       -       -"),
            "{lines:#?}"
        );
    }

    #[test]
    fn charts_show_the_last_values_against_their_highest() {
        let values = VecDeque::from([800.0, 0.0, 1.0, 2.0, 4.0]);
        assert_eq!(chart(&values, 4, 1), [" ▂▄█"]);
        assert_eq!(chart(&values, 4, 2), ["   █", " ▄██"]);
        assert_eq!(chart(&VecDeque::from([0.0]), 4, 1), [" "]);
        assert_eq!(chart(&values, 0, 1), [""]);
    }

    #[test]
    fn narrow_terminals_and_long_runs_are_no_accident() {
        let mut picture = Picture::new(&plan(&["-n", "10", "a"]));
        for at in 1..2000 {
            picture.take(&second(at), &total());
        }
        assert_eq!((picture.rates.len(), picture.tails.len()), (MEMORY, MEMORY));
        for width in [0, 1, 11, 12, 23, 24, 10_000] {
            assert!(picture.lines(width).len() > 10);
        }
    }

    #[test]
    fn the_rest_of_a_second_is_no_rate() {
        let mut picture = Picture::new(&plan(&["a"]));
        picture.take(&second(1), &total());
        picture.take(&Second { length: Duration::from_millis(1), ..second(2) }, &total());
        assert_eq!((picture.rates.len(), picture.peak), (1, 1000.0));
    }
}
