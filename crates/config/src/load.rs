//! From files to a specification in one step: reads files, specifies, and sorts messages by file and line. Must
//! never decide whether a configuration is good enough to start with.

use crate::diagnostic::{Diagnostic, Form, ReportOrder, Severity};
use crate::document::{Document, Sources};
use crate::environment::Environment;
use crate::keyword::{self, SpecOptions};
use crate::language::{self, InputFile, ReadLimits, variables};
use crate::options::LanguageOptions;
use crate::span::Span;
use crate::spec::Spec;

/// Input of [`load`].
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Options of the reader.
    pub language: LanguageOptions,
    /// Options of the keywords.
    pub spec: SpecOptions,
    /// The name of the local peer: `-L`, or the host's name.
    pub local_peer: String,
}

/// Result of [`load`].
#[derive(Debug, Clone)]
pub struct LoadedConfiguration {
    /// The files, so that diagnostics can show their lines.
    pub sources: Sources,
    /// The words of the files.
    pub document: Document,
    /// The specification. Unusable if one of the diagnostics is an alert.
    pub spec: Spec,
    /// Diagnostics in the order of detection: [`in_order`] sorts them by file and line.
    pub diagnostics: Vec<Diagnostic>,
    /// The environment after the last line.
    pub environment: Environment,
}

impl LoadedConfiguration {
    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_alert)
    }
}

/// Reads files and builds a specification.
pub fn load(files: &[InputFile], mut environment: Environment, options: &LoadOptions) -> LoadedConfiguration {
    let mut found = Vec::new();
    variables::define(&mut environment, options.language.version, files, &options.local_peer);
    let (mut sources, document) = language::read(files, &mut environment, &options.language, &mut found);
    let for_keywords = SpecOptions {
        local_peer: options.local_peer.clone(),
        local_peer_is_fixed: options.language.local_peer_is_fixed,
        ..options.spec.clone()
    };
    let mut spec = keyword::specify(&sources, &document, &for_keywords, &mut found);
    keyword::read_spoe_files(&mut sources, &document, &options.language, &for_keywords, &mut spec, &mut found);
    keyword::read_otel_files(&mut sources, &document, &options.language, &for_keywords, &mut spec, &mut found);
    LoadedConfiguration { sources, document, spec, diagnostics: found, environment }
}

/// Sorts diagnostics by file and line, adds a summary for each file with errors, and truncates after
/// [`ReadLimits::errors`] of them: HAProxy does so after 50, which would hide other errors of a configuration.
/// Diagnostics of checks after parsing come last, in the same order, followed by those without a line.
pub fn in_order(found: Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let limit = ReadLimits::USUAL.errors;
    let (mut parsing, mut late): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|diagnostic| place(diagnostic).is_some());
    late.sort_by_key(late_order);
    parsing.sort_by_key(|diagnostic| place(diagnostic).map(|span| (span.file, span.line)));
    let mut ordered = Vec::with_capacity(parsing.len() + late.len() + 1);
    for group in parsing.chunk_by(|a, b| place(a).map(|span| span.file) == place(b).map(|span| span.file)) {
        let mut errors = 0;
        for diagnostic in group {
            if errors == limit {
                ordered.extend(place(diagnostic).map(|at| too_many(at, limit)));
                break;
            }
            errors += usize::from(diagnostic.is_alert());
            ordered.push(diagnostic.clone());
        }
        if errors > 0
            && let Some(file) = group.first().and_then(place).and_then(|span| sources.file(span))
        {
            let message = format!("Error(s) found in configuration file : {}", file.name);
            ordered.push(Diagnostic::general(Severity::Alert, message));
        }
    }
    ordered.extend(late);
    ordered
}

/// Proxies in their order, each with its early messages first. Removed sections, addresses and the last messages follow all proxies.
fn late_order(diagnostic: &Diagnostic) -> (ReportOrder, (u32, u32), ReportOrder) {
    let place = |span: Option<Span>| span.map_or((u32::MAX, u32::MAX), |span| (span.file, span.line));
    let (file, line) = place(diagnostic.section.or(diagnostic.span));
    match diagnostic.turn {
        // Of removed sections the last one comes first.
        turn @ ReportOrder::Sections(_) => (turn, (u32::MAX - file, u32::MAX - line), turn),
        turn @ (ReportOrder::Addresses | ReportOrder::Last) => (turn, (file, line), turn),
        turn => (ReportOrder::Usual, (file, line), turn),
    }
}

fn too_many(at: Span, limit: usize) -> Diagnostic {
    let message = format!("too many fatal errors ({limit}), stopping now.");
    Diagnostic::alert(Span { start: 0, end: 0, ..at }, message).with_form(Form::ParsingTight)
}

/// Returns the place of a diagnostic that was found while lines were read.
fn place(diagnostic: &Diagnostic) -> Option<Span> {
    let names_place = matches!(diagnostic.form, Form::Parsing | Form::ParsingTight | Form::Placed);
    diagnostic.span.filter(|_| names_place || diagnostic.turn == ReportOrder::Reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> InputFile {
        InputFile { name: name.into(), bytes: text.into() }
    }

    fn load_with(environment: &Environment, files: &[InputFile]) -> LoadedConfiguration {
        let options = LoadOptions { local_peer: "me".into(), ..LoadOptions::default() };
        load(files, environment.clone(), &options)
    }

    #[test]
    fn messages_are_in_the_order_of_the_files() {
        let loaded = load_with(
            &Environment::new(),
            &[
                file("a.cfg", "global\n    \"\n    nonsense\n.notice \"x\"\n"),
                file("b.cfg", "lost\n"),
                file("c.cfg", "global\n"),
            ],
        );
        let ordered = in_order(loaded.diagnostics.clone(), &loaded.sources);
        let shown: Vec<(u32, &str)> = ordered
            .iter()
            .map(|diagnostic| {
                let words = diagnostic.message.split(' ').next().unwrap_or_default();
                (diagnostic.span.map_or(0, |span| span.line), words)
            })
            .collect();
        let expected =
            [(2, "unmatched"), (3, "unknown"), (4, "'x'."), (0, "Error(s)"), (1, "unknown"), (0, "Error(s)")];
        assert_eq!(shown, expected);
        assert_eq!(ordered[3].message, "Error(s) found in configuration file : a.cfg");
        assert!(loaded.has_errors());
    }

    #[test]
    fn errors_end_somewhere() {
        let loaded =
            load_with(&Environment::new(), &[file("a.cfg", &format!("global\n{}", "    nonsense\n".repeat(1100)))]);
        let ordered = in_order(loaded.diagnostics, &loaded.sources);
        assert_eq!(ordered.len(), 1002);
        assert_eq!(ordered[1000].message, "too many fatal errors (1000), stopping now.");
        assert_eq!(ordered[1000].span.map(|span| span.line), Some(1002));
    }

    #[test]
    fn the_environment_comes_back_without_the_log_formats() {
        let text =
            "global\n    setenv A \"$HAPROXY_TCP_LOG_FMT\"\n    setenv B \"$HAPROXY_BRANCH$HAPROXY_LOCALPEER\"\n";
        let loaded = load_with(&Environment::new(), &[file("a.cfg", text)]);
        assert_eq!(loaded.diagnostics, []);
        assert!(loaded.environment.get("A").unwrap().starts_with("%ci:%cp"));
        assert_eq!(loaded.environment.get("B"), Some("3.5me"));
        assert_eq!(loaded.environment.get("HAPROXY_CFGFILES"), Some("a.cfg"));
        assert!(!loaded.environment.contains("HAPROXY_TCP_LOG_FMT"));
    }
}
