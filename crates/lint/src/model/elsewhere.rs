//! Lines that are read and are not part of the document: blocks whose condition is false, and files of filters. Owns the
//! names in them, since another environment, or another program, may use what they name. Must never parse them.

use config::document::{Document, Sources};
use std::collections::BTreeSet;

/// Returns every name in these lines, except in comments.
pub fn names(sources: &Sources, document: &Document) -> BTreeSet<String> {
    let sections = document.sections.iter();
    let lines = sections.flat_map(|section| std::iter::once(&section.line).chain(&section.body));
    let known: BTreeSet<(usize, u32)> = lines.map(|line| (line.file as usize, line.number)).collect();
    let mut names = BTreeSet::new();
    for (file, source) in sources.0.iter().enumerate() {
        let last = u32::try_from(source.line_count()).unwrap_or(u32::MAX);
        for number in (1..=last).filter(|number| !known.contains(&(file, *number))) {
            let text = String::from_utf8_lossy(source.line(number).unwrap_or_default());
            let text = text.split('#').next().unwrap_or_default();
            let in_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
            let found = text.split(|letter: char| !in_name(letter)).filter(|name| !name.is_empty());
            names.extend(found.map(str::to_owned));
        }
    }
    names
}
