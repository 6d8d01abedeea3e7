//! Actions that delay a message: `pause`, `wait-for-body`, `decompress-body`, `wait-for-handshake`; and `early-hint`,
//! which sends a response before the final one. Must never wait itself.

use super::{Action, AuthRequest, NameLookup, Row, row};
use crate::program::SpoeCall;
use crate::rule::parse::{Parsing, RuleError, Words};
use config::text::to_bytes;
use config::units;
use expression::Expression;
use expression::log_format::LogFormat;
use expression::sample::{Context, Type, cast};
use std::sync::Arc;
use std::time::Duration;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[
    row("pause", pause),
    row("wait-for-body", wait_for_body),
    row("decompress-body", decompress_body),
    row("wait-for-handshake", |_, _| Ok(Action::Wait(Wait::Handshake))),
    row("early-hint", early_hint),
];

/// The event that a message waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// A period of time.
    Pause(Period),
    /// The body.
    Body(BodyWait),
    /// The body, whose content codings are then removed.
    Decompressed(Decompression),
    /// The end of the client's TLS handshake, for requests in early data.
    Handshake,
    /// The resolution of a name.
    Lookup(Box<NameLookup>),
    /// The transmission of `103 Early Hints` with that field.
    Hint(Box<[u8]>, LogFormat),
    /// An action of a script.
    Script(ScriptCall),
    /// The processing of messages by an agent.
    Agent(Arc<SpoeCall>),
    /// The answer of a server that decides whether the request is allowed.
    Authorization(Box<AuthRequest>),
}

/// A call of an action that a script registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCall {
    /// Registration number of the action.
    pub number: usize,
    /// The arguments as configured.
    pub arguments: Arc<[Box<str>]>,
}

/// The parameters of `wait-for-body`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyWait {
    /// `time`: timeout.
    pub limit: Duration,
    /// `at-least`: number of bytes that are sufficient; 0 for the whole body.
    pub least: u64,
    /// `use-large-buffer`: use a large buffer if the body exceeds a normal one.
    pub large: bool,
}

/// Maximum length of a decompressed body in bytes.
const LARGEST_RESULT: u64 = 1 << 20;

/// The parameters of `decompress-body`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decompression {
    /// `time`: timeout; `None` for `timeout http-request`.
    pub limit: Option<Duration>,
    /// `max-size`: maximum length of the result in bytes; `None` for the size of a buffer.
    pub most: Option<u32>,
    /// `max-ratio`: maximum length of the result relative to the received body.
    pub ratio: Option<u32>,
    /// `use-large-buffer`: use a large buffer if the received body exceeds a normal one.
    pub large: bool,
}

impl Decompression {
    /// Returns the maximum length of the result for a body of `length` bytes, with buffers of `bufsize` bytes.
    pub fn bound(&self, length: usize, bufsize: usize) -> usize {
        let most = self.most.map_or(bufsize, |most| most as usize);
        self.ratio.map_or(most, |ratio| most.min(length.saturating_mul(ratio as usize)))
    }
}

/// A constant or evaluated period.
#[derive(Debug, Clone, PartialEq)]
pub enum Period {
    Fixed(Duration),
    /// An expression in milliseconds.
    Computed(Expression),
}

impl Period {
    /// Returns the period; `None` if the expression has no positive value.
    pub fn evaluate(&self, context: &Context<'_>) -> Option<Duration> {
        match self {
            Self::Fixed(period) => Some(*period),
            Self::Computed(expression) => {
                let value = expression.evaluate(context)?;
                let value = cast(value.kind(), Type::Int).and_then(|cast| cast(context, value))?;
                let millis = value.integer().and_then(|millis| u64::try_from(millis).ok())?;
                (millis > 0).then(|| Duration::from_millis(millis.min(i32::MAX as u64)))
            }
        }
    }

    /// Parses a time or an expression.
    pub(super) fn read(words: &mut Words<'_>, parsing: &Parsing<'_>, rule: &str) -> Result<Self, RuleError> {
        let Some(word) = words.peek() else { return Err(RuleError::new("unexpected character '")) };
        // A word that begins with a digit is a time.
        match units::milliseconds(&word.text) {
            Ok(time) => {
                words.take();
                if time.value == 0 {
                    let message = format!("null value is not valid for a '{rule}' rule");
                    return Err(RuleError::at(Some(word), message));
                }
                Ok(Self::Fixed(Duration::from_millis(time.value)))
            }
            Err(_) => {
                let name = word.text.split(['(', ',']).next().unwrap_or_default();
                if parsing.names.vocabulary().fetch(name).is_none() {
                    let digits = word.text.trim_start_matches(|found: char| found.is_ascii_digit());
                    let first = digits.chars().next().unwrap_or_default();
                    return Err(RuleError::at(Some(word), format!("unexpected character '{first}' in rule '{rule}'")));
                }
                Ok(Self::Computed(parsing.expression(words)?))
            }
        }
    }
}

fn pause(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    Ok(Action::Wait(Wait::Pause(Period::read(words, parsing, "pause")?)))
}

fn wait_for_body(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects time <time> [ at-least <bytes> ]";
    let (mut limit, mut least, mut large) = (None, 0, false);
    while let Some(word) = words.peek() {
        let name = word.text.as_str();
        if limit.is_some() && !matches!(name, "time" | "at-least" | "use-large-buffer") {
            break;
        }
        words.take();
        let mut value = || words.expect(&format!("missing argument for '{name}'"));
        match name {
            "time" => {
                let value = value()?;
                let time = units::milliseconds(&value.text).map_err(|_| unexpected(value))?;
                limit = Some(Duration::from_millis(time.value));
            }
            "at-least" => {
                let value = value()?;
                least = units::size(&value.text, u64::from(u32::MAX)).map_err(|_| unexpected(value))?;
            }
            "use-large-buffer" => large = true,
            _ => return Err(RuleError::at(Some(word), USAGE)),
        }
    }
    let limit = limit.ok_or_else(|| RuleError::new(USAGE))?;
    Ok(Action::Wait(Wait::Body(BodyWait { limit, least, large })))
}

fn decompress_body(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    let mut plan = Decompression { limit: None, most: None, ratio: None, large: false };
    while let Some(word) = words.peek() {
        let name = word.text.as_str();
        if !matches!(name, "time" | "max-size" | "max-ratio" | "use-large-buffer") {
            break;
        }
        words.take();
        let mut value = || words.expect(&format!("missing argument for '{name}'"));
        match name {
            "time" => {
                let value = value()?;
                let time = units::milliseconds(&value.text).map_err(|_| unexpected(value))?;
                plan.limit = Some(Duration::from_millis(time.value));
            }
            "max-size" => {
                let value = value()?;
                let size = units::size(&value.text, LARGEST_RESULT).ok().filter(|size| *size > 0);
                let size = size.and_then(|size| u32::try_from(size).ok());
                let told = format!("expects a size between 1 and {LARGEST_RESULT} after 'max-size'");
                plan.most = Some(size.ok_or_else(|| RuleError::at(Some(value), told))?);
            }
            "max-ratio" => {
                let value = value()?;
                let ratio = value.text.parse().ok().filter(|ratio| *ratio > 0);
                let told = "expects a number from 1 on after 'max-ratio'";
                plan.ratio = Some(ratio.ok_or_else(|| RuleError::at(Some(value), told))?);
            }
            _ => plan.large = true,
        }
    }
    Ok(Action::Wait(Wait::Decompressed(plan)))
}

fn unexpected(word: &config::document::Word) -> RuleError {
    let rest = word.text.trim_start_matches(|found: char| found.is_ascii_digit());
    let first = rest.chars().next().unwrap_or_default();
    RuleError::at(Some(word), format!("unexpected character '{first}'"))
}

fn early_hint(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects exactly 2 arguments";
    let name = words.expect(USAGE)?;
    let format = words.expect(USAGE)?;
    parsing.doubt_name(&name.text);
    Ok(Action::Wait(Wait::Hint(to_bytes(&name.text).to_ascii_lowercase().into(), parsing.format(format)?)))
}
