//! The report of a benchmark: a page and its charts, drawn from the results alone. Must never measure anything, and
//! must never trust a text in the results: names and versions come from programs.
//!
//! [`statistics`] has the arithmetic, [`summary`] applies it to the results, [`figures`] defines the charts,
//! [`lines`] and [`bars`] draw them, [`page`] assembles the page.

mod bars;
mod chart;
mod drawing;
mod figures;
mod lines;
mod page;
mod quantity;
mod redraw;
mod scale;
mod statistics;
mod summary;
mod svg;
mod tables;
mod verdict;

pub(in crate::bench) use quantity::Unit;
pub use redraw::{redraw, write};

use super::results::Results;

/// Returns the whole report: one self-contained HTML file.
#[must_use]
pub fn render(results: &Results) -> String {
    page::render(results)
}

/// A chart as a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// Name of the file, including `.svg`.
    pub file: String,
    /// Content.
    pub svg: String,
}

/// Returns every chart of the report as a file of its own, in their order.
#[must_use]
pub fn drawings(results: &Results) -> Vec<Drawing> {
    let summary = summary::Summary::of(results);
    let mut drawings = Vec::new();
    for figure in figures::all(&summary) {
        for (index, panel) in figure.panels.iter().enumerate() {
            let file = format!("{}.svg", figure.name(index));
            let heading = format!("{}: {}", figure.title, panel.heading);
            drawings.push(Drawing { file, svg: panel.chart.file(&heading) });
        }
    }
    drawings
}
