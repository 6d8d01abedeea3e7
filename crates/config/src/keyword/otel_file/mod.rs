//! The files that `filter otel` names (HAProxy's OTel filter configuration guide): read after the configuration, each
//! in the scope of its filter, with the YAML file of its pipeline. Must never compile an expression.

mod lines;
mod pipeline;
mod yaml;

use super::SpecOptions;
use super::paths::Paths;
use super::report::Report;
use super::scoped_file::{self, Reading};
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Section, SourceFile, Sources};
use crate::language;
use crate::options::LanguageOptions;
use crate::span::Span;
use crate::spec::{FilterSpec, OtelFileSpec, OtelFilterSpec, Spec};
use crate::text;

/// Maximum size of a file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// Whether a word starts a section or a scope of such a file.
fn is_section(word: &str) -> bool {
    word.starts_with('[') || matches!(word, "otel-instrumentation" | "otel-group" | "otel-scope")
}

/// Reads the files of every filter into the specification, and adds them to `sources`.
pub fn read_files(
    sources: &mut Sources,
    document: &Document,
    language: &LanguageOptions,
    options: &SpecOptions,
    spec: &mut Spec,
    out: &mut Vec<Diagnostic>,
) {
    let reading = Reading { document, language, options };
    for index in 0..spec.proxies.len() {
        for place in 0..spec.proxies[index].filters.list.len() {
            let FilterSpec::Otel(filter) = &spec.proxies[index].filters.list[place] else { continue };
            let filter = filter.clone();
            match read_filter(sources, &reading, &filter, out) {
                Ok(file) => {
                    let content = Some(spec.sections.otel_filters.len());
                    let groups = file.groups.iter().map(|(name, _)| name.value.clone()).collect();
                    spec.sections.otel_filters.push(file);
                    if let FilterSpec::Otel(filter) = &mut spec.proxies[index].filters.list[place] {
                        (filter.content, filter.groups) = (content, groups);
                    }
                }
                Err(found) => out.extend(found),
            }
        }
    }
}

/// Reads both files of a filter. The error is one that has not been reported yet.
fn read_filter(
    sources: &mut Sources,
    reading: &Reading<'_>,
    filter: &OtelFilterSpec,
    out: &mut Vec<Diagnostic>,
) -> Result<OtelFileSpec, Option<Diagnostic>> {
    let before = out.iter().filter(|found| found.is_alert()).count();
    let (index, bytes) = scoped_file::open(sources, reading.options, &filter.file, &filter.path, LARGEST_FILE)?;
    let source = SourceFile::new(filter.path.clone(), bytes);
    let mut environment = reading.document.environment.clone();
    let sections = language::read_named(index, &source, &mut environment, reading.language, is_section, out);
    sources.0.push(source);
    let mut file = OtelFileSpec { span: filter.span, name: filter.name().to_owned(), ..OtelFileSpec::default() };
    let has_instrumentation = read_sections(sources, reading, filter, &sections, &mut file, out);
    let is_clean = |out: &[Diagnostic]| out.iter().filter(|found| found.is_alert()).count() == before;
    let config = file.config.clone().filter(|_| has_instrumentation);
    let Some((named, path)) = config else {
        let what =
            if has_instrumentation { "'config' in section 'otel-instrumentation'" } else { "'otel-instrumentation'" };
        let message = format!("'filter' : no {what} found in file {}", filter.file.value);
        let hint = format!("its scope is '[{}]'", file.name);
        return Err(is_clean(out).then(|| Diagnostic::alert(filter.file.span, message).with_hint(hint)));
    };
    let (index, bytes) = scoped_file::open(sources, reading.options, &named, &path, LARGEST_FILE)?;
    let source = SourceFile::new(path, bytes);
    let read = yaml::parse(&String::from_utf8_lossy(source.bytes())).map_err(|error| (error.line, error.message));
    sources.0.push(source);
    let at = |line: usize| Span { file: index, line: u32::try_from(line).unwrap_or(u32::MAX), start: 0, end: 0 };
    let mut report = Report::new(out);
    match read {
        Ok(tree) => file.pipeline = pipeline::read(&tree, filter.span, &at, &mut report),
        Err((line, message)) => report.alert(at(line), message),
    }
    if file.pipeline.is_some() && is_clean(out) { Ok(file) } else { Err(None) }
}

/// Reads the sections of a filter's scope. Returns whether there is an instrumentation.
fn read_sections(
    sources: &Sources,
    reading: &Reading<'_>,
    filter: &OtelFilterSpec,
    sections: &[Section],
    file: &mut OtelFileSpec,
    out: &mut Vec<Diagnostic>,
) -> bool {
    let paths = Paths::of(reading.document);
    let mut report = Report::new(out);
    // Sections before the first scope belong to a filter without a name.
    let (mut is_own, mut found) = (filter.id.is_none(), false);
    for section in sections {
        if section.line.keyword().starts_with('[') {
            match scoped_file::scope(section) {
                Ok(name) => is_own = name == filter.name(),
                Err(message) => report.alert(section.line.whole(), message),
            }
            if let Some(line) = section.body.first() {
                report.tight(line.span(0), format!("unknown keyword '{}' out of section.", line.keyword()));
            }
        } else if is_own {
            let mut course = lines::LineContext { file, report: report.reborrow(), paths: &paths, sources };
            found |= lines::section(&mut course, section);
        }
    }
    found
}

/// Decodes the text of a word.
fn plain(text: &str) -> String {
    String::from_utf8_lossy(&text::to_bytes(text)).into_owned()
}
