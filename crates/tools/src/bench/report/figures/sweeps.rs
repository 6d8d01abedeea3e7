//! The charts of sweeps: size, offered rate, workers, connections. Must never connect points that
//! differ in anything else.

use super::{Figure, MOST_PANELS, Panel};
use crate::bench::report::chart::{Axis, Colour, Key, Sample, Stroke};
use crate::bench::report::drawing::Chart;
use crate::bench::report::lines::{LinePoint, Lines, Series};
use crate::bench::report::quantity::Unit;
use crate::bench::report::scale::Form;
use crate::bench::report::statistics::{self, AVERAGED, DROPPED, Spread};
use crate::bench::report::summary::{self, Measured, Summary, Sweep, SweepParameter};
use crate::bench::results::Round;

/// Share of the offered rate below which a proxy counts as collapsed.
const KEPT_UP: f64 = 0.95;

/// Chart of a sweep: its axes, and the value of each point.
struct Plot<'p> {
    title: &'p str,
    along: SweepParameter,
    x: Axis,
    y: Axis,
    figure: &'p dyn Fn(&Measured<'_>) -> Option<Spread>,
    hollow: &'p dyn Fn(&Measured<'_>) -> bool,
    keys: Vec<Key>,
}

impl Plot<'_> {
    /// Returns the chart of one sweep; `None` if it has no points.
    fn panel(&self, summary: &Summary<'_>, sweep: &Sweep<'_>) -> Option<Panel> {
        let ends = sweep.values();
        let series = (0..summary.ways.len()).map(|way| self.series(summary, sweep, way, &ends));
        let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
        let fixed = sweep.fixed.words(Some(self.along));
        let hollow = series.iter().any(|series| series.points.iter().any(|spot| spot.hollow));
        let mut x = self.x.clone();
        x.ticks = Some(ends);
        let lines = Lines {
            title: format!("{}, {fixed}", self.title),
            x,
            y: self.y.clone(),
            keys: if hollow { self.keys.clone() } else { Vec::new() },
            series,
        };
        (!lines.is_empty()).then_some(Panel { heading: fixed, chart: Chart::Lines(lines) })
    }

    fn series(&self, summary: &Summary<'_>, sweep: &Sweep<'_>, way: usize, ends: &[f64]) -> Series {
        let known = &summary.ways[way];
        let mut points: Vec<LinePoint> =
            sweep.of_way(way).filter_map(|(x, each)| self.spot(summary, x, each)).collect();
        points.dedup_by(|a, b| a.x == b.x);
        // Workers are those of a proxy: the direct way is drawn at the same height for every number of them.
        let level = self.along == SweepParameter::Workers && known.colour == Colour::Direct;
        if level && let Some(best) = points.iter().max_by(|a, b| a.y.total_cmp(&b.y)).cloned() {
            let at = |x: &f64| LinePoint { x: *x, range: None, ..best.clone() };
            points = ends.first().map(at).into_iter().chain(ends.last().map(at)).collect();
        }
        Series {
            name: known.label.clone(),
            colour: known.colour,
            stroke: if level { Stroke::Dashed } else { Stroke::Bold },
            label: Some(known.label.clone()),
            marked: !level,
            points,
        }
    }

    fn spot(&self, summary: &Summary<'_>, x: f64, measured: &Measured<'_>) -> Option<LinePoint> {
        let spread = (self.figure)(measured)?;
        let (name, at) = (&summary.way(measured).label, self.x.unit.show(x));
        let unit = self.y.unit;
        let (median, low, high) = (unit.show(spread.median), unit.show(spread.low), unit.show(spread.high));
        let range =
            if spread.count > 1 { format!(" ({low} to {high} in {} rounds)", spread.count) } else { String::new() };
        Some(LinePoint {
            x,
            y: spread.median,
            range: Some((spread.low, spread.high)),
            hollow: (self.hollow)(measured),
            hover: format!("{name}, {at}: {median}{range}"),
        })
    }

    /// Returns the charts of the largest sweeps, ordered by their fixed setting.
    fn panels(&self, summary: &Summary<'_>, least: usize, most: usize) -> Vec<Panel> {
        let mut sweeps = summary.sweeps(self.along, least);
        sweeps.truncate(most);
        sweeps.sort_by_key(|sweep| (sweep.fixed.size, sweep.fixed.workers, sweep.fixed.connections));
        sweeps.iter().filter_map(|sweep| self.panel(summary, sweep)).collect()
    }
}

fn axis(label: &str, form: Form, unit: Unit) -> Axis {
    Axis { label: label.to_owned(), form, unit, ticks: None }
}

fn never(_: &Measured<'_>) -> bool {
    false
}

/// Returns the mean of the best seconds of each round, and its median over the rounds.
fn best(
    measured: &Measured<'_>,
    second: fn(&crate::load::record::Counts) -> f64,
    round: fn(&Round) -> Option<f64>,
) -> Option<Spread> {
    measured.spread(|each| {
        let seconds = summary::seconds(each);
        let best = statistics::best_seconds(seconds.map(|counts| second(counts) / counts.length));
        // A round without samples still has its mean.
        best.map(|best| best.mean).or_else(|| round(each))
    })
}

/// Sweep of object sizes: requests and gigabits per second.
pub fn sizes(summary: &Summary<'_>) -> Figure {
    let x = axis("size of the object, logarithmic", Form::Logarithmic, Unit::Size);
    let hits = Plot {
        title: "Requests a second against the size of the object",
        along: SweepParameter::Size,
        x: x.clone(),
        y: axis("requests a second", Form::Linear, Unit::Count),
        figure: &|each| best(each, |counts| counts.answers as f64, summary::rate),
        hollow: &never,
        keys: Vec::new(),
    };
    let name = |what: &str, panel: Panel| Panel { heading: format!("{what}: {}", panel.heading), ..panel };
    let mut panels: Vec<Panel> = hits.panels(summary, 3, 1);
    panels = panels.into_iter().map(|panel| name("Requests a second", panel)).collect();
    let bits = Plot {
        title: "Gigabits a second against the size of the object",
        y: axis("Gbit/s received by the load", Form::Linear, Unit::Plain),
        figure: &|each| best(each, |counts| counts.received as f64 * 8.0 / 1e9, summary::gigabits),
        x,
        ..hits
    };
    panels.extend(bits.panels(summary, 3, 1).into_iter().map(|panel| name("Gbit/s", panel)));
    let text = format!(
        "Each round counts with the mean of its {AVERAGED} best seconds after the {DROPPED} best were dropped, and the \
         point is the median of the rounds, the line through it their range. {}",
        seconds_used(summary)
    );
    Figure::new("3-object-sizes", "Object sizes", panels, text)
}

/// Returns a sentence about rounds that were too short for the rule of the best seconds.
fn seconds_used(summary: &Summary<'_>) -> String {
    let sweeps = summary.sweeps(SweepParameter::Size, 3);
    let rounds = sweeps.iter().take(1).flat_map(|sweep| &sweep.steps).flat_map(|(_, each)| &each.rounds);
    let lengths: Vec<usize> = rounds.map(|round| summary::seconds(round).count()).collect();
    let (least, most) = (lengths.iter().min().copied().unwrap_or(0), lengths.iter().max().copied().unwrap_or(0));
    if least >= DROPPED + AVERAGED {
        return "All rounds were long enough for that.".to_owned();
    }
    let span = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    let fifth = if least == most && least > 0 {
        format!(" (here {} dropped, {} averaged)", least / 5, (least - least / 5).min(AVERAGED))
    } else {
        String::new()
    };
    format!(
        "The rounds of this run have {span} seconds: where there are fewer than {}, the best fifth is dropped, rounded \
         down, and the others are averaged{fifth}; where there is none the whole round counts.",
        DROPPED + AVERAGED
    )
}

/// The 99th percentile against the offered rate.
pub fn offered(summary: &Summary<'_>) -> Figure {
    let collapsed = |each: &Measured<'_>| {
        // The best seconds: the slow ones of a ramp-up are not relevant.
        let reached = best(each, |counts| counts.answers as f64, summary::rate).map_or(0.0, |rate| rate.median);
        each.point.rate.is_some_and(|offered| reached < offered * KEPT_UP)
    };
    let text = "fewer than 95 % of what was offered is answered".to_owned();
    let plot = Plot {
        title: "99th percentile of latency against the offered rate",
        along: SweepParameter::Rate,
        x: axis("requests a second offered", Form::Linear, Unit::Count),
        y: axis("99th percentile of the time to the last byte, logarithmic", Form::Logarithmic, Unit::Micros),
        figure: &|each| each.spread(|round| summary::percentile(round, 99.0)),
        hollow: &collapsed,
        keys: vec![Key { sample: Sample::Hollow, colour: Colour::Neutral, text }],
    };
    let panels = plot.panels(summary, 2, MOST_PANELS);
    let text = "Medians of the rounds, the line through a point is their range. Times count from the moment at which a \
                request was due. A hollow mark is the collapse: even in its best seconds the proxy answered fewer than 95 % of \
                what was offered.";
    Figure::new("5-offered-rate", "Latency up to the collapse", panels, text.to_owned())
}

/// Requests per second against workers.
pub fn workers(summary: &Summary<'_>) -> Figure {
    let plot = Plot {
        title: "Requests a second against workers",
        along: SweepParameter::Workers,
        x: axis("workers (threads of the proxy)", Form::Linear, Unit::Plain),
        y: axis("requests a second", Form::Linear, Unit::Count),
        figure: &|each| each.spread(summary::rate),
        hollow: &never,
        keys: Vec::new(),
    };
    let panels = plot.panels(summary, 2, MOST_PANELS);
    let text = "Medians of the rounds, the line through a point is their range. The dashed line is the way without a \
                proxy. Where load and origin share the cores with the proxy, they bound it too.";
    Figure::new("6-workers", "Requests a second against workers", panels, text.to_owned())
}

/// Memory against connections.
pub fn memory(summary: &Summary<'_>) -> Figure {
    let known = summary.sweeps(SweepParameter::Connections, 2);
    let values: Vec<f64> = known.iter().flat_map(Sweep::values).collect();
    let spread = Spread::of(values).and_then(|spread| statistics::ratio(spread.high, spread.low));
    let (form, how) = match spread {
        Some(times) if times > 30.0 => (Form::Logarithmic, ", logarithmic"),
        _ => (Form::Linear, ""),
    };
    let plot = Plot {
        title: "Memory against connections",
        along: SweepParameter::Connections,
        x: axis(&format!("connections of the load{how}"), form, Unit::Count),
        y: axis(&format!("anonymous memory of the proxy{how}"), form, Unit::Memory),
        figure: &|each| each.spread(summary::memory),
        hollow: &never,
        keys: Vec::new(),
    };
    let panels = plot.panels(summary, 2, MOST_PANELS);
    let text = "Anonymous memory of all processes of the proxy at the end of the round, the connections still open. \
                What a connection costs is in the table of medians: the growth since before the first one, divided by \
                the connections, from 1,000 of them on.";
    Figure::new("7-memory", "Memory against connections", panels, text.to_owned())
}
