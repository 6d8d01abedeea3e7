//! The report as files: written beside the results, or drawn anew from a `results.json`. Must never touch any other
//! file.

use super::{drawings, render};
use crate::Outcome;
use crate::bench::results::Results;
use crate::bench::stored;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The page in the same folder.
pub const REPORT: &str = "report.html";
/// The folder of the charts in it.
pub const CHARTS: &str = "charts";

/// Writes `report.html` and `charts/*.svg` into the folder, and gives the path of the page.
///
/// # Errors
///
/// What could not be written, and why.
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

/// `weir bench --report PLACE`: draws the report anew beside the results, and says where it is.
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
