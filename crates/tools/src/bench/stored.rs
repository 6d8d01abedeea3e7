//! Reads results of an earlier run. Must never accept an unknown format, nor a file above the maximum
//! size.

use super::results::{FORM, Results};
use crate::Outcome;
use std::io::Read;
use std::path::Path;

/// Maximum size of a file, in bytes.
const LONGEST: u64 = 512 << 20;

/// Reads one `results.json`, or the one in a folder.
///
/// # Errors
///
/// The file cannot be read, is too long, or does not contain results of a known format.
pub fn read(path: &Path) -> Result<Results, Outcome> {
    let path = if path.is_dir() { path.join("results.json") } else { path.to_owned() };
    let name = path.display();
    let file =
        std::fs::File::open(&path).map_err(|error| Outcome::Failed(format!("{name} cannot be read: {error}")))?;
    let mut text = String::new();
    let length = file
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| Outcome::Failed(format!("{name} cannot be read: {error}")))?;
    if length as u64 > LONGEST {
        return Err(Outcome::Failed(format!("{name} is longer than {} MB", LONGEST >> 20)));
    }
    parse(&text).map_err(|why| Outcome::Failed(format!("{name}: {why}")))
}

/// Parses results.
///
/// # Errors
///
/// The text is not results, or their format is unknown.
pub fn parse(text: &str) -> Result<Results, String> {
    #[derive(serde::Deserialize)]
    struct Formed {
        form: u32,
    }
    let formed: Formed = serde_json::from_str(text).map_err(|error| format!("no results of a benchmark: {error}"))?;
    if formed.form != FORM {
        return Err(format!("results of form {}, this program knows form {FORM}", formed.form));
    }
    serde_json::from_str(text).map_err(|error| format!("no results of a benchmark: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_forms_and_other_files_are_refused() {
        assert_eq!(parse("{\"form\": 99}").unwrap_err(), "results of form 99, this program knows form 1");
        assert!(parse("{\"form\": 1}").unwrap_err().starts_with("no results of a benchmark: missing field"));
        assert!(parse("hello").is_err());
    }

    #[test]
    fn a_missing_file_is_told_by_its_name() {
        let Err(Outcome::Failed(why)) = read(Path::new("/nonexistent/results.json")) else { panic!("it was read") };
        assert!(why.starts_with("/nonexistent/results.json cannot be read: "), "{why}");
    }
}
