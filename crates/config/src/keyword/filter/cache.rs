//! Parser of `filter cache` (configuration manual, section 9.4), and the filters that rules with a cache imply. Must
//! never access a cache's content.

use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::proxy::{ProxyContext, ProxyDraft};
use crate::keyword::report::Report;
use crate::spec::{CacheSpec, FilterSpec};

pub(super) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(name) = line.words.get(2) else {
        context.report.alert(line.span(2), "'filter' : cache : expects a <name> argument");
        return;
    };
    if let Some(extra) = line.words.get(3) {
        context.report.alert(extra.span, format!("'filter cache' : unknown keyword '{}'.", extra.text));
        return;
    }
    let filter = FilterSpec::Cache { name: name.text.clone(), explicit: true };
    if context.draft.spec.filters.list.contains(&filter) {
        let message = format!(
            "'filter' : {}: multiple explicit declarations of the cache filter '{}'",
            context.name(),
            name.text
        );
        context.report.alert(name.span, message);
        return;
    }
    context.draft.spec.filters.list.push(filter);
}

/// Returns the caches that rules of a proxy name.
fn used(draft: &ProxyDraft) -> impl Iterator<Item = &Word> {
    let words = draft.spec.rules.rules.iter().map(|rule| &rule.line.words);
    let named = words
        .filter(|words| words.first().is_some_and(|word| matches!(word.text.as_str(), "cache-use" | "cache-store")));
    named.filter_map(|words| words.get(1))
}

/// Adds the filters that rules imply, before all others.
pub(crate) fn imply(draft: &mut ProxyDraft) {
    let mut missing: Vec<FilterSpec> = Vec::new();
    for name in used(draft) {
        let is_it =
            |filter: &FilterSpec| matches!(filter, FilterSpec::Cache { name: known, .. } if *known == name.text);
        if !draft.spec.filters.list.iter().chain(&missing).any(is_it) {
            missing.push(FilterSpec::Cache { name: name.text.clone(), explicit: false });
        }
    }
    if !missing.is_empty() {
        draft.spec.filters.list.splice(0..0, missing);
    }
}

/// Reports caches that do not exist, and filters in an invalid order. Must be called before [`imply`].
pub(crate) fn verify(drafts: &[ProxyDraft], caches: &[CacheSpec], report: &mut Report<'_>) {
    for draft in drafts {
        let (list, own) = (&draft.spec.filters.list, &draft.spec.name);
        let mut tell = |span, message: String, hint: Option<&str>| {
            let mut diagnostic = Diagnostic::alert(span, format!("config: proxy '{}': {message}", own.value));
            diagnostic.hint = hint.map(str::to_owned);
            report.push(diagnostic.with_form(Form::Bare));
        };
        let is_known = |name: &str| caches.iter().any(|cache| cache.name == name);
        let unknown = |name: &str| format!("unable to find the cache '{name}' referenced by the filter 'cache'.");
        for filter in list {
            if let FilterSpec::Cache { name, .. } = filter
                && !is_known(name)
            {
                tell(own.span, unknown(name), None);
            }
        }
        let others = list.iter().any(|filter| {
            !matches!(filter, FilterSpec::Cache { .. } | FilterSpec::Compression { .. } | FilterSpec::FcgiApp)
        });
        let mut told: Vec<&str> = Vec::new();
        for word in used(draft).filter(|word| {
            let is_it = |filter: &FilterSpec| matches!(filter, FilterSpec::Cache { name, .. } if *name == word.text);
            !list.iter().any(is_it)
        }) {
            if told.contains(&word.text.as_str()) {
                continue;
            }
            told.push(&word.text);
            if !is_known(&word.text) {
                tell(word.span, unknown(&word.text), None);
            } else if others {
                let message = format!("require an explicit filter declaration to use the cache '{}'.", word.text);
                tell(word.span, message, Some("write 'filter cache <name>' at its place among the filters"));
            }
        }
        let compression =
            list.iter().position(|filter| matches!(filter, FilterSpec::Compression { upload: false, .. }));
        let last_cache = list.iter().rposition(|filter| matches!(filter, FilterSpec::Cache { .. }));
        if compression.zip(last_cache).is_some_and(|(compression, cache)| compression < cache)
            || compression.is_some() && last_cache.is_none() && used(draft).next().is_some()
        {
            let message = "unable to enable the compression filter before any cache filter.".to_owned();
            tell(own.span, message, Some("write 'filter cache <name>' in front of 'filter compression'"));
        }
    }
}
