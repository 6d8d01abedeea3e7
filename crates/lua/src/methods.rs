//! Method names of fetches and converters. Must never call one.

use std::collections::HashMap;
use std::sync::OnceLock;

use expression::vocabulary::Vocabulary;

/// The names of fetches and converters by their method names, which have underscores in place of dots, dashes and
/// pluses.
static METHODS: OnceLock<(HashMap<String, String>, HashMap<String, String>)> = OnceLock::new();

fn method_name(name: &str) -> String {
    name.replace(['.', '-', '+'], "_")
}

/// Stores the method names. Only the first call has an effect.
pub(crate) fn know_names(vocabulary: &Vocabulary) {
    let names = |all: &mut dyn Iterator<Item = &str>| all.map(|name| (method_name(name), name.to_owned())).collect();
    let _ = METHODS.set((names(&mut vocabulary.fetch_names()), names(&mut vocabulary.converter_names())));
}

/// Returns the fetch or converter of a method.
pub(crate) fn real_name(is_fetch: bool, method: &str) -> Option<String> {
    let (fetches, converters) = METHODS.get()?;
    let names = if is_fetch { fetches } else { converters };
    names.get(method).cloned()
}
