//! The initial entries of a list: its patterns, and in a map the value of each, stored contiguously. Must never change.

use super::index::{PatternIndex, Texts};
use super::lines;

/// The entries of a list, in order. An entry is identified by its index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entries {
    text: Box<[u8]>,
    spans: Vec<EntrySpans>,
}

/// A part of a list's text.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Span {
    start: u32,
    length: u32,
}

/// The parts of an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EntrySpans {
    key: Span,
    value: Span,
}

impl Entries {
    /// Parses a file; `map`: with values.
    ///
    /// # Errors
    /// The file is larger than 4 GiB.
    pub fn of_file(content: Vec<u8>, map: bool) -> Result<Self, String> {
        if u32::try_from(content.len()).is_err() {
            return Err("the list is too large".to_owned());
        }
        let start = content.as_ptr() as usize;
        let place = |part: &[u8]| match part.len() {
            0 => Span::default(),
            length => Span { start: (part.as_ptr() as usize - start) as u32, length: length as u32 },
        };
        let found = lines(&content, map).map(|line| EntrySpans { key: place(line.key), value: place(line.value) });
        let mut spans: Vec<EntrySpans> = Vec::with_capacity(memchr::memchr_iter(b'\n', &content).count() + 1);
        spans.extend(found);
        spans.shrink_to_fit();
        Ok(Self { text: content.into_boxed_slice(), spans })
    }

    /// Stores the patterns of a configuration line.
    pub fn of_words<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            let key = Span { start: text.len() as u32, length: word.len() as u32 };
            spans.push(EntrySpans { key, value: Span::default() });
            text.extend_from_slice(word);
        }
        Self { text: text.into_boxed_slice(), spans }
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the value of an entry; empty if there is none.
    pub fn value(&self, at: PatternIndex) -> &[u8] {
        self.spans.get(at as usize).map_or(&[], |span| self.part(span.value))
    }

    /// Returns the line of the file that contains an entry, from 1; for messages.
    pub fn line(&self, at: PatternIndex) -> usize {
        let before = self.spans.get(at as usize).map_or(0, |span| span.key.start as usize);
        memchr::memchr_iter(b'\n', &self.text[..before]).count() + 1
    }

    fn part(&self, span: Span) -> &[u8] {
        self.text.get(span.start as usize..(span.start + span.length) as usize).unwrap_or_default()
    }
}

impl Texts for Entries {
    #[inline]
    fn key(&self, at: PatternIndex) -> &[u8] {
        self.spans.get(at as usize).map_or(&[], |span| self.part(span.key))
    }
}
