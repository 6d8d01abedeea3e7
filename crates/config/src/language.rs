//! Turns files into a [`Document`]: lines, words, conditional blocks, variables and sections (configuration manual,
//! chapter 2). Must never interpret a keyword, except those that change the environment, which later lines use.

use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::document::{Document, Line, Section, SourceFile, Sources, Word};
use crate::environment::Environment;
use crate::lexer::{self, Comments, Token};
use crate::options::LanguageOptions;
use crate::span::Span;
use crate::text;
use blocks::Blocks;
use variables::LineVariables;

pub use crate::condition;
pub use input::InputFile;

mod blocks;
mod input;
mod preprocess;
pub mod section;
mod setenv;
pub mod variables;

/// Limits of a configuration, far above real ones; a wrong file is rejected before it exhausts memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum size of all files together, in bytes.
    pub bytes: usize,
    /// Maximum number of words of all files together.
    pub words: usize,
    /// Maximum number of bytes that variables may add to all files together.
    pub expansion: usize,
    /// Number of errors after which reading stops.
    pub errors: usize,
}

impl ReadLimits {
    /// Limits of [`read`]. The number of errors is HAProxy's.
    pub const USUAL: Self = Self { bytes: 64 << 20, words: 8_000_000, expansion: 256 << 20, errors: 1000 };
}

/// Reads files in their order. All errors are added to `out`; the document contains everything that could be read.
/// `setenv` and related keywords change `environment`.
pub fn read(
    files: &[InputFile],
    environment: &mut Environment,
    options: &LanguageOptions,
    out: &mut Vec<Diagnostic>,
) -> (Sources, Document) {
    read_within(ReadLimits::USUAL, files, environment, options, out)
}

/// Reads a file that the configuration names and that has its own sections; `is_section` recognizes them by their first
/// words. `index` is the index of `source` among the sources.
pub(crate) fn read_named(
    index: u32,
    source: &SourceFile,
    environment: &mut Environment,
    options: &LanguageOptions,
    is_section: fn(&str) -> bool,
    out: &mut Vec<Diagnostic>,
) -> Vec<Section> {
    let mut reader = Reader { is_section, ..Reader::new(ReadLimits::USUAL, environment, options, out) };
    let _ = reader.file(index, source);
    reader.document.sections
}

fn read_within(
    limits: ReadLimits,
    files: &[InputFile],
    environment: &mut Environment,
    options: &LanguageOptions,
    out: &mut Vec<Diagnostic>,
) -> (Sources, Document) {
    variables::define_log_formats(environment);
    let mut sources = Sources::default();
    let mut reader = Reader::new(limits, environment, options, out);
    for (index, file) in files.iter().enumerate() {
        sources.0.push(SourceFile::new(file.name.clone(), file.bytes.clone()));
        let Some(source) = sources.0.last() else { break };
        if reader.file(u32::try_from(index).unwrap_or(u32::MAX), source) == Flow::Stop {
            break;
        }
    }
    let mut document = reader.document;
    variables::forget_log_formats(environment);
    document.environment = environment.clone();
    (sources, document)
}

/// Whether reading continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Go,
    /// The rest of this file is skipped.
    LeaveFile,
    /// Reading stops.
    Stop,
}

/// Section of the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    /// No section has begun. True once that has been reported.
    Outside { told: bool },
    /// The last section of the document.
    Inside,
    /// A section whose first line had an error: its other lines are skipped, since they would only cause more errors.
    Lost,
}

struct Reader<'a> {
    limits: ReadLimits,
    environment: &'a mut Environment,
    options: &'a LanguageOptions,
    out: &'a mut Vec<Diagnostic>,
    document: Document,
    blocks: Blocks,
    place: ReaderState,
    /// Value of `$.SECTION`.
    section: String,
    errors: usize,
    bytes: usize,
    words: usize,
    expanded: usize,
    told_about_empty_words: bool,
    /// Whether a line that starts with this word starts a section.
    is_section: fn(&str) -> bool,
}

impl<'a> Reader<'a> {
    fn new(
        limits: ReadLimits,
        environment: &'a mut Environment,
        options: &'a LanguageOptions,
        out: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            limits,
            environment,
            options,
            out,
            document: Document::default(),
            blocks: Blocks::default(),
            place: ReaderState::Outside { told: false },
            section: String::new(),
            errors: 0,
            bytes: 0,
            words: 0,
            expanded: 0,
            told_about_empty_words: false,
            is_section: section::is_section,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.is_alert());
        self.out.push(diagnostic);
    }

    /// Reports an error in the form of the reader's own messages.
    fn alert(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.report(Diagnostic::alert(span, message).with_form(Form::ParsingTight).with_hint(hint));
    }

    fn file(&mut self, index: u32, source: &SourceFile) -> Flow {
        let whole = |number| Span { file: index, line: number, start: 0, end: 0 };
        self.bytes += source.bytes().len();
        if self.bytes > self.limits.bytes {
            let message = format!("more than {} bytes of configuration.", self.limits.bytes);
            self.alert(whole(1), message, "is this the right file?");
            return Flow::Stop;
        }
        (self.blocks, self.place) = (Blocks::default(), ReaderState::Outside { told: false });
        self.section.clear();
        let count = u32::try_from(source.line_count()).unwrap_or(u32::MAX);
        for number in 1..=count {
            if self.errors >= self.limits.errors {
                let message = format!("too many fatal errors ({}), stopping now.", self.limits.errors);
                self.report(Diagnostic::alert(whole(number), message).with_form(Form::ParsingTight));
                return Flow::Stop;
            }
            match self.line(whole(number), source, source.line(number).unwrap_or_default()) {
                Flow::Go => {}
                Flow::LeaveFile => return Flow::Go,
                Flow::Stop => return Flow::Stop,
            }
        }
        self.end_of_file(whole(count), source);
        Flow::Go
    }

    fn end_of_file(&mut self, last: Span, source: &SourceFile) {
        if source.bytes().last().is_some_and(|&byte| byte != b'\n') {
            let length = source.line(last.line).map_or(0, <[u8]>::len);
            let message =
                format!("Missing LF on last line, file might have been truncated at position {}.", length + 1);
            let hint = "if the file is complete, end its last line with a line feed";
            self.alert(Span { start: offset(length), end: offset(length), ..last }, message, hint);
        }
        if let Some((opened, others)) = self.blocks.unfinished() {
            let others = if others == 0 { String::new() } else { format!(", and {others} more") };
            let hint = format!("the '.if' on line {opened} has no '.endif'{others}");
            self.alert(last, "non-terminated '.if' block.", hint);
        }
    }

    fn line(&mut self, at: Span, source: &SourceFile, raw: &[u8]) -> Flow {
        if let Some(position) = raw.iter().position(|&byte| byte == 0) {
            let hint = if raw.len() > 2 && raw.iter().filter(|&&byte| byte == 0).count() >= raw.len() / 3 {
                "the file seems to be in UTF-16: save it as UTF-8"
            } else {
                "this is no text file, or a damaged one"
            };
            let span = Span { start: offset(position), end: offset(position + 1), ..at };
            self.alert(span, format!("Stray NUL character at position {}.", position + 1), hint);
            return Flow::LeaveFile;
        }
        let variables =
            LineVariables { environment: self.environment, file: &source.name, line: at.line, section: &self.section };
        let tokens = match lexer::lex(raw, &variables, Comments::Skipped) {
            Ok(tokens) => tokens,
            Err(error) => {
                let span = Span { start: offset(error.start), end: offset(error.end), ..at };
                self.alert(span, error.message(), error.hint());
                self.blocks.broken_line(raw, at.line);
                return Flow::Go;
            }
        };
        if self.is_too_much(at, raw, &tokens) {
            return Flow::Stop;
        }
        match tokens.first().map(|first| first.text.first()) {
            // A line that starts with an empty word is skipped, as in HAProxy: `"$DEBUG" log …`.
            None | Some(None) => {}
            Some(Some(b'.')) => self.directive(at, &tokens),
            Some(Some(_)) if !self.blocks.active() => {}
            Some(Some(_)) => self.statement(at, raw, tokens),
        }
        Flow::Go
    }

    /// Counts the words and bytes of a line, and reports an error if a limit is exceeded.
    fn is_too_much(&mut self, at: Span, raw: &[u8], tokens: &[Token]) -> bool {
        self.words += tokens.len();
        self.expanded += tokens.iter().map(|token| token.text.len()).sum::<usize>().saturating_sub(raw.len());
        if self.words > self.limits.words {
            let message = format!("more than {} words of configuration.", self.limits.words);
            self.alert(at, message, "is this the right file?");
            return true;
        }
        if self.expanded > self.limits.expansion {
            let message =
                format!("environment variables add more than {} bytes to the configuration.", self.limits.expansion);
            self.alert(at, message, "some variable is far too long");
            return true;
        }
        false
    }

    /// Reads a line that is not a directive: the start of a section, or a line of one.
    fn statement(&mut self, at: Span, raw: &[u8], tokens: Vec<Token>) {
        self.tell_what_is_ignored(at, raw, &tokens);
        let line = words(at, tokens);
        let is_section = (self.is_section)(line.keyword());
        if self.has_empty_word(&line) {
            if is_section {
                self.place = ReaderState::Lost;
            }
        } else if is_section {
            self.section = line.text(usize::from(line.words.len() > 1)).to_owned();
            self.place = ReaderState::Inside;
            self.document.sections.push(Section { line, body: Vec::new() });
        } else {
            self.line_of_section(line);
        }
    }

    fn line_of_section(&mut self, line: Line) {
        match (self.place, self.document.sections.last_mut()) {
            (ReaderState::Lost | ReaderState::Outside { told: true }, _) => {}
            (ReaderState::Inside, Some(section)) if section.line.keyword() != "global" => section.body.push(line),
            (ReaderState::Inside, Some(section)) => match setenv::apply(&line, self.environment, self.options) {
                None => section.body.push(line),
                Some(Ok(())) => {}
                Some(Err(diagnostic)) => self.report(diagnostic),
            },
            (ReaderState::Inside | ReaderState::Outside { .. }, _) => {
                let message = format!("unknown keyword '{}' out of section.", line.keyword());
                self.alert(line.span(0), message, section::hint(line.keyword()));
                self.place = ReaderState::Outside { told: true };
            }
        }
    }

    /// Reports bytes that HAProxy drops silently.
    fn tell_what_is_ignored(&mut self, at: Span, raw: &[u8], tokens: &[Token]) {
        let mut notice = |start: usize, end: usize, message: &str| {
            let span = Span { start: offset(start), end: offset(end), ..at };
            self.out.push(Diagnostic::new(Severity::Notice, span, message).with_form(Form::ParsingTight));
        };
        let end = tokens.last().map_or(0, |last| last.end as usize);
        if raw.get(end) == Some(&b'\r') && raw[end..].iter().any(|byte| !byte.is_ascii_whitespace()) {
            notice(end, end + 1, "what follows a carriage return on the same line is ignored.");
        }
        if let Some(token) = tokens.iter().find(|token| token.text.contains(&0)) {
            notice(
                token.start as usize,
                token.end as usize,
                "a word ends at its NUL character, the rest of it is ignored.",
            );
        }
    }

    /// Reports an empty word, which HAProxy rejects, since it would end the line and is most likely a mistake.
    fn has_empty_word(&mut self, line: &Line) -> bool {
        let Some(number) = line.words.iter().position(|word| word.text.is_empty()) else { return false };
        let span = line.span(number);
        let message = format!(
            "argument number {number} at position {} is empty and marks the end of the argument list:",
            span.end
        );
        let mut diagnostic = Diagnostic::alert(span, message).with_form(Form::ParsingTight);
        if !std::mem::replace(&mut self.told_about_empty_words, true) {
            diagnostic = diagnostic.with_hint(
                "Aborting to prevent all subsequent arguments from being silently ignored. If this is caused by an \
                 environment variable expansion, please have a look at section 2.3 of the configuration manual to \
                 find solutions to address this.",
            );
        }
        self.report(diagnostic);
        true
    }
}

fn words(at: Span, tokens: Vec<Token>) -> Line {
    let word = |token: Token| {
        let end = token.text.iter().position(|&byte| byte == 0).unwrap_or(token.text.len());
        let span = Span { start: token.start, end: token.end, ..at };
        Word { text: text::from_bytes(&token.text[..end]), span, quoted: token.quoted }
    };
    Line { words: tokens.into_iter().map(word).collect(), file: at.file, number: at.line }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
