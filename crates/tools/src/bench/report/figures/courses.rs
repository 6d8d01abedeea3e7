//! The charts of one setting: seconds, latencies, CPU. Must never compare different settings in one chart.

use super::{Figure, MOST_PANELS, Panel};
use crate::bench::figures;
use crate::bench::report::bars::{Bar, Bars, Group};
use crate::bench::report::chart::{Axis, Colour, Key, Sample, Stroke};
use crate::bench::report::drawing::Chart;
use crate::bench::report::lines::{LinePoint, Lines, Series};
use crate::bench::report::quantity::{Unit, grouped};
use crate::bench::report::scale::Form;
use crate::bench::report::statistics;
use crate::bench::report::summary::{self, Measured, Setting, Summary};
use crate::bench::report::svg;
use crate::bench::results::Round;

/// Maximum number of rounds that are drawn of one way.
const MOST_ROUNDS: usize = 12;

/// Selects settings to draw, of those that have data; returns their panels and the number of all.
fn chosen(summary: &Summary<'_>, drawn: impl Fn(&Setting) -> Option<Panel>) -> (Vec<Panel>, usize) {
    let panels: Vec<Panel> = summary.settings.iter().take(1000).filter_map(drawn).collect();
    (statistics::evenly(&panels, MOST_PANELS), panels.len())
}

fn left_out(all: usize) -> String {
    if all <= MOST_PANELS {
        return String::new();
    }
    format!(" {MOST_PANELS} of {all} combinations are drawn; the table of medians has all of them.")
}

fn axis(label: &str, form: Form, unit: Unit) -> Axis {
    Axis { label: label.to_owned(), form, unit, ticks: None }
}

/// Requests per second over time.
pub fn over_time(summary: &Summary<'_>) -> Figure {
    let (panels, all) = chosen(summary, |setting| {
        let measured = summary.within(setting);
        // Bold lines are drawn above all thin ones.
        let thin = measured.iter().flat_map(|each| seconds(summary, each, Stroke::Thin));
        let bold = measured.iter().flat_map(|each| seconds(summary, each, Stroke::Bold));
        let key =
            |stroke, text: &str| Key { sample: Sample::Line(stroke), colour: Colour::Neutral, text: text.to_owned() };
        let several = measured.iter().any(|each| each.rounds.len() > 1);
        let lines = Lines {
            title: format!("Requests a second over time, {}", setting.text()),
            x: axis("seconds since the round began", Form::Linear, Unit::Plain),
            y: axis("requests a second", Form::Linear, Unit::Count),
            series: thin.chain(bold).collect(),
            keys: if several {
                vec![key(Stroke::Bold, "median round"), key(Stroke::Thin, "other rounds")]
            } else {
                Vec::new()
            },
        };
        (!lines.is_empty()).then(|| Panel { heading: setting.text(), chart: Chart::Lines(lines) })
    });
    let text = "Complete answers in each second. The bold line is the round whose total is closest to the median, the \
                thin ones are the other rounds; the number is the median over the rounds, each from its beginning to its end. \
                More than 300 seconds are averaged in equal groups.";
    Figure::new("1-requests-over-time", "Requests a second over time", panels, text.to_owned() + &left_out(all))
}

fn seconds(summary: &Summary<'_>, measured: &Measured<'_>, stroke: Stroke) -> Vec<Series> {
    let way = summary.way(measured);
    let middle = measured.middle();
    let rounds =
        measured.rounds.iter().enumerate().filter(|(index, _)| (Some(*index) == middle) == (stroke == Stroke::Bold));
    let rate = measured.spread(summary::rate).map(|rate| Unit::Count.show(rate.median)).unwrap_or_default();
    let series = |(index, round): (usize, &&Round)| {
        let second = |second: &crate::load::record::Counts| {
            let rate = statistics::ratio(second.answers as f64, second.length)?;
            second.at.is_finite().then(|| LinePoint::plain(second.at, rate))
        };
        let mean = summary::rate(round).map(|rate| Unit::Count.show(rate)).unwrap_or_default();
        Series {
            name: format!("{}, round {}: {mean} requests a second", way.label, index + 1),
            colour: way.colour,
            stroke,
            label: (stroke == Stroke::Bold).then(|| format!("{} {rate}", svg::fitting(&way.label, 14.0))),
            marked: false,
            points: stretched(round, summary::seconds(round).filter_map(second).collect()),
        }
    };
    rounds.take(MOST_ROUNDS).map(series).filter(|series| !series.points.is_empty()).collect()
}

/// Extends a round with a single sample to the length of that sample.
fn stretched(round: &Round, mut points: Vec<LinePoint>) -> Vec<LinePoint> {
    if let ([only], Some(second)) = (&points[..], summary::seconds(round).next()) {
        let begin = LinePoint::plain((only.x - second.length).max(0.0), only.y);
        points.insert(0, begin);
    }
    points
}

/// Percentiles of latency.
pub fn latency(summary: &Summary<'_>) -> Figure {
    let (panels, all) = chosen(summary, |setting| {
        let measured = summary.within(setting);
        let own = measured.iter().map(|each| tail(summary, each, false));
        let mut reference: Vec<Series> = measured.iter().map(|each| tail(summary, each, true)).collect();
        reference.retain(|series| !series.points.is_empty());
        let mut keys = Vec::new();
        if !reference.is_empty() {
            let key = |stroke, text: &str| Key {
                sample: Sample::Line(stroke),
                colour: Colour::Neutral,
                text: text.to_owned(),
            };
            keys =
                vec![key(Stroke::Bold, "the load's requests"), key(Stroke::Dashed, "the reference client's requests")];
        }
        let lines = Lines {
            title: format!("Percentiles of latency, {}", setting.text()),
            x: axis("percent of the answers that came sooner, each nine the same width", Form::Tail, Unit::Percentile),
            y: axis("time to the last byte, logarithmic", Form::Logarithmic, Unit::Micros),
            series: own.chain(reference).filter(|series| !series.points.is_empty()).collect(),
            keys,
        };
        (!lines.is_empty()).then(|| Panel { heading: setting.text(), chart: Chart::Lines(lines) })
    });
    let text = "For each percentile the median of the rounds. The way without a proxy shows what the load, the origin \
                and the machine need by themselves: what a proxy adds lies between. A line ends at the slowest answer.";
    Figure::new(
        "2-latency-percentiles",
        "Latency, direct and through each proxy",
        panels,
        text.to_owned() + &left_out(all),
    )
}

fn tail(summary: &Summary<'_>, measured: &Measured<'_>, reference: bool) -> Series {
    let way = summary.way(measured);
    let rows = measured.percentiles(reference);
    let drawn = rows.iter().filter(|(percentile, value)| (0.0..100.0).contains(percentile) && *value > 0.0);
    let points: Vec<LinePoint> = drawn.map(|&(percentile, value)| LinePoint::plain(percentile, value)).collect();
    let of = |wanted: f64| rows.iter().find(|row| (row.0 - wanted).abs() < 1e-9).map(|row| Unit::Micros.show(row.1));
    let who = if reference { ", reference client" } else { "" };
    let said: Vec<String> = [50.0, 99.0, 99.9].into_iter().filter_map(|p| Some(format!("{p}% {}", of(p)?))).collect();
    Series {
        name: format!("{}{who}: {}", way.label, said.join(", ")),
        colour: way.colour,
        stroke: if reference { Stroke::Dashed } else { Stroke::Bold },
        label: (!reference).then(|| way.label.clone()),
        marked: false,
        points,
    }
}

/// CPU per request.
pub fn processor(summary: &Summary<'_>) -> Figure {
    let mut groups: Vec<(Setting, Group)> = Vec::new();
    for setting in summary.settings.iter().take(1000) {
        let bars: Vec<Bar> = summary.within(setting).iter().filter_map(|each| bar(summary, each)).collect();
        if !bars.is_empty() {
            groups.push((*setting, Group { heading: Some(setting.text()), bars }));
        }
    }
    let all = groups.len();
    let panels = statistics::evenly(&groups, MOST_PANELS).into_iter().map(|(setting, mut group)| {
        group.heading = None;
        let key = |sample, text: &str| Key { sample, colour: Colour::Neutral, text: text.to_owned() };
        let mut keys = vec![key(Sample::Solid, "user"), key(Sample::Pale, "system")];
        if group.bars.iter().any(|bar| bar.range.is_some_and(|(low, high)| low < high)) {
            keys.push(key(Sample::Whisker, "least to greatest round"));
        }
        let bars = Bars {
            title: format!("CPU of the proxy a request, {}", setting.text()),
            axis: axis("µs of CPU a request", Form::Linear, Unit::PlainMicros),
            groups: vec![group],
            keys,
        };
        Panel { heading: setting.text(), chart: Chart::Bars(bars) }
    });
    let panels: Vec<Panel> = panels.collect();
    let text = "Time that all threads of the proxy spent on processors, divided by the complete answers of the round: \
                the median of the rounds, in user space and in the kernel.";
    Figure::new("4-cpu-per-request", "CPU a request", panels, text.to_owned() + &left_out(all))
}

fn bar(summary: &Summary<'_>, measured: &Measured<'_>) -> Option<Bar> {
    let way = summary.way(measured);
    let sum = measured.spread(summary::cpu)?;
    let cpu = figures::cpu(measured.point)?;
    let rounds = if sum.count == 1 { "1 round".to_owned() } else { format!("{} rounds", sum.count) };
    Some(Bar {
        name: way.label.clone(),
        colour: way.colour,
        parts: vec![cpu.user, cpu.system],
        range: Some((sum.low, sum.high)),
        note: format!("{} µs = {} + {}", grouped(cpu.whole()), grouped(cpu.user), grouped(cpu.system)),
        hover: format!(
            "{}: {} µs a request, {} user and {} system; {} to {} in {rounds}",
            way.label,
            grouped(cpu.whole()),
            grouped(cpu.user),
            grouped(cpu.system),
            grouped(sum.low),
            grouped(sum.high)
        ),
    })
}
