//! Samples in words: a fetch with converters, alone or in a format. Must never know what a fetch returns.

use config::document::Word;
use config::span::Span;
use expression::{Call, calls};
use policy::running::{CONVERTERS, FETCHES};

/// A fetch with its converters.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The fetch, followed by the converters.
    pub calls: Vec<Call>,
    /// The word that contains it.
    pub span: Span,
}

impl Sample {
    /// Returns the fetch.
    pub fn fetch(&self) -> Option<&Call> {
        self.calls.first()
    }
}

/// Returns the samples in the words of a line. A word counts as one if it begins with the name of a fetch.
pub fn samples_in(words: &[Word]) -> Vec<Sample> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if begins_with_fetch(&word.text) {
            let mut text = word.text.clone();
            // Converters may be words of their own.
            while let Some(next) = words.get(at).filter(|next| text.ends_with(',') || is_converter(&next.text)) {
                if !text.ends_with(',') {
                    text.push(',');
                }
                text.push_str(&next.text);
                at += 1;
            }
            found.extend(calls(&text).map(|calls| Sample { calls, span: word.span }));
        } else {
            formats_in(word, &mut found);
        }
    }
    found
}

/// Finds every `%[...]` of a word.
fn formats_in(word: &Word, found: &mut Vec<Sample>) {
    let mut rest = word.text.as_str();
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        for (open, close) in [('(', ')'), ('{', '}')] {
            if rest.starts_with(open)
                && let Some(end) = rest.find(close)
            {
                rest = &rest[end + 1..];
            }
        }
        if let Some(inside) = rest.strip_prefix('[') {
            found.extend(calls(inside).map(|calls| Sample { calls, span: word.span }));
        }
    }
}

/// Returns the name at the start of a text.
fn head(text: &str) -> &str {
    text.split(['(', ',']).next().unwrap_or_default()
}

fn begins_with_fetch(text: &str) -> bool {
    let name = head(text);
    FETCHES.find(name).is_some() || expression::condition::shorthands().iter().any(|row| row.name == name)
}

fn is_converter(text: &str) -> bool {
    CONVERTERS.find(head(text)).is_some()
}
