//! Finds the section that a keyword belongs to when it is unknown in its own, for the hint beneath the error.

use super::report::KeywordTable;
use super::table::rows;
use super::{global, option, proxy, section};

/// Returns a hint that names the section of a keyword, if any.
pub(crate) fn hint(word: &str, searched: KeywordTable) -> Option<String> {
    if section::find(word).is_some_and(|section| section.removed.is_some()) {
        return Some(format!("HAProxy has removed '{word}' sections; let the service manager run the program"));
    }
    let opens = |name: &str| name == word || name.split(' ').next() == Some(word);
    if searched != KeywordTable::Global && rows(global::FAMILIES).any(|row| opens(row.name)) {
        return Some(format!("'{word}' belongs into the 'global' section"));
    }
    let proxy = rows(proxy::FAMILIES).find(|row| searched != KeywordTable::Proxy && opens(row.name));
    if let Some(row) = proxy {
        return Some(format!("'{word}' belongs into one of these sections: {}", row.extra.sections()));
    }
    if searched == KeywordTable::Proxy && rows(option::FAMILIES).any(|row| row.name == word) {
        return Some(format!("write 'option {word}'"));
    }
    section::TABLE
        .iter()
        .find(|section| section.rows.iter().any(|row| opens(row.name)))
        .map(|section| format!("'{word}' belongs into a '{}' section", section.name))
}
