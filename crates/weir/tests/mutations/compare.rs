//! Runs Weir and HAProxy on the same mutants and compares which ones they reject. Must never compare messages.

use crate::known;
use crate::mutate::{corpus_folder, mutant};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Timeout in seconds of a program that hangs; normal runs take a fraction of it.
const PATIENCE: &str = "60";

/// The result of a program.
#[derive(Debug)]
pub struct Verdict {
    /// Exit status; `None`: killed by a signal.
    pub code: Option<i32>,
    /// Its alerts.
    pub alerts: Vec<String>,
}

/// Runs a program on a file.
pub fn verdict(program: &Path, file: &Path) -> Verdict {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE).arg(program).arg("-c").arg("-f").arg(file).current_dir(corpus_folder());
    let output = command.env_clear().output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let alerts = text.lines().filter(|line| line.contains("[ALERT]")).map(str::to_owned).collect();
    Verdict { code: output.status.code(), alerts }
}

/// Returns HAProxy, if one with Weir's language level is installed.
pub fn haproxy() -> Option<PathBuf> {
    let path = std::env::var_os("HAPROXY").map_or_else(|| PathBuf::from("/usr/sbin/haproxy"), PathBuf::from);
    let output = Command::new(&path).arg("-v").output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).split_whitespace().nth(2).map(str::to_owned)?;
    version.starts_with("3.5").then_some(path)
}

/// Returns the mutants whose results differ for no known reason.
pub fn differences(
    haproxy: &Path,
    corpus: &[(String, Vec<u8>)],
    seed: u64,
    numbers: std::ops::Range<usize>,
) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("weir-mutations-{}-{}", std::process::id(), numbers.start));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("mutant.cfg");
    let mut differences = Vec::new();
    for number in numbers {
        let text = mutant(corpus, seed, number);
        std::fs::write(&file, &text).expect("a configuration");
        let ours = verdict(Path::new(env!("CARGO_BIN_EXE_weir")), &file);
        let theirs = verdict(haproxy, &file);
        // HAProxy crashes on some configurations.
        let Some(code) = theirs.code else { continue };
        if (ours.code == Some(0)) != (code == 0) && !known::is_known(&ours, &theirs) {
            let kept = std::env::temp_dir().join(format!("weir-mutant-{seed}-{number}.cfg"));
            std::fs::write(&kept, &text).expect("a configuration");
            differences.push(format!(
                "mutant {number} of seed {seed}, kept in {}: Weir {:?} {:#?}, HAProxy {code} {:#?}",
                kept.display(),
                ours.code,
                ours.alerts,
                theirs.alerts
            ));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    differences
}
