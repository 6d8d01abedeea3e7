//! The input and context of action parsers. Must never know an action.

use crate::program::SpoeCall;
use crate::registry::Registry;
use config::document::Word;
use config::keyword::rule::{RULE_SETS, RuleSets};
use config::span::Span;
use config::spec::{Mode, ProxySpec};
use config::text::to_bytes;
use expression::log_format::{LogFormat, Purpose};
use expression::sample::EvalPlace;
use expression::vocabulary::Vocabulary;
use expression::{Expression, Names};
use live::table::StickTable;
use std::cell::RefCell;
use std::sync::Arc;
use wire::h1::is_token;

/// An error in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// HAProxy's message, without the final period.
    pub message: String,
    /// A suggestion.
    pub hint: Option<String>,
    /// Location of the words.
    pub span: Option<Span>,
    /// The message is complete: no prefix is added.
    pub whole: bool,
}

impl RuleError {
    /// Creates an error without a location.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, span: None, whole: false }
    }

    /// Creates an error with a complete message.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { whole: true, ..Self::new(message) }
    }

    /// Creates an error about a word.
    pub fn at(word: Option<&Word>, message: impl Into<String>) -> Self {
        Self { span: word.map(|word| word.span), ..Self::new(message) }
    }
}

/// The words of a rule; those after the action are consumed one by one.
pub struct Words<'a> {
    words: &'a [Word],
    at: usize,
    /// No condition follows: `if` and `unless` are ordinary words.
    unconditional: bool,
}

impl<'a> Words<'a> {
    /// Creates the words of a rule; the first word is the action.
    pub fn new(words: &'a [Word]) -> Self {
        Self { words, at: 1, unconditional: false }
    }

    /// Creates the words of a line without a condition; the first word is the keyword.
    pub fn all(words: &'a [Word]) -> Self {
        Self { unconditional: true, ..Self::new(words) }
    }

    /// The action as configured, including parentheses.
    pub fn action(&self) -> &'a str {
        self.words.first().map_or("", |word| &word.text)
    }

    /// Location of the action.
    pub fn span(&self) -> Span {
        self.words.first().map_or_else(Span::default, |word| word.span)
    }

    /// The text in parentheses after the action's name: `a` of `set-var(a)`.
    pub fn parentheses(&self) -> Option<&'a str> {
        let (_, rest) = self.action().split_once('(')?;
        rest.strip_suffix(')')
    }

    /// Returns the next word without consuming it. The condition is not an argument.
    pub fn peek(&self) -> Option<&'a Word> {
        let is_argument = |word: &&Word| word.quoted || !matches!(word.text.as_str(), "if" | "unless");
        self.words.get(self.at).filter(|word| self.unconditional || is_argument(word))
    }

    /// Returns the text of the next word without consuming it; empty at the end.
    pub fn peek_text(&self) -> &'a str {
        self.peek().map_or("", |word| &word.text)
    }

    /// Consumes the next word.
    pub fn take(&mut self) -> Option<&'a Word> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Consumes the next word.
    ///
    /// # Errors
    /// `missing`, if there is none.
    pub fn expect(&mut self, missing: &str) -> Result<&'a Word, RuleError> {
        self.take().ok_or_else(|| RuleError::new(missing))
    }

    /// Returns the remaining words: the condition, if the action has consumed all of its arguments.
    pub fn rest(&self) -> &'a [Word] {
        self.words.get(self.at..).unwrap_or_default()
    }
}

/// Resolves the names in rules, in addition to those in expressions.
pub trait RuleNames: Names {
    /// Returns the rows and services that are registered in addition to the built-in tables.
    fn registry(&self) -> &Registry;

    /// Returns the index of a `log-profile` section.
    fn log_profile(&self, name: &str) -> Option<usize>;

    /// Returns the index of a `cache` section.
    fn cache(&self, name: &str) -> Option<usize>;

    /// Returns the index of a backend that gets requests beside those of streams.
    ///
    /// # Errors
    /// The backend cannot be used.
    fn side_backend(&self, name: &str, requests: SideRequests) -> Result<usize, String>;

    /// Returns the indices of the backend and the server for `attach-srv`; `is_named`: with a name.
    ///
    /// # Errors
    /// The server cannot be used.
    fn reversed_server(&self, name: &str, is_named: bool) -> Result<(usize, usize), String>;

    /// Returns the index of a `resolvers` section.
    fn resolvers(&self, name: &str) -> Option<usize>;

    /// Returns the stick table at an index.
    fn table_plan(&self, index: usize) -> Option<StickTable>;

    /// Returns the number of stick counters of a session or a stream (`tune.stick-counters`).
    fn stick_counters(&self) -> u8;

    /// Returns the messages of an engine's group; `None` if the proxy has no such engine, `Some(None)` if the engine
    /// has no such group.
    fn spoe_group(&self, engine: &str, group: &str) -> Option<Option<Arc<SpoeCall>>>;

    /// Returns the pages of an `http-errors` section, by status.
    fn error_pages(&self, section: &str) -> Option<Vec<(u16, Vec<u8>)>>;
}

/// Requests that a rule sends to another backend beside the stream's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideRequests {
    /// Those of `mirror`, over HTTP/1.1.
    Copies,
    /// Those of `auth-request`, over HTTP/1.1 or HTTP/2.
    Subrequests,
}

impl SideRequests {
    /// Returns the word for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::Subrequests => "subrequests",
        }
    }

    /// Whether they are sent over HTTP/2.
    pub fn has_http2(self) -> bool {
        self == Self::Subrequests
    }
}

/// The context of action parsers.
pub struct Parsing<'a> {
    /// Resolves names.
    pub names: &'a dyn RuleNames,
    /// The place where the rule is evaluated.
    pub place: EvalPlace,
    pub set: RuleSets,
    /// The proxy of the rule.
    pub proxy: &'a ProxySpec,
    /// HAProxy's warnings about the rule.
    pub warnings: RefCell<Vec<String>>,
}

impl Parsing<'_> {
    /// Whether the rule is evaluated for requests.
    pub fn is_request(&self) -> bool {
        (self.place as u8) < EvalPlace::BackResponseContent as u8
    }

    /// Parses the expression that starts at the next word. Converters may be separate words.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn expression(&self, words: &mut Words<'_>) -> Result<Expression, RuleError> {
        let first = words.peek();
        let expression = self.sample(words, self.place)?;
        match expression.fetch().refusal(self.place) {
            Some(why) => Err(RuleError::at(first, why)),
            None => Ok(expression),
        }
    }

    /// Parses the expression that starts at the next word for a place, whether or not it is available there.
    ///
    /// # Errors
    /// The expression is invalid.
    pub(crate) fn sample(&self, words: &mut Words<'_>, place: EvalPlace) -> Result<Expression, RuleError> {
        let first = words.take().ok_or_else(|| RuleError::new("missing fetch method"))?;
        let mut text = first.text.clone();
        while let Some(next) = words.peek().filter(|next| joins(&text, next, self.names.vocabulary())) {
            join(&mut text, next);
            words.take();
        }
        Expression::parse_all(&text, place, self.names).map_err(|error| RuleError {
            message: error.message,
            hint: error.hint,
            span: Some(first.span),
            whole: false,
        })
    }

    /// Parses the expression that starts at the next word, for rules on stick tables: HAProxy has another message for
    /// unavailable fetches.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn key(&self, words: &mut Words<'_>) -> Result<Expression, RuleError> {
        let first = words.peek();
        let error = match self.expression(words) {
            Err(error) if error.message.starts_with("sample fetch <") => error,
            other => return other,
        };
        let text = first.map_or("", |word| word.text.as_str());
        let name = text.split(['(', ',']).next().unwrap_or_default();
        let Some(fetch) = self.names.vocabulary().fetch(name) else { return Err(error) };
        let needs = fetch.wanted();
        let own = &text[..text.find("),").map_or(text.len(), |at| at + 1)];
        let message =
            format!("fetch method '{own}' extracts information from '{needs}', none of which is available here");
        Err(RuleError { message, ..error })
    }

    pub fn rules(&self) -> &'static str {
        RULE_SETS.iter().find(|row| row.0 == self.set).map_or("", |row| row.1)
    }

    /// Whether the rule set is one of TCP.
    pub fn is_tcp(&self) -> bool {
        self.rules().starts_with("tcp-")
    }

    /// Parses a word as the format of a part of a message's head.
    ///
    /// # Errors
    /// The format is invalid.
    pub fn format(&self, word: &Word) -> Result<LogFormat, RuleError> {
        self.format_of(&word.text, Purpose::Head, word)
    }

    /// Parses a word as the format of a plain text.
    ///
    /// # Errors
    /// The format is invalid.
    pub fn text_format(&self, word: &Word) -> Result<LogFormat, RuleError> {
        self.format_of(&word.text, Purpose::Text, word)
    }

    /// Parses a text that belongs to a word as a format.
    ///
    /// # Errors
    /// The format is invalid.
    pub fn format_of(&self, text: &str, purpose: Purpose, word: &Word) -> Result<LogFormat, RuleError> {
        let format = match self.place {
            // Not a rule: a response to errors of requests or responses.
            EvalPlace::Log => LogFormat::for_error(text, purpose, self.names),
            place => LogFormat::for_rule(text, purpose, place, self.names),
        };
        let format = format.map_err(|error| RuleError {
            hint: error.hint(),
            message: error.to_string(),
            span: Some(word.span),
            whole: false,
        })?;
        // HAProxy warns about parts of a head.
        if self.proxy.mode == Mode::Http
            && purpose == Purpose::Head
            && let Some(fetch) = format.expressions().map(Expression::fetch).find(|fetch| fetch.is_layer6())
        {
            self.warn(format!("L6 sample fetch <{}> ignored in HTTP log-format string.", fetch.name));
        }
        Ok(format)
    }

    /// Warns about a field name that is not a token (RFC 9110, section 5.1).
    pub(crate) fn doubt_name(&self, name: &str) {
        if let Some(bad) = to_bytes(name).iter().find(|byte| !is_token(&[**byte])) {
            self.warn(format!("header name '{name}' contains forbidden character '{}'.", char::from(*bad)));
        }
    }

    /// Adds a warning of HAProxy about the rule.
    pub fn warn(&self, message: impl Into<String>) {
        self.warnings.borrow_mut().push(message.into());
    }
}

/// Returns the number at the start of a text; 0 if there is none.
pub(crate) fn leading_number(text: &str) -> u64 {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().unwrap_or(0)
}

/// Returns the integer at the start of a text and the rest; `None` if there is none.
pub(crate) fn leading_integer(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// Returns the text of the expression at the start of the words; converters may be separate words.
pub(crate) fn expression_text(words: &[Word], vocabulary: &Vocabulary) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 && !joins(&text, word, vocabulary) {
            break;
        }
        if index == 0 { text.clone_from(&word.text) } else { join(&mut text, word) }
    }
    text
}

/// Whether a word continues an expression.
fn joins(text: &str, next: &Word, vocabulary: &Vocabulary) -> bool {
    let name = next.text.split(['(', ',']).next().unwrap_or_default();
    text.ends_with(',') || vocabulary.converter(name).is_some()
}

fn join(text: &mut String, next: &Word) {
    if !text.ends_with(',') {
        text.push(',');
    }
    text.push_str(&next.text);
}
