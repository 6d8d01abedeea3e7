//! A chart of either kind, drawn for a page or for a file of its own. Must never measure anything.

use super::bars::Bars;
use super::chart::Frame;
use super::lines::Lines;

#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Lines over an axis.
    Lines(Lines),
    /// Horizontal bars.
    Bars(Bars),
}

impl Chart {
    /// Draws the chart for a page; `id` is unique in it.
    pub fn draw(&self, frame: Frame, id: &str) -> String {
        match self {
            Self::Lines(lines) => lines.draw(frame, id, None),
            Self::Bars(bars) => bars.draw(frame, id, None),
        }
    }

    /// Draws the chart for a file of its own, including style, background and heading.
    pub fn file(&self, heading: &str) -> String {
        let drawn = match self {
            Self::Lines(lines) => lines.draw(Frame::Wide, "chart", Some(heading)),
            Self::Bars(bars) => bars.draw(Frame::Wide, "chart", Some(heading)),
        };
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{drawn}")
    }
}
