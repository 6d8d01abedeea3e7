//! Documentation pages generated from results: the sizing page, and the tables and pictures within a hand-written
//! page. Must never change a line outside its regions.

mod regions;
mod tables;
#[cfg(test)]
mod tests;

use super::results::Results;
use super::{progress, report, sizing, stored};
use crate::Outcome;
use regions::{Region, replace};
use std::path::{Path, PathBuf};

/// Maximum size of a page, in bytes.
const LONGEST_PAGE: u64 = 4 << 20;

/// `weir bench --sizing RESULTS…`: prints the sizing page.
#[must_use]
pub fn sizing(places: &[PathBuf]) -> Outcome {
    match read_all(places).map(|results| sizing::document(&results)) {
        Ok(Ok(page)) => {
            progress::write(&page);
            Outcome::Done
        }
        Ok(Err(why)) => Outcome::Failed(why),
        Err(outcome) => outcome,
    }
}

/// `weir bench --into PAGE RESULTS…`: regenerates the tables and pictures of a page. Those of scenarios without results
/// are kept, and are listed.
#[must_use]
pub fn into(page: &Path, places: &[PathBuf]) -> Outcome {
    match read_all(places).map(|results| fill(page, &results)) {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(why)) => Outcome::Failed(why),
        Err(outcome) => outcome,
    }
}

fn read_all(places: &[PathBuf]) -> Result<Vec<Results>, Outcome> {
    places.iter().map(|place| stored::read(place)).collect()
}

fn fill(page: &Path, results: &[Results]) -> Result<(), String> {
    let unwritten = |path: &Path, error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let unread = |error: std::io::Error| format!("cannot read {}: {error}", page.display());
    if std::fs::metadata(page).map_err(unread)?.len() > LONGEST_PAGE {
        return Err(format!("{} is longer than {} MB", page.display(), LONGEST_PAGE >> 20));
    }
    let text = std::fs::read_to_string(page).map_err(unread)?;
    let folder = page.parent().unwrap_or(Path::new(""));
    let mut pictures: Vec<(PathBuf, String)> = Vec::new();
    let mut kept = String::new();
    let filled = replace(&text, |region, line, before| {
        let is_picture = region.kind == "picture";
        if !is_picture {
            tables::kind(region)?;
        }
        let scenarios = if is_picture { &region.words[..region.words.len().min(1)] } else { &region.words[..] };
        let missing = tables::missing(results, scenarios);
        // Content of earlier runs is preferred to a gap, and rows of one table must be of the same time.
        if !missing.is_empty() && !before.trim().is_empty() {
            kept += &format!("{}:{line}: left as it is, not run: {}\n", page.display(), missing.join(", "));
            return Ok(None);
        }
        match is_picture {
            true => picture(results, region, folder, &mut pictures).map(Some),
            false => tables::write(results, region).map(Some),
        }
    })
    .map_err(|wrong| format!("{}:{wrong}", page.display()))?;
    for (path, svg) in pictures {
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|error| unwritten(parent, error))?;
        std::fs::write(&path, svg).map_err(|error| unwritten(&path, error))?;
    }
    // Written to a temporary file first: an interruption leaves the former page intact.
    let fresh = page.with_extension("md.new");
    std::fs::write(&fresh, filled).map_err(|error| unwritten(&fresh, error))?;
    std::fs::rename(&fresh, page).map_err(|error| unwritten(page, error))?;
    progress::write(&kept);
    Ok(())
}

/// `picture SCENARIO CHART…`: writes charts of a report as files beside the page.
fn picture(
    results: &[Results],
    region: &Region<'_>,
    folder: &Path,
    pictures: &mut Vec<(PathBuf, String)>,
) -> Result<String, String> {
    let [scenario, charts @ ..] = &region.words[..] else {
        return Err("a picture needs a scenario and the names of charts".to_owned());
    };
    let Some(run) = results.iter().find(|run| run.scenario.name == *scenario) else {
        return Ok(format!("{}\n", tables::not_run(scenario)));
    };
    let drawings = report::drawings(run);
    let mut text = String::new();
    for chart in charts {
        let Some(drawing) = drawings.iter().find(|drawing| drawing.file.trim_end_matches(".svg") == *chart) else {
            text += &format!("`{scenario}` gave no chart `{chart}`.\n\n");
            continue;
        };
        let name = format!("{scenario}-{}", drawing.file);
        pictures.push((folder.join("pictures").join(&name), drawing.svg.clone()));
        text += &format!("![{}: {chart}](pictures/{name})\n", run.scenario.title);
    }
    Ok(text)
}
