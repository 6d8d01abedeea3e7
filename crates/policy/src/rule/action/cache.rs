//! `cache-use`, `cache-store` and `cache-purge`: use, fill and purge a cache. Must never judge a message.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("cache-purge", purge), row("cache-store", store), row("cache-use", answer)];

/// Resolves the cache that the next word names; an unknown one is reported with the filters.
fn cache(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<usize, RuleError> {
    let name = words.expect("expects a cache name.")?;
    Ok(parsing.names.cache(&name.text).unwrap_or(usize::MAX))
}

fn answer(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let cache = cache(words, parsing)?;
    let hints = words.peek_text() != "no-early-hints";
    if !hints {
        words.take();
    }
    Ok(Action::UseCache { cache, hints })
}

fn store(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    Ok(Action::StoreInCache(cache(words, parsing)?))
}

fn purge(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let name = words.expect("expects a cache name.")?;
    match parsing.names.cache(&name.text) {
        Some(cache) => Ok(Action::PurgeCache(cache)),
        None => Err(RuleError::at(Some(name), format!("unable to find the cache '{}'", name.text))),
    }
}
