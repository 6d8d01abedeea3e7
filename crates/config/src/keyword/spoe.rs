//! The files that `filter spoe` names (SPOE.txt, section 2): read after the configuration, each in the scope of its
//! engine. Must never check anything that requires all sections of a configuration.

use super::paths::Paths;
use super::report::Report;
use super::scoped_file::{self, Reading};
use super::{DEFAULT_BUFSIZE, Experimental, ReadContext, SpecOptions, elsewhere, section};
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Section, SourceFile, Sources};
use crate::language;
use crate::options::LanguageOptions;
use crate::spec::{FilterSpec, Mode, ProxyKind, SectionsSpec, Spec, SpoeEngineSpec, SpoeFilterSpec};
use std::collections::HashMap;

/// Maximum size of a file, in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// Whether a word starts a section or a scope of such a file.
fn is_section(word: &str) -> bool {
    word.starts_with('[') || matches!(word, "spoe-agent" | "spoe-group" | "spoe-message")
}

/// Sections of the files that have been read, by path.
type SectionsByPath = HashMap<String, Vec<Section>>;

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
    let mut known = SectionsByPath::new();
    for index in 0..spec.proxies.len() {
        for place in 0..spec.proxies[index].filters.list.len() {
            let FilterSpec::Spoe(filter) = &spec.proxies[index].filters.list[place] else { continue };
            let filter = filter.clone();
            let before = out.iter().filter(|found| found.is_alert()).count();
            let sections = match read_file(sources, &reading, &filter, &mut known, out) {
                Ok(sections) => sections,
                Err(found) => {
                    out.push(found);
                    continue;
                }
            };
            let bufsize = spec.global.tune.bufsize.unwrap_or(DEFAULT_BUFSIZE);
            let content = read_engine(sources, &reading, bufsize, &filter, &sections, &mut spec.sections, out);
            let is_clean = out.iter().filter(|found| found.is_alert()).count() == before;
            if content.is_none() && is_clean {
                let message = format!("'filter' : No SPOE agent found in file {}", filter.file.value);
                let scope = filter.engine.as_ref().map_or_else(
                    || "without 'engine', the file must have a 'spoe-agent' section outside of any scope".to_owned(),
                    |engine| format!("the file must have a scope '[{}]' with a 'spoe-agent' section", engine.value),
                );
                out.push(Diagnostic::alert(filter.file.span, message).with_hint(scope));
            }
            if let FilterSpec::Spoe(filter) = &mut spec.proxies[index].filters.list[place] {
                filter.content = content;
            }
        }
    }
    convert_backends(spec);
}

/// Switches backends in TCP mode that agents use to SPOP mode (configuration manual, section 4.2, "mode").
fn convert_backends(spec: &mut Spec) {
    let engines = spec.sections.spoe_engines.iter();
    let used: Vec<&str> =
        engines.filter_map(|engine| Some(engine.agent.as_ref()?.backend.as_ref()?.value.as_str())).collect();
    for proxy in &mut spec.proxies {
        let is_used = used.contains(&proxy.name.value.as_str());
        if is_used && proxy.kind != ProxyKind::Frontend && proxy.mode == Mode::Tcp {
            proxy.mode = Mode::Spop;
        }
    }
}

/// Returns the sections of the file of a filter.
fn read_file(
    sources: &mut Sources,
    reading: &Reading<'_>,
    filter: &SpoeFilterSpec,
    known: &mut SectionsByPath,
    out: &mut Vec<Diagnostic>,
) -> Result<Vec<Section>, Diagnostic> {
    if let Some(sections) = known.get(&filter.path) {
        return Ok(sections.clone());
    }
    let (index, bytes) = scoped_file::open(sources, reading.options, &filter.file, &filter.path, LARGEST_FILE)?;
    let source = SourceFile::new(filter.path.clone(), bytes);
    let mut environment = reading.document.environment.clone();
    let sections = language::read_named(index, &source, &mut environment, reading.language, is_section, out);
    sources.0.push(source);
    known.insert(filter.path.clone(), sections.clone());
    Ok(sections)
}

/// Reads the sections of an engine; returns its index among all engines, or `None` if there is no agent.
fn read_engine(
    sources: &Sources,
    reading: &Reading<'_>,
    bufsize: u32,
    filter: &SpoeFilterSpec,
    sections: &[Section],
    content: &mut SectionsSpec,
    out: &mut Vec<Diagnostic>,
) -> Option<usize> {
    let (paths, experimental) = (Paths::of(reading.document), Experimental::default());
    let around = ReadContext {
        sources,
        environment: &reading.document.environment,
        options: reading.options,
        paths: &paths,
        bufsize,
        earlier: &[],
        local_peer: &reading.options.local_peer,
        experimental: &experimental,
        follows_sections: true,
    };
    let mut report = Report::new(out).with_other_tables(elsewhere::hint);
    let place = content.spoe_engines.len();
    content.spoe_engines.push(SpoeEngineSpec::default());
    let wanted = filter.engine.as_ref().map(|engine| engine.value.as_str());
    let mut current = None;
    for section in sections {
        if section.line.keyword().starts_with('[') {
            match scoped_file::scope(section) {
                Ok(name) => current = Some(name),
                Err(message) => report.alert(section.line.whole(), message),
            }
            if let Some(line) = section.body.first() {
                let message = format!("unknown keyword '{}' out of section.", line.keyword());
                report.tight(line.span(0), message);
            }
        } else if current == wanted
            && let Some(row) = section::find_named(section.line.keyword())
        {
            section::read(row, section, content, around, &mut report);
        }
    }
    let engine = content.spoe_engines.last_mut()?;
    let Some(agent) = &engine.agent else {
        content.spoe_engines.pop();
        return None;
    };
    engine.name = wanted.unwrap_or(&agent.name.value).to_owned();
    Some(place)
}
