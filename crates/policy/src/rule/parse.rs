//! What the parsers of actions read from, and what they may ask for. Must never know an action.

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

/// What is wrong with a rule, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// HAProxy's sentence, without the full stop.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Which words.
    pub span: Option<Span>,
    /// The message says where the rule stands: nothing is put around it.
    pub whole: bool,
}

impl RuleError {
    /// At no word in particular.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, span: None, whole: false }
    }

    /// Told as it is.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { whole: true, ..Self::new(message) }
    }

    /// About a word.
    pub fn at(word: Option<&Word>, message: impl Into<String>) -> Self {
        Self { span: word.map(|word| word.span), ..Self::new(message) }
    }
}

/// The words of a rule: those behind the action are taken one by one.
pub struct Words<'a> {
    words: &'a [Word],
    at: usize,
    /// No condition follows: its keywords are words like others.
    unconditional: bool,
}

impl<'a> Words<'a> {
    /// Of a rule; the first word is the action.
    pub fn new(words: &'a [Word]) -> Self {
        Self { words, at: 1, unconditional: false }
    }

    /// Of a line whose first word is the keyword, and whose end no condition makes.
    pub fn all(words: &'a [Word]) -> Self {
        Self { unconditional: true, ..Self::new(words) }
    }

    /// The action as written, parentheses included.
    pub fn action(&self) -> &'a str {
        self.words.first().map_or("", |word| &word.text)
    }

    /// Where the action stands.
    pub fn span(&self) -> Span {
        self.words.first().map_or_else(Span::default, |word| word.span)
    }

    /// What stands in parentheses behind the action's name: `a` of `set-var(a)`.
    pub fn parentheses(&self) -> Option<&'a str> {
        let (_, rest) = self.action().split_once('(')?;
        rest.strip_suffix(')')
    }

    /// The next word without taking it. The condition is no argument.
    pub fn peek(&self) -> Option<&'a Word> {
        let is_argument = |word: &&Word| word.quoted || !matches!(word.text.as_str(), "if" | "unless");
        self.words.get(self.at).filter(|word| self.unconditional || is_argument(word))
    }

    /// The next word's text without taking it; empty at the end.
    pub fn peek_text(&self) -> &'a str {
        self.peek().map_or("", |word| &word.text)
    }

    /// Takes the next word.
    pub fn take(&mut self) -> Option<&'a Word> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Takes the next word, or tells what is missing.
    ///
    /// # Errors
    /// `missing`, when there is none.
    pub fn expect(&mut self, missing: &str) -> Result<&'a Word, RuleError> {
        self.take().ok_or_else(|| RuleError::new(missing))
    }

    /// What is left: the condition, if the action took all of its arguments.
    pub fn rest(&self) -> &'a [Word] {
        self.words.get(self.at..).unwrap_or_default()
    }
}

/// What names in rules stand for, beside those in expressions.
pub trait RuleNames: Names {
    /// The rows and services that are registered beside the built-in tables.
    fn registry(&self) -> &Registry;

    /// A `log-profile`'s index.
    fn log_profile(&self, name: &str) -> Option<usize>;

    /// A `cache` section's index.
    fn cache(&self, name: &str) -> Option<usize>;

    /// The index of a backend that `mirror` may send copies to.
    ///
    /// # Errors
    /// Why it may not.
    fn mirror(&self, name: &str) -> Result<usize, String>;

    /// The server that `attach-srv` may give connections to, as indices of its backend and of it there; `is_named`: with a name.
    ///
    /// # Errors
    /// Why it may not.
    fn reversed_server(&self, name: &str, is_named: bool) -> Result<(usize, usize), String>;

    /// A `resolvers` section's index.
    fn resolvers(&self, name: &str) -> Option<usize>;

    /// A stick table.
    fn table_plan(&self, index: usize) -> Option<StickTable>;

    /// How many entries a session or a stream may track (`tune.stick-counters`).
    fn stick_counters(&self) -> u8;

    /// What a group of an engine has sent; `None`: the proxy has no such engine, `Some(None)`: it has, without that group.
    fn spoe_group(&self, engine: &str, group: &str) -> Option<Option<Arc<SpoeCall>>>;

    /// The pages of an `http-errors` section, by status.
    fn error_pages(&self, section: &str) -> Option<Vec<(u16, Vec<u8>)>>;
}

/// What parsers of actions may ask for.
pub struct Parsing<'a> {
    /// What names stand for.
    pub names: &'a dyn RuleNames,
    /// Where the rule stands.
    pub place: EvalPlace,
    /// The set that it is one of.
    pub set: RuleSets,
    /// The proxy that it stands in.
    pub proxy: &'a ProxySpec,
    /// What is said about it beside errors: HAProxy's sentences.
    pub warnings: RefCell<Vec<String>>,
}

impl Parsing<'_> {
    /// Whether the rule looks at requests.
    pub fn is_request(&self) -> bool {
        (self.place as u8) < EvalPlace::BackResponseContent as u8
    }

    /// Reads the expression that begins at the next word. Converters may stand in words of their own.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn expression(&self, words: &mut Words<'_>) -> Result<Expression, RuleError> {
        let first = words.peek();
        let expression = self.sample(words, self.place)?;
        match expression.fetch().refusal(self.place) {
            Some(why) => Err(RuleError::at(first, why)),
            None => Ok(expression),
        }
    }

    /// Reads the expression that begins at the next word for that place, whether or not it may be there.
    ///
    /// # Errors
    /// What is wrong with it.
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

    /// Reads the expression that begins at the next word, as rules on stick tables do: HAProxy refuses what is not there
    /// in another sentence.
    ///
    /// # Errors
    /// What is wrong with it.
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

    /// The name of the rule set.
    pub fn rules(&self) -> &'static str {
        RULE_SETS.iter().find(|row| row.0 == self.set).map_or("", |row| row.1)
    }

    /// Whether the rule is one of TCP.
    pub fn is_tcp(&self) -> bool {
        self.rules().starts_with("tcp-")
    }

    /// Reads a word as the format of a part of a message's head.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn format(&self, word: &Word) -> Result<LogFormat, RuleError> {
        self.format_of(&word.text, Purpose::Head, word)
    }

    /// Reads a word as the format of a text that is taken as it is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn text_format(&self, word: &Word) -> Result<LogFormat, RuleError> {
        self.format_of(&word.text, Purpose::Text, word)
    }

    /// Reads a text that a word names as a format.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn format_of(&self, text: &str, purpose: Purpose, word: &Word) -> Result<LogFormat, RuleError> {
        let format = match self.place {
            // No rule: an answer to errors on the way of either message.
            EvalPlace::Log => LogFormat::for_error(text, purpose, self.names),
            place => LogFormat::for_rule(text, purpose, place, self.names),
        };
        let format = format.map_err(|error| RuleError {
            hint: error.hint(),
            message: error.to_string(),
            span: Some(word.span),
            whole: false,
        })?;
        // HAProxy says so about what becomes a part of a head.
        if self.proxy.mode == Mode::Http
            && purpose == Purpose::Head
            && let Some(fetch) = format.expressions().map(Expression::fetch).find(|fetch| fetch.is_layer6())
        {
            self.warn(format!("L6 sample fetch <{}> ignored in HTTP log-format string.", fetch.name));
        }
        Ok(format)
    }

    /// Warns of the name of a header field that is no token (RFC 9110, section 5.1).
    pub(crate) fn doubt_name(&self, name: &str) {
        if let Some(bad) = to_bytes(name).iter().find(|byte| !is_token(&[**byte])) {
            self.warn(format!("header name '{name}' contains forbidden character '{}'.", char::from(*bad)));
        }
    }

    /// HAProxy says this about the rule, and takes it.
    pub fn warn(&self, message: impl Into<String>) {
        self.warnings.borrow_mut().push(message.into());
    }
}

/// The number that a text begins with; 0 without one.
pub(crate) fn leading_number(text: &str) -> u64 {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().unwrap_or(0)
}

/// The whole number that a text begins with, and what stands behind it; `None`: there is none.
pub(crate) fn leading_integer(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// The expression that words begin with: converters may stand in words of their own.
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

/// Whether a word goes on with an expression.
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
