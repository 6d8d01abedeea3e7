//! Horizontal bars stacked from zero, with whiskers. Must never start a bar anywhere but at zero.

use super::chart::{self, Axis, Colour, EDGE, Frame, Key};
use super::scale::Scale;
use super::svg::{self, Anchor, Svg};

/// A chart of bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// Accessible title.
    pub title: String,
    /// Axis of a bar's length; always linear.
    pub axis: Axis,
    /// Groups from top to bottom.
    pub groups: Vec<Group>,
    /// Entries of the legend.
    pub keys: Vec<Key>,
}

/// Bars that are compared with each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Common property of the bars; `None` if there is one group.
    pub heading: Option<String>,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub name: String,
    /// Colour: full for the first part, pale for the others.
    pub colour: Colour,
    /// Lengths of the parts, from zero on.
    pub parts: Vec<f64>,
    /// Lowest and highest round of the sum.
    pub range: Option<(f64, f64)>,
    /// The value as text, after the bar.
    pub note: String,
    /// Text of the tooltip.
    pub hover: String,
}

/// Maximum number of bars of a chart.
const MOST_BARS: usize = 60;

/// Positions of the chart's elements.
struct Layout {
    frame: Frame,
    size: (f64, f64),
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    scale: Scale,
    ticks: Vec<f64>,
}

impl Layout {
    fn across(&self, value: f64) -> f64 {
        self.left + self.scale.place(value).unwrap_or(0.0) * (self.right - self.left)
    }

    /// Returns the height of one bar with its margin, of its name above it, and of a heading.
    fn steps(frame: Frame) -> (f64, f64, f64) {
        match frame {
            Frame::Wide => (34.0, 0.0, 30.0),
            Frame::Narrow => (26.0, 18.0, 30.0),
        }
    }
}

impl Bars {
    /// Draws the chart; with a heading it is a file of its own.
    pub fn draw(&self, frame: Frame, id: &str, heading: Option<&str>) -> String {
        let layout = self.layout(frame, heading);
        let mut svg = chart::open(frame, layout.size.0, layout.size.1, id, &self.title, &self.description(), heading);
        chart::keys(Some(&mut svg), frame, chart::heading_room(heading), &self.keys);
        self.axis(&mut svg, &layout);
        let (bar, name, space) = Layout::steps(frame);
        let mut y = layout.top;
        let mut drawn = 0;
        for group in &self.groups {
            if let Some(heading) = &group.heading {
                let heading = svg::fitting(heading, (layout.size.0 - 2.0 * EDGE) / frame.font());
                svg.text("axis", EDGE, y + space * 0.7, Anchor::Start, &heading);
                y += space;
            }
            for each in group.bars.iter().take(MOST_BARS - drawn) {
                each.draw(&mut svg, &layout, y);
                y += bar + name;
                drawn += 1;
            }
        }
        svg.close()
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars).take(MOST_BARS)
    }

    fn layout(&self, frame: Frame, heading: Option<&str>) -> Layout {
        let font = frame.font();
        let (bar, name, space) = Layout::steps(frame);
        let ends = self.bars().flat_map(|bar| [bar.sum(), bar.range.map_or(0.0, |range| range.1)]);
        let scale = Scale::over(self.axis.form, ends, true);
        let widest = self.bars().map(|bar| svg::width(&bar.name)).fold(0.0, f64::max) * font * svg::HEAVY;
        let left = if frame == Frame::Wide { EDGE + (widest + 14.0).clamp(40.0, 220.0) } else { EDGE };
        let longest = self.bars().map(|bar| svg::width(&bar.note)).fold(0.0, f64::max) * font;
        let most = frame.width() * if frame == Frame::Wide { 0.35 } else { 0.3 };
        let right = frame.width() - EDGE - if frame == Frame::Wide { (longest + 16.0).min(most) } else { 14.0 };
        let above = chart::heading_room(heading);
        let top = above + chart::keys(None, frame, above, &self.keys) + 8.0;
        let headings = self.groups.iter().filter(|group| group.heading.is_some()).count() as f64;
        let bottom = top + headings * space + self.bars().count() as f64 * (bar + name) + 4.0;
        let ticks = scale.ticks(if frame == Frame::Wide { 8 } else { 5 });
        Layout { frame, size: (frame.width(), bottom + font * 3.4), left, right, top, bottom, scale, ticks }
    }

    fn axis(&self, svg: &mut Svg, layout: &Layout) {
        let font = layout.frame.font();
        for &tick in &layout.ticks {
            let x = layout.across(tick);
            svg.line(if tick == 0.0 { "base" } else { "hair" }, x, layout.top, x, layout.bottom);
            let anchor = if tick == 0.0 && layout.frame == Frame::Narrow { Anchor::Start } else { Anchor::Middle };
            svg.text("tick", x, layout.bottom + font * 1.35, anchor, &self.axis.unit.show(tick));
        }
        let (x, y) = ((layout.left + layout.right) / 2.0, layout.bottom + font * 2.8);
        svg.text("axis", x, y, Anchor::Middle, &self.axis.label);
    }

    fn description(&self) -> String {
        let mut text = format!("{}.", self.axis.label);
        for group in &self.groups {
            for bar in group.bars.iter().take(12) {
                let of = group.heading.as_ref().map(|heading| format!(", {heading}")).unwrap_or_default();
                text.push_str(&format!(" {}{of}: {}.", bar.name, bar.note));
            }
        }
        text
    }
}

impl Bar {
    fn sum(&self) -> f64 {
        self.parts.iter().filter(|part| part.is_finite() && **part > 0.0).sum()
    }

    fn draw(&self, svg: &mut Svg, layout: &Layout, top: f64) {
        let font = layout.frame.font();
        let (bar, above, _) = Layout::steps(layout.frame);
        let (y, height) = (top + above + 4.0, bar - 12.0);
        let middle = y + height / 2.0;
        svg.group(&self.colour.class(), Some(&self.hover));
        let mut from = 0.0;
        for (index, part) in self.parts.iter().filter(|part| part.is_finite() && **part > 0.0).enumerate() {
            let (begin, end) = (layout.across(from), layout.across(from + part));
            if index > 0 {
                // The lines of the axis would shine through a pale box.
                svg.rect("ground", begin, y, end - begin, height);
            }
            svg.rect(if index == 0 { "solid" } else { "pale" }, begin, y, end - begin, height);
            from += part;
        }
        let mut end = layout.across(from);
        if let Some((low, high)) = self.range.filter(|(low, high)| high > low && high.is_finite()) {
            let (low, high) = (layout.across(low), layout.across(high));
            end = end.max(high);
            svg.line("whisker", low, middle, high, middle);
            for x in [low, high] {
                svg.line("whisker", x, middle - 4.0, x, middle + 4.0);
            }
        }
        if layout.frame == Frame::Wide {
            let name = svg::fitting(&self.name, (layout.left - EDGE - 8.0) / font / svg::HEAVY);
            svg.text("label", layout.left - 8.0, middle + font * 0.35, Anchor::End, &name);
            let note = svg::fitting(&self.note, (layout.size.0 - EDGE - end - 8.0) / font);
            svg.text("note", end + 8.0, middle + font * 0.35, Anchor::Start, &note);
        } else {
            let note_width = svg::width(&self.note) * font;
            let room = layout.size.0 - 2.0 * EDGE - note_width - 10.0;
            let base = top + font * 1.2;
            // Hide the lines of the axis under text.
            svg.rect("ground", EDGE + 1.0, top + 2.0, layout.size.0 - 2.0 * EDGE, above);
            svg.text("label", EDGE + 4.0, base, Anchor::Start, &svg::fitting(&self.name, room / font / svg::HEAVY));
            svg.text("note", layout.size.0 - EDGE, base, Anchor::End, &self.note);
        }
        svg.end();
    }
}
