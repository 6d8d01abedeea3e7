//! Files that filters name (`filter spoe`, `filter otel`), whose sections belong to scopes. Must never interpret a
//! section.

use super::SpecOptions;
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Section, Sources};
use crate::options::LanguageOptions;
use crate::span::Spanned;

/// Context for reading files that have scopes.
pub(super) struct Reading<'a> {
    pub(super) document: &'a Document,
    pub(super) language: &'a LanguageOptions,
    pub(super) options: &'a SpecOptions,
}

/// Reads a file of at most `largest` bytes; returns its content and its index among the sources. `named` is its name as
/// written, `path` the path to open.
///
/// # Errors
/// The file cannot be read, or is larger.
pub(super) fn open(
    sources: &Sources,
    options: &SpecOptions,
    named: &Spanned<String>,
    path: &str,
    largest: u64,
) -> Result<(u32, Vec<u8>), Diagnostic> {
    let name = &named.value;
    let bytes = (options.read_file)(path, largest + 1).map_err(|error| {
        let why = error.to_string();
        let why = why.split(" (os error").next().unwrap_or_default();
        Diagnostic::alert(named.span, format!("'filter' : stat() failed for configuration file {name} : {why}"))
    })?;
    if bytes.len() as u64 > largest {
        return Err(Diagnostic::alert(named.span, format!("'filter' : configuration file {name} is too large")));
    }
    Ok((u32::try_from(sources.0.len()).unwrap_or(u32::MAX), bytes))
}

/// Returns the name of a scope, or the error of the line.
pub(super) fn scope(section: &Section) -> Result<&str, String> {
    let line = &section.line;
    let name = line.text(0).strip_prefix('[').unwrap_or_default();
    if let Some(next) = line.words.get(1) {
        let found = if next.quoted { '"' } else { ' ' };
        return Err(format!("character '{found}' is not permitted in a scope name."));
    }
    let name = name.strip_suffix(']').filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| "empty scope name is forbidden.".to_owned())?;
    match name.chars().find(|&found| !super::is_name_character(found)) {
        Some(bad) => Err(format!("character '{bad}' is not permitted in a scope name.")),
        None => Ok(name),
    }
}
