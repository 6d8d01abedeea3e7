//! The report as files: written beside the results, or redrawn from a `results.json`. Must never change any other
//! file.

use super::{drawings, render};
use crate::Outcome;
use crate::bench::results::Results;
use crate::bench::stored;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// File name of the page.
pub const REPORT: &str = "report.html";
/// Folder of the charts.
pub const CHARTS: &str = "charts";

/// Writes `report.html` and `charts/*.svg` into the folder, and returns the path of the page.
///
/// # Errors
///
/// The file that could not be written, and the reason.
pub fn write(results: &Results, folder: &Path) -> Result<PathBuf, String> {
    let named = |path: &Path, error: io::Error| format!("cannot write {}: {error}", path.display());
    let charts = folder.join(CHARTS);
    fs::create_dir_all(&charts).map_err(|error| named(&charts, error))?;
    for drawing in drawings(results) {
        let path = charts.join(&drawing.file);
        fs::write(&path, drawing.svg).map_err(|error| named(&path, error))?;
    }
    let page = folder.join(REPORT);
    fs::write(&page, render(results)).map_err(|error| named(&page, error))?;
    Ok(page)
}

/// `weir bench --report PLACE`: redraws the report beside the results, and prints its path.
#[must_use]
pub fn redraw(place: &Path) -> Outcome {
    let results = match stored::read(place) {
        Ok(results) => results,
        Err(outcome) => return outcome,
    };
    let folder = if place.is_dir() { place } else { place.parent().unwrap_or(Path::new("")) };
    match write(&results, folder) {
        Ok(page) => {
            // With standard output closed there is no reader.
            let _ = writeln!(io::stdout().lock(), "{}", page.display());
            Outcome::Done
        }
        Err(why) => Outcome::Failed(why),
    }
}
