//! `weir bench --report`: its output, and its errors.

use crate::fixture;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use weir_tools::Outcome;

fn run(words: &[&Path]) -> Outcome {
    let tool = weir_tools::find("bench").expect("the tool");
    let words: Vec<OsString> =
        std::iter::once("--report".into()).chain(words.iter().map(|word| word.as_os_str().to_owned())).collect();
    (tool.run)(&words)
}

/// Creates an empty folder below that of the build.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn the_report_is_drawn_anew_beside_the_results() {
    let folder = folder("anew");
    let text = serde_json::to_string(&fixture::full()).expect("JSON");
    fs::write(folder.join("results.json"), text).expect("written");
    assert_eq!(run(&[&folder]), Outcome::Done);
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert_eq!(page, weir_tools::bench::report::render(&fixture::full()), "nothing is lost in the file");
    let mut charts: Vec<_> =
        fs::read_dir(folder.join("charts")).expect("charts").flatten().map(|e| e.file_name()).collect();
    charts.sort();
    assert_eq!(charts.first().and_then(|name| name.to_str()), Some("1-requests-over-time-2.svg"));
    assert!(charts.contains(&"7-memory.svg".into()), "{charts:?}");
    fs::remove_file(folder.join("report.html")).expect("there");
    assert_eq!(run(&[&folder.join("results.json")]), Outcome::Done);
    assert!(folder.join("report.html").exists());
}

#[test]
fn what_is_no_result_is_refused_with_its_place() {
    let folder = folder("refused");
    assert!(matches!(run(&[&folder]), Outcome::Failed(why) if why.contains("results.json")));
    let path = folder.join("results.json");
    for (text, expected) in [
        ("{", "line 1 column 1"),
        ("{\"form\": 99, \"other\": true}", "form 99"),
        ("{\"form\": 1}", "missing field"),
        ("[[[[", "results.json"),
    ] {
        fs::write(&path, text).expect("written");
        let outcome = run(&[&folder]);
        assert!(matches!(&outcome, Outcome::Failed(why) if why.contains(expected)), "{text}: {outcome:?}");
    }
    assert!(!folder.join("report.html").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_said() {
    let folder = folder("barred");
    fs::write(folder.join("results.json"), serde_json::to_string(&fixture::empty()).expect("JSON")).expect("written");
    // A file in place of the folder of the charts.
    fs::write(folder.join("charts"), "").expect("written");
    assert!(matches!(run(&[&folder]), Outcome::Failed(why) if why.contains("charts")));
}
