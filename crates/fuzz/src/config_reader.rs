//! Any bytes as configuration files: no panic, termination, bounded messages that can all be rendered, and words that
//! round-trip.
//!
//! A byte 0xFE starts the next file.


use config::condition::{ConditionContext, eval_argument};
use config::document::{Document, Line, Sources};
use config::environment::Environment;
use config::keyword::{SpecOptions, specify};
use config::language::{InputFile, read};
use config::lexer::MAX_WORDS;
use config::options::LanguageOptions;
use config::{address, text, units};
use std::fmt::Write as _;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let files: Vec<InputFile> = data
        .split(|&byte| byte == 0xFE)
        .take(4)
        .enumerate()
        .map(|(index, bytes)| InputFile { name: index.to_string(), bytes: bytes.to_vec() })
        .collect();
    let options = LanguageOptions::default();
    let mut environment = environment();
    let mut found = Vec::new();
    let (sources, document) = read(&files, &mut environment, &options, &mut found);
    check(&sources, &document);
    written_again(&document);

    let options_of_keywords = SpecOptions {
        read_file: |_, _| Err(std::io::ErrorKind::NotFound.into()),
        local_peer: "here".to_owned(),
        ..SpecOptions::default()
    };
    specify(&sources, &document, &options_of_keywords, &mut found);
    let mut out = String::new();
    for diagnostic in &found {
        out.clear();
        diagnostic.render(&sources, 1, &mut out);
        assert!(out.len() < 50_000);
        assert!(out.chars().all(|shown| shown == '\n' || !shown.is_control()), "{out:?}");
    }
    single_words(data, &environment, &options);
}

fn environment() -> Environment {
    let mut environment = Environment::new();
    for (name, value) in [("A", "foo"), ("E", ""), ("L", "a b  c"), ("X", "x\u{EFE9}\\\"'$")] {
        environment.set(name, value).expect("it is small");
    }
    environment
}

fn check(sources: &Sources, document: &Document) {
    for section in &document.sections {
        for line in std::iter::once(&section.line).chain(&section.body) {
            assert!(!line.words.is_empty() && line.words.len() <= MAX_WORDS);
            let raw = sources.line(line.span(0)).expect("the line is there");
            for word in &line.words {
                assert!(!word.text.is_empty());
                assert!(word.span.start < word.span.end && word.span.end as usize <= raw.len());
                assert_eq!((word.span.file, word.span.line), (line.file, line.number));
            }
        }
    }
}

/// A document written with every byte escaped parses to the same document.
fn written_again(document: &Document) {
    let mut file = String::new();
    let mut write = |line: &Line| {
        for word in &line.words {
            for byte in text::to_bytes(&word.text).iter() {
                let _ = write!(file, "\\x{byte:02x}");
            }
            file.push(' ');
        }
        file.push('\n');
    };
    for section in &document.sections {
        write(&section.line);
        section.body.iter().for_each(&mut write);
    }
    let files = [InputFile { name: String::new(), bytes: file.into_bytes() }];
    let mut found = Vec::new();
    let mut environment = Environment::new();
    let (_, again) = read(&files, &mut environment, &LanguageOptions::default(), &mut found);
    let words = |document: &Document| -> Vec<String> {
        let lines = document.sections.iter().flat_map(|section| std::iter::once(&section.line).chain(&section.body));
        lines.map(|line| line.words.iter().map(|word| format!("{:?}", word.text)).collect()).collect()
    };
    assert_eq!(words(document), words(&again), "{found:?}");
}

fn single_words(data: &[u8], environment: &Environment, options: &LanguageOptions) {
    let _ = eval_argument(data, &ConditionContext { environment, options });
    let word = text::from_bytes(data);
    assert_eq!(*text::to_bytes(&word), *data);
    for rules in [address::AddressRules::BIND, address::AddressRules::SERVER, address::AddressRules::LOG] {
        if let Err(error) = address::parse(&word, &rules, environment) {
            let _ = (error.to_string(), error.hint());
        }
    }
    let _ = units::milliseconds(&word).map_err(|error| error.message(&word, "timeout client"));
    let _ = units::size(&word, u64::MAX).map_err(|error| error.message("tune.bufsize"));
    let _ = units::number(&word, i64::MIN..=i64::MAX);
}
