//! Collects the diagnostics of a configuration, with the sentences that many keywords share. Must never stop at
//! the first one.

use crate::diagnostic::{Diagnostic, Form, ReportOrder, Severity};
use crate::document::{Line, Word};
use crate::span::Span;
use crate::suggest;

/// Tables of keywords that have been searched without a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordTable {
    Global,
    Proxy,
    Section,
}

/// Returns a hint that names the section of a keyword, if any.
type SectionHint = fn(&str, KeywordTable) -> Option<String>;

/// Sink of diagnostics.
pub(crate) struct Report<'a> {
    out: &'a mut Vec<Diagnostic>,
    elsewhere: SectionHint,
}

impl<'a> Report<'a> {
    pub(crate) fn new(out: &'a mut Vec<Diagnostic>) -> Self {
        Self { out, elsewhere: |_, _| None }
    }

    /// Looks for unknown keywords in other tables as well.
    pub(crate) fn with_other_tables(self, elsewhere: SectionHint) -> Self {
        Self { elsewhere, ..self }
    }

    /// Borrows the same sink again.
    pub(crate) fn reborrow(&mut self) -> Report<'_> {
        Report { out: self.out, elsewhere: self.elsewhere }
    }

    /// Returns a hint that names the section of an unknown keyword, if any.
    pub(crate) fn elsewhere(&self, word: &Word, searched: KeywordTable) -> Option<String> {
        (self.elsewhere)(&word.text, searched)
    }

    /// Whether an error has been reported so far.
    pub(crate) fn has_alerts(&self) -> bool {
        self.out.iter().any(Diagnostic::is_alert)
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.out.push(diagnostic);
    }

    pub(crate) fn alert(&mut self, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::alert(span, message));
    }

    /// Reports an error in the form of HAProxy's oldest messages, without a space before the colon.
    pub(crate) fn tight(&mut self, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::alert(span, message).with_form(Form::ParsingTight));
    }

    pub(crate) fn warning(&mut self, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::warning(span, message));
    }

    /// Reports an error in a server's line, in HAProxy's form for servers.
    pub(crate) fn placed(&mut self, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::alert(span, message).with_form(Form::Placed));
    }

    /// Reports an error found after parsing: HAProxy prints no line number.
    pub(crate) fn late(&mut self, severity: Severity, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::new(severity, span, message).with_form(Form::Bare));
    }

    /// HAProxy's warning about what follows the unit of a time: it names no line, and comes where the line is read.
    pub(crate) fn leftover(&mut self, span: Span, message: String) {
        self.push(Diagnostic::warning(span, message).with_form(Form::Config).in_turn(ReportOrder::Reading, span));
    }

    /// Shown with `-dD` only.
    pub(crate) fn diag(&mut self, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::new(Severity::Diag, span, message));
    }

    /// Reports a keyword that HAProxy supports and Weir does not yet.
    pub(crate) fn not_yet(&mut self, span: Span, what: &str, place: &str) {
        self.alert(span, format!("'{what}' is not supported yet by Weir (in {place})."));
    }

    /// Reports a keyword that is accepted without effect.
    pub(crate) fn no_counterpart(&mut self, span: Span, what: &str, place: &str) {
        self.diag(span, format!("'{what}' has no counterpart in Weir and is ignored (in {place})."));
    }

    /// Reports a keyword that HAProxy has removed.
    pub(crate) fn removed(&mut self, span: Span, sentence: &str, argument: &str) {
        self.alert(span, sentence.replace("%1", argument));
    }

    /// Reports words after a line's last argument. Returns true if there are any.
    pub(crate) fn too_many(&mut self, line: &Line, words: usize, name: &str) -> bool {
        let Some(extra) = line.words.get(words) else { return false };
        self.alert(extra.span, format!("'{name}' cannot handle unexpected argument '{}'.", extra.text));
        true
    }

    /// Reports a keyword that the tables do not have.
    pub(crate) fn unknown(&mut self, word: &Word, section: &str, names: Vec<&'static str>, searched: KeywordTable) {
        let known = suggest::nearest(&word.text, names);
        let message = format!("unknown keyword '{}' in '{section}' section{}", word.text, did_you_mean(known));
        let mut diagnostic = Diagnostic::alert(word.span, message);
        diagnostic.hint = self.elsewhere(word, searched);
        self.push(diagnostic);
    }
}

/// Returns the end of a sentence about an unknown name, in HAProxy's form.
pub(crate) fn did_you_mean(known: Option<&str>) -> String {
    known.map_or(String::new(), |known| format!("; did you mean '{known}' maybe ?"))
}

/// Joins names for a sentence: `'a', 'b' and 'c'`.
pub(crate) fn quoted_list(names: &[&str]) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let before = match index {
            0 => "",
            _ if index + 1 == names.len() => " and ",
            _ => ", ",
        };
        text.push_str(before);
        text.push('\'');
        text.push_str(name);
        text.push('\'');
    }
    text
}
