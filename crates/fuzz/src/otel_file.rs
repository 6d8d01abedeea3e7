//! Any bytes as the two files of `filter otel`, separated by a line of three percent signs: no panic in parsing,
//! compiling and printing diagnostics.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;

use config::environment::Environment;
use config::keyword::SpecOptions;
use config::spec::Family;
use config::{InputFile, LoadOptions};

thread_local! {
    static FILE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Resolves no name.
struct NoNames;

impl policy::Resolver for NoNames {
    fn resolve(&mut self, host: &str, _: Family) -> Result<IpAddr, String> {
        Err(host.to_owned())
    }
}

fn read_file(name: &str, limit: u64) -> io::Result<Vec<u8>> {
    const BETWEEN: &[u8] = b"\n%%%\n";
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(FILE.with_borrow(|file| {
        let at = file.windows(BETWEEN.len()).position(|window| window == BETWEEN);
        let (first, second) = at.map_or((&file[..], &[][..]), |at| (&file[..at], &file[at + BETWEEN.len()..]));
        let part = if name == "f" { first } else { second };
        part[..part.len().min(most)].to_vec()
    }))
}

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    const TEXT: &[u8] = b"frontend f\n bind 127.0.0.1:80\n filter otel id f config f\n filter otel config f\n";
    FILE.set(input.to_vec());
    let file = InputFile { name: "a".to_owned(), bytes: TEXT.to_vec() };
    let spec = SpecOptions { read_file, ..SpecOptions::default() };
    let options = LoadOptions { spec, ..LoadOptions::default() };
    let loaded = config::load(&[file], Environment::new(), &options);
    let mut found = loaded.diagnostics.clone();
    if !loaded.has_errors() {
        let compiled = policy::compile(&loaded.spec, &mut NoNames, &policy::SystemLimits::default(), &mut found);
        let is_refused = found.iter().any(config::diagnostic::Diagnostic::is_alert);
        assert_eq!(compiled.is_none(), is_refused, "a refusal without a reason, or the other way round");
    }
    let mut text = String::new();
    for diagnostic in &found {
        diagnostic.render(&loaded.sources, 0, &mut text);
    }
}
