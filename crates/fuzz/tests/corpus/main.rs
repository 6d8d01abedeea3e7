//! The corpus of every fuzz target, run as ordinary tests: regression tests for earlier findings, without a fuzzer.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use weir_fuzz::TARGETS;

mod mutated;

/// Maximum number of files and bytes in the corpus of a target.
const MOST_FILES: usize = 40;
const MOST_BYTES: u64 = 64 * 1024;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the files of a folder, sorted by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    found.sort();
    found
}

/// Returns the corpus of a target, with file names.
fn kept(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |file: PathBuf| (file.clone(), fs::read(file).expect("it can be read"));
    files(&root().join("corpus").join(target)).into_iter().map(read).collect()
}

#[test]
fn every_kept_input_passes_its_target() {
    let mut failed = Vec::new();
    for (name, run) in TARGETS {
        for (file, input) in kept(name) {
            if catch_unwind(|| run(&input)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_target_has_a_small_corpus_and_nothing_else_has_one() {
    for (name, _) in TARGETS {
        let files = files(&root().join("corpus").join(name));
        let bytes: u64 = files.iter().map(|file| fs::metadata(file).expect("it is there").len()).sum();
        assert!((1..=MOST_FILES).contains(&files.len()), "{name}: {} files", files.len());
        assert!(bytes <= MOST_BYTES, "{name}: {bytes} bytes");
    }
    let folders: Vec<_> = files(&root().join("corpus")).iter().map(|path| name_of(path)).collect();
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders, names);
}

#[test]
fn every_target_has_a_runner() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the runners have a manifest");
    let lines = manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let runners: Vec<_> = lines.filter(|name| *name != "weir-fuzz-runners").collect();
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(runners, names);
    for name in names {
        let runner = fs::read_to_string(root().join(format!("runners/{name}.rs"))).expect("it has a file");
        assert!(runner.contains(&format!("weir_fuzz::{name}::run(data)")), "{name}");
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("it has a name").to_string_lossy().into_owned()
}
