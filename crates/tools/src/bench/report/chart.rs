//! What all charts share: their two sizes, colours, keys, and how a drawing of its own differs from one in a page.
//! Must never know what is drawn.

use super::bars::Bars;
use super::lines::Lines;
use super::quantity::Unit;
use super::scale::Form;
use super::svg::{self, Anchor, Svg};

/// Colours and strokes of charts, for pages and for drawings of their own.
pub const STYLE: &str = include_str!("chart.css");

/// How many colours there are; behind them they repeat, and shapes and names tell the series apart.
pub const COLOURS: usize = 8;

/// The colour of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// One of the proxies.
    Proxy(usize),
    /// Without a proxy.
    Direct,
    /// None of them: what a key says of all.
    Neutral,
}

impl Colour {
    /// The class that carries it.
    pub fn class(self) -> String {
        match self {
            Self::Proxy(index) => format!("c{}", index % COLOURS),
            Self::Direct => "cd".to_owned(),
            Self::Neutral => "cn".to_owned(),
        }
    }

    /// The shape of its marks.
    pub fn shape(self) -> usize {
        match self {
            // Behind the last colour the same one has another shape.
            Self::Proxy(index) => index + index / COLOURS,
            Self::Direct | Self::Neutral => 3,
        }
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// What counts.
    Bold,
    /// What stands behind it.
    Thin,
    /// Another measurement of the same.
    Dashed,
}

impl Stroke {
    /// The class that carries it.
    pub fn class(self) -> &'static str {
        match self {
            Self::Bold => "bold",
            Self::Thin => "thin",
            Self::Dashed => "dashed",
        }
    }
}

/// What a key shows before its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// A piece of a line.
    Line(Stroke),
    /// A mark on a line.
    Mark,
    /// A mark that is not filled.
    Hollow,
    /// A full box.
    Solid,
    /// A pale box.
    Pale,
    /// A whisker.
    Whisker,
}

/// A line of the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// What it shows.
    pub sample: Sample,
    /// In which colour.
    pub colour: Colour,
    /// What that means.
    pub text: String,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it counts, with its unit.
    pub label: String,
    /// How it runs.
    pub form: Form,
    /// How its numbers are written.
    pub unit: Unit,
    /// The numbers that it names; without them round ones.
    pub ticks: Option<Vec<f64>>,
}

/// Where a chart is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// On a desk or on paper.
    Wide,
    /// On a phone.
    Narrow,
}

impl Frame {
    /// Its width.
    pub fn width(self) -> f64 {
        match self {
            Self::Wide => 960.0,
            Self::Narrow => 360.0,
        }
    }

    /// The size of its text.
    pub fn font(self) -> f64 {
        match self {
            Self::Wide => 13.0,
            Self::Narrow => 12.0,
        }
    }

    /// The class of its drawings.
    pub fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

/// A chart of some form.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Lines over an axis.
    Lines(Lines),
    /// Lying bars.
    Bars(Bars),
}

impl Chart {
    /// The drawing for a page; `id` is unique in it.
    pub fn draw(&self, frame: Frame, id: &str) -> String {
        match self {
            Self::Lines(lines) => lines.draw(frame, id, None),
            Self::Bars(bars) => bars.draw(frame, id, None),
        }
    }

    /// A drawing of its own, with its style, its background and its heading in it.
    pub fn file(&self, heading: &str) -> String {
        let drawn = match self {
            Self::Lines(lines) => lines.draw(Frame::Wide, "chart", Some(heading)),
            Self::Bars(bars) => bars.draw(Frame::Wide, "chart", Some(heading)),
        };
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{drawn}")
    }
}

/// Opens a drawing; one of its own, which has a heading, brings its style and its background.
pub fn open(frame: Frame, size: (f64, f64), id: &str, words: (&str, &str), heading: Option<&str>) -> Svg {
    let margin = if heading.is_some() { MARGIN } else { 0.0 };
    let mut svg = Svg::open(frame.class(), size, margin, id, words.0, words.1);
    let Some(heading) = heading else { return svg };
    svg.raw(&format!("<style>{STYLE}</style>\n"));
    svg.rect("ground", (-margin, -margin), (size.0 + 2.0 * margin, size.1 + 2.0 * margin));
    let heading = svg::fitting(heading, (size.0 - 2.0 * EDGE) / 16.0);
    svg.text("heading", (EDGE, 14.0), Anchor::Start, &heading);
    svg
}

/// The room that a heading takes.
pub fn heading_room(heading: Option<&str>) -> f64 {
    if heading.is_some() { 28.0 } else { 0.0 }
}

/// What is left free at the left and right of a drawing.
pub const EDGE: f64 = 1.0;
/// What is left free around a drawing of its own.
const MARGIN: f64 = 16.0;

/// Draws the keys in rows from the top, and gives the height that they took. With `None` it is only measured.
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
            sample(svg, key, (x, y));
            svg.text("key", (x + swatch, y + font * 0.35), Anchor::Start, &text);
        }
        x += taken + gap;
    }
    if keys.is_empty() { 0.0 } else { y - top + font }
}

fn sample(svg: &mut Svg, key: &Key, (x, y): (f64, f64)) {
    let (colour, shape) = (key.colour.class(), key.colour.shape());
    svg.group(&colour, None);
    match key.sample {
        Sample::Line(stroke) => svg.line(&format!("line {}", stroke.class()), (x, y), (x + 20.0, y)),
        Sample::Mark | Sample::Hollow => {
            svg.line("line bold", (x, y), (x + 20.0, y));
            let class = if key.sample == Sample::Hollow { "mark hollow" } else { "mark" };
            svg.mark(class, shape, (x + 10.0, y), 4.0);
        }
        Sample::Solid => svg.rect("solid", (x, y - 6.0), (18.0, 12.0)),
        Sample::Pale => svg.rect("pale", (x, y - 6.0), (18.0, 12.0)),
        Sample::Whisker => {
            svg.line("whisker", (x, y), (x + 18.0, y));
            svg.line("whisker", (x, y - 4.0), (x, y + 4.0));
            svg.line("whisker", (x + 18.0, y - 4.0), (x + 18.0, y + 4.0));
        }
    }
    svg.end();
}
