//! The charts of the report in their order, each from its measurements. Must never draw a chart without
//! data: such a figure has no panels, and the page leaves it out.

mod courses;
mod sweeps;

use super::drawing::Chart;
use super::summary::Summary;

/// A numbered figure of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name in files and URLs.
    pub slug: &'static str,
    pub title: &'static str,
    /// Charts; empty if nothing was measured.
    pub panels: Vec<Panel>,
    /// Explanation.
    pub text: String,
}

/// A chart with its heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The setting that distinguishes it from the other panels.
    pub heading: String,
    pub chart: Chart,
}

impl Figure {
    /// Returns the name of a panel's file without its extension, which is also its anchor in the page.
    pub fn name(&self, panel: usize) -> String {
        if panel == 0 { self.slug.to_owned() } else { format!("{}-{}", self.slug, panel + 1) }
    }

    fn new(slug: &'static str, title: &'static str, panels: Vec<Panel>, text: String) -> Self {
        Self { slug, title, panels, text }
    }
}

/// Maximum number of charts of a figure.
const MOST_PANELS: usize = 3;

/// Returns all figures.
pub fn all(summary: &Summary<'_>) -> Vec<Figure> {
    vec![
        courses::over_time(summary),
        courses::latency(summary),
        sweeps::sizes(summary),
        courses::processor(summary),
        sweeps::offered(summary),
        sweeps::workers(summary),
        sweeps::memory(summary),
    ]
}
