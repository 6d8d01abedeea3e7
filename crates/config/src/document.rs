//! A configuration as words: the reader's output and the keyword tables' input. Owns the text of the sources too, so
//! that a diagnostic can show the line. Must never interpret a keyword.

use crate::environment::Environment;
use crate::span::Span;

/// One configuration file as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceFile {
    /// The name as given with `-f`, or the path of a file found in a directory given with `-f`.
    pub name: String,
    bytes: Vec<u8>,
    /// Offset of the first byte of each line.
    starts: Vec<usize>,
}

impl SourceFile {
    /// Takes the bytes of a file and splits them into lines.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let mut starts = vec![0];
        starts.extend(bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(at, _)| at + 1));
        Self { name: name.into(), bytes, starts }
    }

    /// Returns the whole content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of lines; text after the last line feed counts as a line only if it is not empty.
    pub fn line_count(&self) -> usize {
        if self.bytes.last().is_none_or(|&byte| byte == b'\n') { self.starts.len() - 1 } else { self.starts.len() }
    }

    /// Returns one line, counted from 1, without its line feed (a carriage return is kept).
    pub fn line(&self, number: u32) -> Option<&[u8]> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).map_or(self.bytes.len(), |&next| next - 1);
        self.bytes.get(start..end)
    }
}

/// The files that a configuration was read from; [`Span::file`] is an index into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources(pub Vec<SourceFile>);

impl Sources {
    /// Returns the file of a span.
    pub fn file(&self, span: Span) -> Option<&SourceFile> {
        self.0.get(usize::try_from(span.file).ok()?)
    }

    /// Returns the raw line of a span.
    pub fn line(&self, span: Span) -> Option<&[u8]> {
        self.file(span)?.line(span.line)
    }
}

/// One word of a line, without quotes, with escapes and variables resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// The text; bytes that are not UTF-8 are encoded as described in [`crate::text`].
    pub text: String,
    /// Place in the source, including quotes. Words expanded from one `"${LIST[*]}"` share a place.
    pub span: Span,
    /// Whether any part of it was quoted.
    pub quoted: bool,
}

/// One line that contains at least one word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Never empty.
    pub words: Vec<Word>,
    /// Index of the file in [`Sources`].
    pub file: u32,
    /// Line number, from 1.
    pub number: u32,
}

impl Line {
    /// Returns the text of a word, or an empty one after the last word.
    pub fn text(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| &word.text)
    }

    /// Returns the text of the first word.
    pub fn keyword(&self) -> &str {
        self.text(0)
    }

    /// Returns the words after the first one.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the place of one word; after the last word, the place directly after the line's last word.
    pub fn span(&self, index: usize) -> Span {
        match self.words.get(index) {
            Some(word) => word.span,
            None => self.words.last().map_or(Span { file: self.file, line: self.number, start: 0, end: 0 }, |last| {
                Span { start: last.span.end, end: last.span.end, ..last.span }
            }),
        }
    }

    /// Returns the place of everything from the first word to the last one.
    pub fn whole(&self) -> Span {
        let first = self.span(0);
        Span { end: self.words.last().map_or(first.end, |last| last.span.end), ..first }
    }
}

/// One section: the line that opens it and the lines up to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    pub line: Line,
    /// The lines of the section, in order.
    pub body: Vec<Line>,
}

/// A whole configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// The sections, in order. Sections of the same kind are not merged.
    pub sections: Vec<Section>,
    /// The environment after the last line: addresses expand variables even where quotes are missing.
    pub environment: Environment,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found() {
        let rows: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b"\n", &[b""]),
            (b"a", &[b"a"]),
            (b"a\n", &[b"a"]),
            (b"a\n\nb\r\nc", &[b"a", b"", b"b\r", b"c"]),
        ];
        for (text, lines) in rows {
            let file = SourceFile::new("f", text.to_vec());
            let found: Vec<&[u8]> = (1..=file.line_count()).map(|n| file.line(n as u32).unwrap()).collect();
            assert_eq!(found, *lines, "{text:?}");
            assert_eq!(file.line(0), None);
        }
    }

    #[test]
    fn a_missing_word_is_behind_the_last_one() {
        let span = |start, end| Span { file: 1, line: 2, start, end };
        let word = |text: &str, start, end| Word { text: text.into(), span: span(start, end), quoted: false };
        let line = Line { words: vec![word("bind", 2, 6), word(":80", 7, 10)], file: 1, number: 2 };
        assert_eq!((line.keyword(), line.text(1), line.text(2)), ("bind", ":80", ""));
        assert_eq!((line.span(1), line.span(9)), (span(7, 10), span(10, 10)));
        assert_eq!(line.whole(), span(2, 10));
        assert_eq!(line.arguments().len(), 1);
    }
}
