//! Messages about the configuration: one sentence in HAProxy's form, the line that it is about and a hint.
//! Must never print anything itself.

use crate::document::Sources;
use crate::span::Span;
use crate::text;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The configuration cannot be used.
    Alert,
    /// The configuration can be used, but something in it is most likely a mistake. Fatal with `zero-warning` or `-dW`.
    Warning,
    /// Information that needs no action.
    Notice,
    /// Printed in diagnostic mode (`-dD`) only.
    Diag,
}

impl Severity {
    /// Returns the tag in front of a message, padded as in HAProxy.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Alert => "[ALERT]    ",
            Self::Warning => "[WARNING]  ",
            Self::Notice => "[NOTICE]   ",
            Self::Diag => "[DIAG]     ",
        }
    }
}

/// Text between the process id and the message. HAProxy is not consistent here and scripts match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// `config : parsing [file:line] : message`, by far the most common one; without a place `config : message`.
    #[default]
    Parsing,
    /// `config : parsing [file:line]: message`, without the space (`.notice`, quotes, `.if`).
    ParsingTight,
    /// `config : [file:line] : message`: servers.
    Placed,
    /// `Parsing [file:line]: message`: formats and rules, which HAProxy compiles after parsing.
    LateParsing,
    /// `config : Parsing [file:line]: message`: two sections, or two name servers, with the same name.
    ConfigLateParsing,
    /// `parsing [file:line] : message`: log options that do not fit the mode of their proxy.
    Unfit,
    /// `[file:line] : message`: errors of servers found after parsing.
    LatePlaced,
    /// `config : message`: errors found after parsing. A place is still shown beneath.
    Config,
    /// `message` alone.
    Bare,
}

/// When HAProxy says what it finds after parsing. It goes through the proxies, and says of each what it misses for HTTP last; other
/// sections, and some options of proxies, follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ReportOrder {
    /// Where its line is read, though no place is named.
    Reading,
    /// With its proxy, before its timeouts are looked at; the smaller number first.
    Early(u8),
    /// With its proxy.
    #[default]
    Usual,
    /// After all proxies: sections that are removed, the last one of a kind first; the smaller number of a kind first.
    Sections(u8),
    /// After those sections: options that add fields with addresses.
    Addresses,
    /// In the end.
    Last,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The place that the message is about. With a line number of 0: a whole file.
    pub span: Option<Span>,
    /// The message: HAProxy's own sentence where it has one. Lines after the first one are indented when shown.
    pub message: String,
    /// Advice on how to fix it.
    pub hint: Option<String>,
    /// The form of the first line.
    pub form: Form,
    /// When it is said, if it is found after parsing.
    pub turn: ReportOrder,
    /// The first line of the section whose turn it is; none: its own line counts.
    pub section: Option<Span>,
}

impl Diagnostic {
    /// Returns a message of any severity about a place.
    pub fn new(severity: Severity, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity,
            span: Some(span),
            message: message.into(),
            hint: None,
            form: Form::Parsing,
            turn: ReportOrder::Usual,
            section: None,
        }
    }

    /// Returns an error about a place.
    pub fn alert(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Alert, span, message)
    }

    /// Returns a warning about a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message)
    }

    /// Returns a message that is about no particular place.
    pub fn general(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            severity,
            span: None,
            message: message.into(),
            hint: None,
            form: Form::Config,
            turn: ReportOrder::Usual,
            section: None,
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the form of the first line.
    #[must_use]
    pub fn with_form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// The same at another time, with what is said of the section that begins there.
    #[must_use]
    pub fn in_turn(mut self, turn: ReportOrder, section: Span) -> Self {
        (self.turn, self.section) = (turn, Some(section));
        self
    }

    /// Whether the configuration cannot be used because of it.
    pub fn is_alert(&self) -> bool {
        self.severity == Severity::Alert
    }

    /// Writes the message as HAProxy does, then the source line, a caret run under the words and the hint.
    ///
    /// An empty span at the start of a line means the line as a whole, which is not shown then.
    pub fn render(&self, sources: &Sources, pid: u32, out: &mut String) {
        let _ = write!(out, "{}({pid}) : ", self.severity.tag());
        let place = self.span.and_then(|span| sources.file(span).map(|file| (span, file)));
        let _ = match (self.form, place) {
            (Form::Bare, _) => Ok(()),
            (Form::Parsing, Some((span, file))) => {
                write!(out, "config : parsing [{}:{}] : ", escape_controls(&file.name), span.line)
            }
            (Form::ParsingTight, Some((span, file))) => {
                write!(out, "config : parsing [{}:{}]: ", escape_controls(&file.name), span.line)
            }
            (Form::Placed, Some((span, file))) => {
                write!(out, "config : [{}:{}] : ", escape_controls(&file.name), span.line)
            }
            (Form::LatePlaced, Some((span, file))) => write!(out, "[{}:{}] : ", escape_controls(&file.name), span.line),
            (Form::Unfit, Some((span, file))) => {
                write!(out, "parsing [{}:{}] : ", escape_controls(&file.name), span.line)
            }
            (Form::LateParsing, Some((span, file))) => {
                write!(out, "Parsing [{}:{}]: ", escape_controls(&file.name), span.line)
            }
            (Form::ConfigLateParsing, Some((span, file))) => {
                write!(out, "config : Parsing [{}:{}]: ", escape_controls(&file.name), span.line)
            }
            (Form::Config, _) | (_, None) => write!(out, "config : "),
        };
        lines(&self.message, "   | ", out);
        if let Some((span, file)) = place
            && let Some(line) = file.line(span.line)
            && span.end > 0
        {
            if matches!(self.form, Form::Config | Form::Bare) {
                let _ = writeln!(out, "  [{}:{}]", escape_controls(&file.name), span.line);
            }
            excerpt::write(line, span, out);
        }
        if let Some(hint) = &self.hint {
            out.push_str("  hint: ");
            lines(hint, "        ", out);
        }
    }
}

/// Writes a source line, with a caret run under a part of it.
pub fn write_excerpt(line: &[u8], span: Span, out: &mut String) {
    excerpt::write(line, span, out);
}

/// Maximum length of one message, in characters.
const MAX_MESSAGE: usize = 2000;

/// Writes text of one or several lines; lines after the first one are indented.
fn lines(text: &str, indent: &str, out: &mut String) {
    let short = match text.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => Cow::Owned(format!("{}...", &text[..at])),
        None => Cow::Borrowed(text),
    };
    for (number, line) in short.trim_end_matches('\n').split('\n').enumerate() {
        // Some of HAProxy's sentences include the indentation.
        if number > 0 && !line.starts_with(indent) {
            out.push_str(indent);
        }
        out.push_str(&escape_controls(line));
        out.push('\n');
    }
}

/// Makes text safe for a terminal: control characters and bytes that are not UTF-8 become escape sequences.
fn escape_controls(text: &str) -> Cow<'_, str> {
    if text.chars().all(|character| excerpt::is_safe(character) && text::raw_byte(character).is_none()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        let _ = match text::raw_byte(character) {
            Some(byte) => write!(out, "\\x{byte:02x}"),
            None if excerpt::is_safe(character) => write!(out, "{character}"),
            None if character == '\t' => write!(out, "\\t"),
            None if character == '\r' => write!(out, "\\r"),
            None if character.is_ascii() => write!(out, "\\x{:02x}", u32::from(character)),
            None => write!(out, "\\u{{{:x}}}", u32::from(character)),
        };
    }
    Cow::Owned(out)
}

mod excerpt;

#[cfg(test)]
mod tests;
