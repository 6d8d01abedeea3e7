//! Every case of `tests/cases` with Weir, and with HAProxy if it is installed.
//!
//! `cargo test -p weir-cases -- FILTER …`; README.md in `tests/cases` lists the environment variables.

#![allow(clippy::print_stdout, reason = "the report is for the person who runs the tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use cases::{Options, run_all};

fn main() -> ExitCode {
    // For tools that list tests; the cases are one test.
    if std::env::args().any(|word| word == "--list") {
        println!("cases: test");
        return ExitCode::SUCCESS;
    }
    let words = std::env::args().skip(1);
    let filters: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
    let weir = match weir() {
        Ok(weir) => weir,
        Err(why) => {
            println!("FAILED: {why}");
            return ExitCode::FAILURE;
        }
    };
    let oracles = oracles();
    if oracles.is_empty() {
        println!("SKIPPED: no HAProxy here, so nothing shows that the cases tell what HAProxy does");
    }
    forget_measurements();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let options = Options {
        cases: root,
        weir,
        oracles,
        filters,
        jobs: number("CASES_JOBS", 8),
        limit: Duration::from_secs(number("CASES_LIMIT", 20) as u64),
        threads: number("CASES_THREADS", 1) as u32,
        show: std::env::var_os("CASES_SHOW").is_some(),
    };
    match run_all(&options) {
        Ok(report) => {
            println!("{}{}", report.shown, report.text());
            if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the kernel forget its measurements of earlier connections: they limit how much it buffers for new ones, and some cases need what a
/// fresh machine buffers. Without privileges or without the program nothing happens.
fn forget_measurements() {
    let _ = Command::new("ip").args(["tcp_metrics", "flush"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Returns the Weir binary: `WEIR`, otherwise it is built. `WEIR=none`: only HAProxy.
fn weir() -> Result<Option<PathBuf>, String> {
    if let Some(path) = std::env::var_os("WEIR") {
        return Ok(Some(PathBuf::from(path)).filter(|path| path.as_os_str() != "none"));
    }
    // target/<profile>/deps/cases-… → target/<profile>
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().and_then(Path::parent).ok_or("no target folder")?;
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "weir", "--bin", "weir", "--manifest-path"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"));
    build.arg("--target-dir").arg(folder.parent().ok_or("no target folder")?);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    let built = build.status().map_err(|error| error.to_string())?;
    if built.success() { Ok(Some(folder.join("weir"))) } else { Err("weir does not build".to_owned()) }
}

/// Returns the HAProxy binaries: `HAPROXY` (separated by colons; empty: none), otherwise Debian's.
fn oracles() -> Vec<PathBuf> {
    match std::env::var("HAPROXY") {
        Ok(paths) => paths.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
        Err(_) => [PathBuf::from("/usr/sbin/haproxy")].into_iter().filter(|path| path.exists()).collect(),
    }
}

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
