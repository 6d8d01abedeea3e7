//! Sends the metrics to a collector (`otel-metrics`): parses the text of the exporter and encodes it as OTLP, so that
//! both have the same metrics under the same names. Must never hold more points than one item has, and must yield to
//! other tasks.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::telemetry::{Channel, nanoseconds};
use engine::worker::Worker;
use policy::program::OtelMetrics;
use wire::otlp::{Message, Metric, Point, Shape, Value};

use super::output::{KeptLabels, Output, ScrapePosition};
use super::selection::Selection;
use crate::statistics::process::look;

/// Maximum number of points in an item.
const MOST_POINTS: usize = 64;
/// Interval to retry when the channel is full.
const LOOK: Duration = Duration::from_millis(50);

/// Sends the metrics at each interval, as long as the newest configuration uses the channel for it.
pub(crate) async fn send(worker: Rc<Worker>, channel: Arc<Channel>) {
    let mut next = rt::now();
    loop {
        let generation = worker.generation();
        let is_wanted = generation.channels.iter().any(|known| Arc::ptr_eq(known, &channel));
        let Some(plan) = generation.program.otel_metrics.clone().filter(|_| is_wanted) else { return };
        drop(generation);
        // If a round takes longer than the interval, missed rounds are skipped.
        next = (next + plan.interval).max(rt::now());
        rt::sleep_until(next).await;
        round(&worker, &channel, &plan).await;
    }
}

/// Sends all metrics once.
async fn round(worker: &Rc<Worker>, channel: &Channel, plan: &OtelMetrics) {
    let here = engine::on_every_worker(&worker.process, look).await;
    let generation = worker.generation();
    let selection = Selection::of(plan);
    let output = Output { worker, generation: &generation, selection: &selection, here: &here };
    let mut encoder = Encoder {
        start: nanoseconds(worker.process.host.started().1),
        time: nanoseconds(rt::wall()),
        ..Encoder::default()
    };
    let deadline = rt::now() + plan.interval;
    let mut place = Some(ScrapePosition::default());
    let (mut labels, mut text) = (KeptLabels::default(), String::new());
    while let Some(at) = place {
        place = output.write(at, &mut labels, &mut text);
        encoder.read(&text, &mut |item| channel.push(worker.id, item));
        text.clear();
        while channel.is_half_full() && rt::now() < deadline {
            rt::sleep(LOOK).await;
        }
        rt::yield_now().await;
    }
    encoder.finish(&mut |item| channel.push(worker.id, item));
}

/// Encodes the exporter's text.
#[derive(Debug, Default)]
struct Encoder {
    /// Start of sums, and the time of the values: nanoseconds since the Unix epoch.
    start: u64,
    time: u64,
    name: String,
    help: String,
    is_sum: bool,
    /// Encoded points of the current metric.
    points: Vec<u8>,
    count: usize,
}

impl Encoder {
    /// Parses complete lines; calls `push` with each complete item.
    fn read(&mut self, text: &str, push: &mut impl FnMut(Vec<u8>)) {
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                self.finish(push);
                let (name, help) = help.split_once(' ').unwrap_or((help, ""));
                (self.name, self.help) = (name.to_owned(), help.to_owned());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                self.is_sum = kind.ends_with(" counter");
            } else {
                self.point(line);
                if self.count == MOST_POINTS {
                    self.finish(push);
                }
            }
        }
    }

    fn point(&mut self, line: &str) {
        let Some((series, value)) = line.rsplit_once(' ') else { return };
        // A value that is not a number has no point.
        let Some(value) = value.parse::<f64>().ok().filter(|value| value.is_finite()) else { return };
        let start = if self.is_sum { self.start } else { 0 };
        let labels = series.find('{').map_or("", |at| &series[at + 1..]);
        Message::new(&mut self.points).point(&Point { start, time: self.time, value }, |point| {
            Labels(labels).for_each(|(name, value)| {
                point.point_attribute(name, Value::Text(value.as_bytes()));
            });
        });
        self.count += 1;
    }

    /// Passes the current item to `push`.
    fn finish(&mut self, push: &mut impl FnMut(Vec<u8>)) {
        if self.count == 0 {
            return;
        }
        let shape = if self.is_sum { Shape::Sum { is_monotonic: true } } else { Shape::Gauge };
        let mut item = Vec::with_capacity(self.points.len() + 256);
        let metric = Metric { name: &self.name, description: &self.help, unit: unit(&self.name) };
        metric.write(&mut item, shape, |points| points.raw(&self.points));
        push(item);
        self.points.clear();
        self.count = 0;
    }
}

/// Returns the unit (UCUM) for a name's suffix.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    if name.ends_with("_bytes") {
        "By"
    } else if name.ends_with("_seconds") {
        "s"
    } else {
        ""
    }
}

/// Iterates over the labels of a line, which begins after its opening brace.
struct Labels<'a>(&'a str);

impl<'a> Iterator for Labels<'a> {
    type Item = (&'a str, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.0.split_once("=\"")?;
        let mut is_escaped = false;
        let end = rest.bytes().position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        })?;
        let (value, behind) = (&rest[..end], &rest[end + 1..]);
        self.0 = behind.strip_prefix(',').unwrap_or_default();
        Some((name, unescaped(value)))
    }
}

fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped })),
            character => out.push(character),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_written() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)]);
        let rows: &[Row<'_>] = &[
            ("", &[]),
            ("}", &[]),
            ("a=\"b\"}", &[("a", "b")]),
            ("a=\"b\",c=\"\"}", &[("a", "b"), ("c", "")]),
            ("a=\"x \\\"y\\\",z=\\\"\\\\\",b=\"l\\n\"}", &[("a", "x \"y\",z=\"\\"), ("b", "l\n")]),
            ("a=\"open", &[]),
        ];
        for (text, wanted) in rows {
            let read: Vec<(&str, Cow<'_, str>)> = Labels(text).collect();
            let read: Vec<(&str, &str)> = read.iter().map(|(name, value)| (*name, &**value)).collect();
            assert_eq!(read, *wanted, "{text}");
        }
    }

    #[test]
    fn items_hold_one_metric_and_a_bounded_number_of_points() {
        let mut encoder = Encoder { start: 1, time: 2, ..Encoder::default() };
        let mut items = Vec::new();
        let mut push = |item: Vec<u8>| items.push(item);
        encoder.read("# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"y\"} 3\n", &mut push);
        // The second piece of the same metric.
        encoder.read("a_total{x=\"z\"} 4\na_total NaN\n", &mut push);
        encoder.read("# HELP b_bytes B.\n# TYPE b_bytes gauge\n", &mut push);
        encoder.read(&"b_bytes 1\n".repeat(MOST_POINTS + 1), &mut push);
        encoder.finish(&mut push);
        encoder.finish(&mut push);
        let has = |item: &[u8], text: &str| item.windows(text.len()).any(|part| part == text.as_bytes());
        assert_eq!(items.len(), 3);
        assert!(has(&items[0], "a_total") && has(&items[0], "y") && has(&items[0], "z") && !has(&items[0], "b_bytes"));
        assert!(items[1..].iter().all(|item| has(item, "b_bytes") && has(item, "By")));
        assert!(items[2].len() < items[1].len());
    }
}
