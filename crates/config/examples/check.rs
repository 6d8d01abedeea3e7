//! Checks configuration files one by one and prints the diagnostics of each: `cargo run --example check -- FILE...`.
//! With `-m` as the first argument, it prints every distinct message once with its count instead. Must never do more
//! than call `specify`.

use std::collections::BTreeMap;
use std::io::Write as _;
use weir_config::LanguageOptions;
use weir_config::diagnostic::{Diagnostic, Severity};
use weir_config::environment::Environment;
use weir_config::keyword::{SpecOptions, specify};
use weir_config::language::{self, InputFile};

fn main() -> std::io::Result<()> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let summary = files.first().is_some_and(|first| first == "-m");
    if summary {
        files.remove(0);
    }
    let mut out = std::io::stdout().lock();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut accepted = 0;
    for name in &files {
        let bytes = std::fs::read(name)?;
        let (text, found) = check(name, bytes);
        let fine = !found.iter().any(Diagnostic::is_alert);
        accepted += usize::from(fine);
        for diagnostic in found.iter().filter(|found| found.severity != Severity::Diag) {
            *counts.entry(format!("{:?} {}", diagnostic.severity, diagnostic.message)).or_default() += 1;
        }
        if !summary {
            writeln!(out, "{} {name}\n{text}", if fine { "A" } else { "R" })?;
        }
    }
    if summary {
        for (message, count) in counts {
            writeln!(out, "{count:6} {message}")?;
        }
    }
    writeln!(out, "{accepted} of {} accepted", files.len())
}

fn check(name: &str, bytes: Vec<u8>) -> (String, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let mut environment = Environment::new();
    let files = [InputFile { name: name.to_owned(), bytes }];
    let (sources, document) = language::read(&files, &mut environment, &LanguageOptions::default(), &mut found);
    specify(&sources, &document, &SpecOptions::default(), &mut found);
    let mut text = String::new();
    for diagnostic in &found {
        diagnostic.render(&sources, 0, &mut text);
    }
    (text, found)
}
