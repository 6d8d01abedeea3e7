//! Common parts of all charts: their two sizes, colours, legend keys, and the form of a drawing in a file of its own.
//! Must never depend on the kind of chart.

use super::quantity::Unit;
use super::scale::Form;
use super::svg::{self, Anchor, Svg};

/// Colours and strokes of charts, for pages and for files.
pub const STYLE: &str = include_str!("chart.css");

/// Number of colours; beyond it they repeat, and shapes and names distinguish the series.
pub const COLOURS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// A proxy, by its index.
    Proxy(usize),
    /// Without a proxy.
    Direct,
    /// No series: a key that applies to all.
    Neutral,
}

impl Colour {
    /// Returns the CSS class.
    pub fn class(self) -> String {
        match self {
            Self::Proxy(index) => format!("c{}", index % COLOURS),
            Self::Direct => "cd".to_owned(),
            Self::Neutral => "cn".to_owned(),
        }
    }

    /// Returns the shape of its marks.
    pub fn shape(self) -> usize {
        match self {
            // After the last colour the same one is used with another shape.
            Self::Proxy(index) => index + index / COLOURS,
            Self::Direct | Self::Neutral => 3,
        }
    }
}

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Main line.
    Bold,
    /// Background line.
    Thin,
    /// Another measurement of the same.
    Dashed,
}

impl Stroke {
    /// Returns the CSS class.
    pub fn class(self) -> &'static str {
        match self {
            Self::Bold => "bold",
            Self::Thin => "thin",
            Self::Dashed => "dashed",
        }
    }
}

/// Symbol of a legend key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// A line.
    Line(Stroke),
    /// A mark on a line.
    Mark,
    Hollow,
    Solid,
    Pale,
    Whisker,
}

/// Entry of the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub sample: Sample,
    pub colour: Colour,
    /// Explanation.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Quantity, with its unit.
    pub label: String,
    /// Scale.
    pub form: Form,
    /// Number format.
    pub unit: Unit,
    /// Numbers of the ticks; round numbers by default.
    pub ticks: Option<Vec<f64>>,
}

/// Width class of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// For screens and paper.
    Wide,
    /// For phones.
    Narrow,
}

impl Frame {
    /// Returns the width, in pixels.
    pub fn width(self) -> f64 {
        match self {
            Self::Wide => 960.0,
            Self::Narrow => 360.0,
        }
    }

    /// Returns the font size, in pixels.
    pub fn font(self) -> f64 {
        match self {
            Self::Wide => 13.0,
            Self::Narrow => 12.0,
        }
    }

    /// Returns the CSS class.
    pub fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

/// Opens a drawing; with a heading it is a file of its own and includes style and background.
pub fn open(
    frame: Frame,
    width: f64,
    height: f64,
    id: &str,
    title: &str,
    description: &str,
    heading: Option<&str>,
) -> Svg {
    let margin = if heading.is_some() { MARGIN } else { 0.0 };
    let mut svg = Svg::open(frame.class(), width, height, margin, id, title, description);
    let Some(heading) = heading else { return svg };
    svg.raw(&format!("<style>{STYLE}</style>\n"));
    svg.rect("ground", -margin, -margin, width + 2.0 * margin, height + 2.0 * margin);
    let heading = svg::fitting(heading, (width - 2.0 * EDGE) / 16.0);
    svg.text("heading", EDGE, 14.0, Anchor::Start, &heading);
    svg
}

/// Returns the height of a heading.
pub fn heading_room(heading: Option<&str>) -> f64 {
    if heading.is_some() { 28.0 } else { 0.0 }
}

/// Margin at the left and right of a drawing.
pub const EDGE: f64 = 1.0;
/// Margin around a drawing in a file of its own.
const MARGIN: f64 = 16.0;

/// Draws the legend keys in rows from the top, and returns their height. With `None` they are only measured.
pub fn keys(mut svg: Option<&mut Svg>, frame: Frame, top: f64, keys: &[Key]) -> f64 {
    let font = frame.font();
    let (swatch, gap, row) = (26.0, 18.0, font * 1.6);
    let (mut x, mut y) = (EDGE, top + font * 0.8);
    for key in keys {
        let most = frame.width() - 2.0 * EDGE - swatch;
        let text = svg::fitting(&key.text, most / font);
        let taken = swatch + svg::width(&text) * font;
        if x > EDGE && x + taken > frame.width() - EDGE {
            (x, y) = (EDGE, y + row);
        }
        if let Some(svg) = svg.as_deref_mut() {
            sample(svg, key, x, y);
            svg.text("key", x + swatch, y + font * 0.35, Anchor::Start, &text);
        }
        x += taken + gap;
    }
    if keys.is_empty() { 0.0 } else { y - top + font }
}

fn sample(svg: &mut Svg, key: &Key, x: f64, y: f64) {
    let (colour, shape) = (key.colour.class(), key.colour.shape());
    svg.group(&colour, None);
    match key.sample {
        Sample::Line(stroke) => svg.line(&format!("line {}", stroke.class()), x, y, x + 20.0, y),
        Sample::Mark | Sample::Hollow => {
            svg.line("line bold", x, y, x + 20.0, y);
            let class = if key.sample == Sample::Hollow { "mark hollow" } else { "mark" };
            svg.mark(class, shape, x + 10.0, y, 4.0);
        }
        Sample::Solid => svg.rect("solid", x, y - 6.0, 18.0, 12.0),
        Sample::Pale => svg.rect("pale", x, y - 6.0, 18.0, 12.0),
        Sample::Whisker => {
            svg.line("whisker", x, y, x + 18.0, y);
            svg.line("whisker", x, y - 4.0, x, y + 4.0);
            svg.line("whisker", x + 18.0, y - 4.0, x + 18.0, y + 4.0);
        }
    }
    svg.end();
}
