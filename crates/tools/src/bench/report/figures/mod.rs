//! The charts of the report in their order, each from what was measured for it. Must never draw a chart whose data are
//! missing: such a figure has no panels, and the page leaves it out.

mod courses;
mod sweeps;

use super::chart::Chart;
use super::summary::Summary;

/// A numbered place of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in files and addresses.
    pub slug: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Its charts; none where nothing was measured.
    pub panels: Vec<Panel>,
    /// How to read it.
    pub text: String,
}

/// A chart with what sets it apart from the others of its figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The setting.
    pub heading: String,
    /// The chart.
    pub chart: Chart,
}

impl Figure {
    /// The name of a panel's file without its ending, and of its place in the page.
    pub fn name(&self, panel: usize) -> String {
        if panel == 0 { self.slug.to_owned() } else { format!("{}-{}", self.slug, panel + 1) }
    }

    fn new(slug: &'static str, title: &'static str, panels: Vec<Panel>, text: String) -> Self {
        Self { slug, title, panels, text }
    }
}

/// The most charts of a figure.
const MOST_PANELS: usize = 3;

/// All of them.
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
