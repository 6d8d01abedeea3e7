//! Lines over an axis. Must never draw a point that is not finite, nor more points than can be seen.

use super::chart::{self, Axis, Colour, EDGE, Frame, Key, Sample, Stroke};
use super::scale::{Form, Scale};
use super::statistics;
use super::svg::{self, Anchor, Svg};

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// Accessible title.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines; later ones are drawn above earlier ones.
    pub series: Vec<Series>,
    /// Entries of the legend in addition to the series.
    pub keys: Vec<Key>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub colour: Colour,
    pub stroke: Stroke,
    /// Label at its end, and in the legend of a narrow chart.
    pub label: Option<String>,
    /// Whether its points are marked, as separate measurements.
    pub marked: bool,
    /// Points, from left to right.
    pub points: Vec<LinePoint>,
}

/// A point of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePoint {
    pub x: f64,
    pub y: f64,
    /// Lowest and highest round.
    pub range: Option<(f64, f64)>,
    /// The mark is not filled: the point has a different meaning.
    pub hollow: bool,
    /// Text of the tooltip.
    pub hover: String,
}

impl LinePoint {
    /// Returns a point without further properties.
    pub fn plain(x: f64, y: f64) -> Self {
        Self { x, y, range: None, hollow: false, hover: String::new() }
    }
}

/// Maximum number of points of a line, above the number of visible pixels.
const MOST_POINTS: usize = 300;
/// Maximum number of lines of a chart.
const MOST_SERIES: usize = 120;
/// Maximum number of labels at the ends of lines; with more of them the legend names the series.
const MOST_LABELS: usize = 12;

/// Distance of two labels, in units of the font size.
const SPACING: f64 = 1.25;

/// Positions of the chart's elements.
struct Layout {
    frame: Frame,
    size: (f64, f64),
    left: f64,
    /// Start of the horizontal axis: a mark needs space before it.
    begin: f64,
    right: f64,
    top: f64,
    bottom: f64,
    keys: Vec<Key>,
    labels: bool,
    x: Scale,
    y: Scale,
    x_ticks: Vec<(f64, String)>,
    y_ticks: Vec<(f64, String)>,
}

impl Layout {
    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.bottom - self.y.place(y)? * (self.bottom - self.top)))
    }

    fn across(&self, x: f64) -> Option<f64> {
        Some(self.begin + self.x.place(x)? * (self.right - self.begin))
    }
}

impl Lines {
    /// Whether there is no point to draw.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// Draws the chart; with a heading it is a file of its own.
    pub fn draw(&self, frame: Frame, id: &str, heading: Option<&str>) -> String {
        let layout = self.layout(frame, heading);
        let mut svg = chart::open(frame, layout.size.0, layout.size.1, id, &self.title, &self.description(), heading);
        chart::keys(Some(&mut svg), frame, chart::heading_room(heading), &layout.keys);
        self.axes(&mut svg, &layout);
        for series in self.series.iter().take(MOST_SERIES) {
            series.draw(&mut svg, &layout);
        }
        if layout.labels {
            self.labels(&mut svg, &layout);
        }
        svg.close()
    }

    fn layout(&self, frame: Frame, heading: Option<&str>) -> Layout {
        let font = frame.font();
        let labelled = self.series.iter().filter(|series| series.label.is_some() && !series.points.is_empty());
        let labels: Vec<&Series> = labelled.collect();
        let spots = || self.series.iter().take(MOST_SERIES).flat_map(|series| &series.points);
        let heights = spots().flat_map(|spot| {
            let (low, high) = spot.range.unwrap_or((spot.y, spot.y));
            [spot.y, low, high]
        });
        let x = Scale::over(self.x.form, spots().map(|spot| spot.x), true);
        let y = Scale::over(self.y.form, heights, false);
        let tall = if frame == Frame::Wide { 300.0 } else { 220.0 };
        let beside = frame == Frame::Wide && labels.len() <= MOST_LABELS && !crowded(&labels, &y, tall, font);
        let mut keys = self.keys.clone();
        if !beside {
            let named = labels.iter().map(|series| series.key());
            keys.splice(0..0, named.take(MOST_SERIES));
        }
        let named = |ticks: Vec<f64>, axis: &Axis| -> Vec<(f64, String)> {
            ticks.into_iter().map(|tick| (tick, axis.unit.show(tick))).collect()
        };
        let y_ticks = named(y.ticks(if self.y.form == Form::Logarithmic { 8 } else { 6 }), &self.y);
        let widest = y_ticks.iter().map(|(_, text)| svg::width(text)).fold(0.0, f64::max);
        let widest_label =
            labels.iter().filter_map(|series| series.label.as_deref()).map(svg::width).fold(0.0, f64::max);
        let room = if beside { (widest_label * svg::HEAVY * font + 24.0).clamp(24.0, 250.0) } else { 20.0 };
        let x_ticks = self.x.ticks.clone().unwrap_or_else(|| x.ticks(if frame == Frame::Wide { 10 } else { 5 }));
        let x_ticks = named(x_ticks, &self.x);
        // Half of the last tick's text extends beyond the end of the axis.
        let room = room.max(x_ticks.last().map_or(0.0, |(_, text)| svg::width(text) * font / 2.0));
        let (left, right) = (EDGE + widest * font + 8.0, frame.width() - EDGE - room);
        let marked = labels.iter().any(|series| series.marked) && self.x.form == Form::Logarithmic;
        let begin = left + if marked { 12.0 } else { 0.0 };
        let above = chart::heading_room(heading);
        let top = above + chart::keys(None, frame, above, &keys) + font * 2.4;
        let bottom = top + tall;
        let x_ticks = apart(x_ticks, &x, right - begin, font);
        let size = (frame.width(), bottom + font * 3.4);
        Layout { frame, size, left, begin, right, top, bottom, keys, labels: beside, x, y, x_ticks, y_ticks }
    }

    fn axes(&self, svg: &mut Svg, layout: &Layout) {
        let font = layout.frame.font();
        let (left, right, bottom) = (layout.left, layout.right, layout.bottom);
        if self.y.form == Form::Logarithmic {
            for up in layout.y.ticks(40).into_iter().filter_map(|tick| layout.y.place(tick)) {
                let y = bottom - up * (bottom - layout.top);
                svg.line("faint", left, y, right, y);
            }
        }
        for (tick, text) in &layout.y_ticks {
            let Some(up) = layout.y.place(*tick) else { continue };
            let y = bottom - up * (bottom - layout.top);
            svg.line("hair", left, y, right, y);
            svg.text("tick", left - 8.0, y + font * 0.35, Anchor::End, text);
        }
        svg.line("base", left, bottom, right, bottom);
        for (tick, text) in &layout.x_ticks {
            let Some(x) = layout.across(*tick) else { continue };
            svg.line("base", x, bottom, x, bottom + 5.0);
            svg.text("tick", x, bottom + font * 1.45, Anchor::Middle, text);
        }
        svg.text("axis", EDGE, layout.top - font, Anchor::Start, &self.y.label);
        let label = svg::fitting(&self.x.label, (layout.frame.width() - 2.0 * EDGE) / font);
        svg.text("axis", (left + right) / 2.0, bottom + font * 2.9, Anchor::Middle, &label);
    }

    /// Draws the labels of lines: directly after the end of the line if that space is free, else at the edge of the
    /// chart, moved apart until they do not overlap.
    fn labels(&self, svg: &mut Svg, layout: &Layout) {
        let font = layout.frame.font();
        let mut ends: Vec<(&Series, (f64, f64))> = Vec::new();
        let mut near: Vec<((f64, f64), f64)> = Vec::new();
        for series in self.series.iter().filter(|series| series.label.is_some()) {
            let end = series.points.iter().rev().find_map(|spot| layout.at(spot.x, spot.y));
            let Some((x, y)) = end else { continue };
            let extent = (x + 10.0, x + 14.0 + series.label_width() * font);
            let covered = near.iter().any(|(other, height)| {
                other.0 <= extent.1 && other.1 >= extent.0 && (height - y).abs() < font * SPACING
            });
            if covered || !self.is_free(layout, series, extent.0, extent.1, y) {
                ends.push((series, (x, y)));
                continue;
            }
            near.push((extent, y));
            series.label(svg, layout, extent.0, y, &[]);
        }
        ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let mut heights: Vec<f64> = ends.iter().map(|end| end.1.1).collect();
        push_apart(&mut heights, font * SPACING, layout.top, layout.bottom);
        for ((series, (x, y)), height) in ends.into_iter().zip(heights) {
            let place = layout.right + 18.0;
            let lead = [(x + 5.0, y), (place - 3.0, height)];
            let is_beside = (height - y).abs() <= 2.0 && layout.right - x <= 4.0;
            series.label(svg, layout, place, height, if is_beside { &[] } else { &lead });
        }
    }

    /// Whether a label of that extent and height is within the chart, and no other line crosses it.
    fn is_free(&self, layout: &Layout, own: &Series, from: f64, to: f64, height: f64) -> bool {
        let font = layout.frame.font();
        let crosses = |pair: &[LinePoint]| {
            let [one, other] = pair else { return false };
            let (Some(one), Some(other)) = (layout.at(one.x, one.y), layout.at(other.x, other.y)) else { return false };
            let (low, high) = (one.1.min(other.1), one.1.max(other.1));
            one.0 <= to && other.0 >= from && low <= height + font && high >= height - font
        };
        let others = || self.series.iter().filter(|series| !std::ptr::eq(*series, own));
        to <= layout.right && !others().any(|series| series.points.windows(2).any(crosses))
    }

    /// Returns a description in words: the end of each series that has a label.
    fn description(&self) -> String {
        let mut text = format!("{} against {}.", self.y.label, self.x.label);
        for series in self.series.iter().filter(|series| series.label.is_some()).take(MOST_LABELS) {
            let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else { continue };
            let at = |spot: &LinePoint| format!("{} at {}", self.y.unit.show(spot.y), self.x.unit.show(spot.x));
            text.push_str(&format!(" {}: from {} to {}.", series.name, at(first), at(last)));
        }
        text
    }
}

impl Series {
    /// Returns the width of the label, in units of the font size.
    fn label_width(&self) -> f64 {
        svg::width(self.label.as_deref().unwrap_or_default()) * svg::HEAVY
    }

    /// Draws the label, and the leader from the end of the line.
    fn label(&self, svg: &mut Svg, layout: &Layout, x: f64, y: f64, lead: &[(f64, f64)]) {
        let font = layout.frame.font();
        svg.group(&self.colour.class(), Some(&self.name));
        if !lead.is_empty() {
            svg.path("lead", lead);
        }
        let room = (layout.size.0 - EDGE - x) / font / svg::HEAVY;
        let text = svg::fitting(self.label.as_deref().unwrap_or_default(), room);
        svg.text("label", x, y + font * 0.35, Anchor::Start, &text);
        svg.end();
    }

    fn key(&self) -> Key {
        let sample = if self.marked { Sample::Mark } else { Sample::Line(self.stroke) };
        Key { sample, colour: self.colour, text: self.label.clone().unwrap_or_default() }
    }

    fn draw(&self, svg: &mut Svg, layout: &Layout) {
        let points: Vec<(f64, f64)> = self.points.iter().filter_map(|spot| layout.at(spot.x, spot.y)).collect();
        if points.is_empty() {
            return;
        }
        let seen = statistics::thin(&points, if layout.frame == Frame::Wide { MOST_POINTS } else { MOST_POINTS / 2 });
        svg.group(&self.colour.class(), Some(&self.name));
        if seen.len() > 1 {
            svg.path(&format!("line {}", self.stroke.class()), &seen);
        }
        if self.marked {
            for spot in self.points.iter().take(MOST_POINTS) {
                self.spot(svg, layout, spot);
            }
        } else if let [(x, y)] = seen[..] {
            svg.mark("mark", self.colour.shape(), x, y, 3.0);
        }
        svg.end();
    }

    fn spot(&self, svg: &mut Svg, layout: &Layout, spot: &LinePoint) {
        let Some((x, y)) = layout.at(spot.x, spot.y) else { return };
        svg.group("spot", Some(&spot.hover));
        let (low, high) = spot.range.unwrap_or((spot.y, spot.y));
        if let (Some(low), Some(high)) = (layout.at(spot.x, low), layout.at(spot.x, high))
            && low.1 - high.1 > 1.0
        {
            svg.line("range", low.0, low.1, high.0, high.1);
        }
        let class = if spot.hollow { "mark hollow" } else { "mark" };
        svg.mark(class, self.colour.shape(), x, y, if layout.frame == Frame::Wide { 4.0 } else { 3.5 });
        svg.mark("touch", 0, x, y, 10.0);
        svg.end();
    }
}

/// Maximum distance of a label from the end of its line; beyond it a legend is used.
const FAR: f64 = 32.0;

/// Whether the ends of the lines are too close for labels beside them.
fn crowded(labels: &[&Series], scale: &Scale, tall: f64, font: f64) -> bool {
    let end = |series: &&Series| series.points.iter().rev().find_map(|spot| scale.place(spot.y));
    let mut ends: Vec<f64> = labels.iter().filter_map(end).map(|place| place * tall).collect();
    ends.sort_by(f64::total_cmp);
    let mut moved = ends.clone();
    push_apart(&mut moved, font * SPACING, 0.0, tall);
    let extent = ends.last().zip(ends.first()).map_or(0.0, |(high, low)| high - low);
    let together = ends.len() > 2 && extent < font * 0.7 * (ends.len() - 1) as f64;
    together || ends.iter().zip(&moved).any(|(end, moved)| (end - moved).abs() > FAR)
}

/// Returns the ticks whose texts do not touch, from left to right; the last one is kept.
fn apart(ticks: Vec<(f64, String)>, scale: &Scale, width: f64, font: f64) -> Vec<(f64, String)> {
    let extent = |(tick, text): &(f64, String)| {
        let (middle, half) = (scale.place(*tick)? * width, svg::width(text) * font / 2.0 + 5.0);
        Some((middle - half, middle + half))
    };
    let Some(last) = ticks.iter().rev().find_map(extent) else { return Vec::new() };
    let mut kept: Vec<(f64, String)> = Vec::new();
    let mut free = f64::NEG_INFINITY;
    let count = ticks.len();
    for (index, tick) in ticks.into_iter().enumerate() {
        let Some((begin, end)) = extent(&tick) else { continue };
        let is_last = index + 1 == count;
        if is_last || begin >= free && end <= last.0 {
            free = end;
            kept.push(tick);
        }
    }
    kept
}

/// Moves ascending heights until neighbours have that distance and all are between the ends, as far as there is space.
fn push_apart(heights: &mut [f64], least: f64, top: f64, bottom: f64) {
    let room = (bottom - top).max(0.0);
    let least = if heights.len() > 1 { least.min(room / (heights.len() - 1) as f64) } else { least };
    let mut before = top - least;
    for height in heights.iter_mut() {
        *height = height.max(before + least);
        before = *height;
    }
    let mut behind = bottom + least;
    for height in heights.iter_mut().rev() {
        *height = height.min(behind - least);
        behind = *height;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_pushed_apart_and_stay_inside() {
        let mut heights = [10.0, 11.0, 12.0, 99.0, 100.0];
        push_apart(&mut heights, 15.0, 0.0, 100.0);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 15.0 - 1e-9), "{heights:?}");
        assert!(heights[0] >= 0.0 && heights[4] <= 100.0, "{heights:?}");
        let mut crowd = [50.0; 30];
        push_apart(&mut crowd, 15.0, 0.0, 100.0);
        assert!(crowd.iter().all(|height| (-1e-6..=100.0 + 1e-6).contains(height)), "{crowd:?}");
        push_apart(&mut [], 15.0, 0.0, 100.0);
    }

    #[test]
    fn ticks_that_would_touch_are_left_out() {
        let scale = Scale::over(super::super::scale::Form::Linear, [100.0], true);
        let ticks: Vec<_> = (0..=100).map(|tick| (f64::from(tick), tick.to_string())).collect();
        let kept = apart(ticks, &scale, 300.0, 12.0);
        assert!(kept.len() > 5 && kept.len() < 20, "{kept:?}");
        assert_eq!(kept.last().map(|(tick, _)| *tick), Some(100.0));
    }
}
