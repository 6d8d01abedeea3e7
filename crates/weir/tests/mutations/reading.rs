//! Loads and compiles a configuration in this process. Must never resolve a name with the system.

use crate::mutate::corpus_folder;
use config::diagnostic::{Diagnostic, Severity};
use config::environment::Environment;
use config::keyword::SpecOptions;
use config::load::in_order;
use config::spec::Family;
use config::{InputFile, LoadOptions};
use policy::SystemLimits;
use std::io::Read as _;
use std::net::IpAddr;

/// Resolves literal addresses, but no names.
struct Literals;

impl policy::Resolver for Literals {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, String> {
        let found: IpAddr = host.parse().map_err(|_| "no such name".to_owned())?;
        let fits = match family {
            Family::V4 => found.is_ipv4(),
            Family::V6 => found.is_ipv6(),
            Family::Unspecified => true,
        };
        if fits { Ok(found) } else { Err("no address of that family".to_owned()) }
    }

    fn file_reader(&self) -> policy::ReadFile {
        |path| std::fs::read(corpus_folder().join(path))
    }

    fn file_names(&self) -> Vec<String> {
        vec!["mutant.cfg".to_owned()]
    }
}

/// Summaries of errors whose positions were already reported.
const SUMS: &[&str] = &["Failed to initialize server(s) addr."];

/// Returns the printed diagnostics of a configuration.
pub fn read(text: &[u8]) -> Vec<String> {
    let read_file = |path: &str, limit: u64| {
        let mut content = Vec::new();
        std::fs::File::open(corpus_folder().join(path))?.take(limit).read_to_end(&mut content)?;
        Ok(content)
    };
    let options = LoadOptions {
        spec: SpecOptions { read_file, ..SpecOptions::default() },
        local_peer: "here".to_owned(),
        ..LoadOptions::default()
    };
    let files = [InputFile { name: "mutant.cfg".to_owned(), bytes: text.to_vec() }];
    let mut loaded = config::load(&files, Environment::new(), &options);
    let mut found = std::mem::take(&mut loaded.diagnostics);
    if found.iter().any(Diagnostic::is_alert) {
        policy::diagnose(&loaded.spec, &mut Literals, &mut found);
    } else {
        let limits = SystemLimits { descriptors: 10_000, processors: 2, maxconn: None, memory: None };
        let program = policy::compile(&loaded.spec, &mut Literals, &limits, &mut found);
        let is_refused = found.iter().any(Diagnostic::is_alert);
        assert_eq!(program.is_none(), is_refused, "what is refused is told, and what is not told is served");
    }
    for diagnostic in &found {
        assert!(!diagnostic.message.is_empty());
        let has_place = diagnostic.span.is_some_and(|span| loaded.sources.line(span).is_some());
        let is_sum = SUMS.contains(&diagnostic.message.as_str());
        assert!(has_place || is_sum || diagnostic.severity != Severity::Alert, "without a place: {diagnostic:?}");
    }
    let shown = |diagnostic: &Diagnostic| {
        let mut out = String::new();
        diagnostic.render(&loaded.sources, 1, &mut out);
        assert!(out.len() < 50_000 && out.chars().all(|shown| shown == '\n' || !shown.is_control()), "{out:?}");
        out
    };
    in_order(found, &loaded.sources).iter().map(shown).collect()
}
