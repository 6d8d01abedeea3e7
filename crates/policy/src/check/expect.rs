//! Expect rules of health checks and their evaluation (configuration manual, "tcp-check expect", "http-check expect").
//! Must never read a byte by itself.

use super::{Answer, Content};
use base::hex;
use expression::Expression;
use expression::log_format::LogFormat;
use expression::pattern::Regex;
use expression::sample::Context;
use live::health::CheckStatus;
use memchr::memmem;
use std::ops::RangeInclusive;
use wire::http::Head;

/// An `expect` step.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// The rule is negated (`!`): the match must fail.
    pub negated: bool,
    /// The pattern and the part of the response that it is matched against.
    pub wanted: ExpectMatch,
    /// `min-recv`: minimum number of received bytes before the match is evaluated. `None` if not specified, or -1.
    pub at_least: Option<usize>,
    /// The comment reported on failure.
    pub comment: Option<Box<str>>,
    /// `ok-status`.
    pub ok: CheckStatus,
    /// `error-status`; `None` for the default of the match.
    pub error: Option<CheckStatus>,
    /// `tout-status`.
    pub timeout: CheckStatus,
    /// `on-success`.
    pub on_success: Option<LogFormat>,
    /// `on-error`.
    pub on_error: Option<LogFormat>,
    /// `status-code`.
    pub code: Option<Expression>,
}

/// The match of an `expect` rule.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpectMatch {
    /// `string` and `binary`: bytes within the received data.
    Bytes {
        bytes: Box<[u8]>,
        /// Written as hexadecimal digits, which messages do not repeat.
        binary: bool,
    },
    /// `rstring` and `rbinary`.
    Pattern {
        pattern: Regex,
        /// The pattern is matched against the hexadecimal digits of the bytes.
        binary: bool,
    },
    /// `string-lf` and `binary-lf`.
    Format(Content),
    /// A response of a known protocol.
    Protocol(Answer),
    /// A gRPC response with the status SERVING.
    Grpc,
    /// `status`.
    Status(Box<[RangeInclusive<u16>]>),
    /// `rstatus`.
    StatusPattern(Regex),
    /// `hdr` and `fhdr`.
    Field {
        /// `fhdr`: values are not split at commas.
        whole: bool,
        /// The match of the field name.
        name: TextMatch,
        /// The match of the value.
        value: Option<TextMatch>,
    },
}

/// A match of a header field's name or value.
#[derive(Debug, Clone, PartialEq)]
pub struct TextMatch {
    pub how: FieldMatch,
    /// The text to compare with; unused by `reg`.
    pub text: Content,
}

/// Match methods of header fields.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldMatch {
    /// `str`.
    Whole,
    /// `beg`.
    Begin,
    /// `end`.
    End,
    /// `sub`.
    Within,
    /// `reg`.
    Pattern(Regex),
}

/// Result of evaluating an `expect` rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The rule passes.
    Fulfilled,
    /// The rule fails.
    Failed,
    /// More bytes are needed.
    Wait,
}

impl Expect {
    /// Creates a rule with the manual's default values.
    pub fn new(wanted: ExpectMatch) -> Self {
        Self {
            negated: false,
            wanted,
            at_least: None,
            comment: None,
            ok: CheckStatus::L7Ok,
            error: None,
            timeout: CheckStatus::L7Timeout,
            on_success: None,
            on_error: None,
            code: None,
        }
    }

    /// Evaluates the rule on received bytes. `complete`: the response is complete, or the buffer is full.
    pub fn look(&self, received: &[u8], complete: bool, context: &Context<'_>) -> Finding {
        let text = match &self.wanted {
            ExpectMatch::Bytes { bytes, .. } => Some(bytes.to_vec()),
            ExpectMatch::Format(content) => Some(content.render(context)),
            _ => None,
        };
        // A text cannot match before as many bytes have been received.
        let least = self.at_least.unwrap_or(0).max(text.as_ref().map_or(0, Vec::len));
        if received.len() < least && !complete {
            return Finding::Wait;
        }
        let found = match (&self.wanted, &text) {
            (_, Some(text)) => memmem::find(received, text).is_some(),
            (ExpectMatch::Pattern { pattern, binary: true }, _) => {
                context.bounded(pattern.is_match(&hex::encode_upper(received).into_bytes()))
            }
            (ExpectMatch::Pattern { pattern, .. }, _) => context.bounded(pattern.is_match(received)),
            _ => false,
        };
        if context.exhausted.get() {
            return Finding::Failed;
        }
        // Without `min-recv`, missing bytes may still arrive.
        match (found, self.negated) {
            (false, _) if !complete && self.at_least.is_none() => Finding::Wait,
            (true, false) | (false, true) => Finding::Fulfilled,
            (true, true) | (false, false) => Finding::Failed,
        }
    }

    /// Evaluates the rule on a response's head; `None` if it depends on the body.
    pub fn judge_head(&self, head: &Head, context: &Context<'_>) -> Option<bool> {
        let holds = match &self.wanted {
            ExpectMatch::Status(ranges) => ranges.iter().any(|range| range.contains(&head.status())),
            ExpectMatch::StatusPattern(pattern) => {
                context.bounded(pattern.is_match(head.status().to_string().as_bytes()))
            }
            ExpectMatch::Field { whole, name, value } => {
                let mut fields = head.fields().filter(|field| name.matches(field.0, true, context));
                match value {
                    None => fields.next().is_some(),
                    Some(wanted) => fields.any(|(_, value)| match whole {
                        true => wanted.matches(value.trim_ascii(), false, context),
                        false => value
                            .split(|byte| *byte == b',')
                            .any(|value| wanted.matches(value.trim_ascii(), false, context)),
                    }),
                }
            }
            ExpectMatch::Bytes { .. }
            | ExpectMatch::Pattern { .. }
            | ExpectMatch::Format(_)
            | ExpectMatch::Protocol(_)
            | ExpectMatch::Grpc => {
                return None;
            }
        };
        Some(holds != self.negated && !context.exhausted.get())
    }

    /// Returns the status of a failure.
    pub fn error_status(&self) -> CheckStatus {
        self.error.unwrap_or(match self.wanted {
            ExpectMatch::Status(_) | ExpectMatch::StatusPattern(_) | ExpectMatch::Field { .. } => CheckStatus::L7Status,
            _ => CheckStatus::L7Response,
        })
    }
}

impl TextMatch {
    fn matches(&self, found: &[u8], is_name: bool, context: &Context<'_>) -> bool {
        if let FieldMatch::Pattern(pattern) = &self.how {
            return context.bounded(pattern.is_match(found));
        }
        let wanted = self.text.render(context);
        let (found, wanted) = match is_name {
            true => (found.to_ascii_lowercase(), wanted.to_ascii_lowercase()),
            false => (found.to_vec(), wanted),
        };
        match self.how {
            FieldMatch::Whole => found == wanted,
            FieldMatch::Begin => found.starts_with(&wanted),
            FieldMatch::End => found.ends_with(&wanted),
            FieldMatch::Within => memmem::find(&found, &wanted).is_some(),
            FieldMatch::Pattern(_) => false,
        }
    }
}

impl Content {
    /// Returns the bytes; empty if the hexadecimal digits are invalid.
    pub fn render(&self, context: &Context<'_>) -> Vec<u8> {
        self.try_render(context).unwrap_or_default()
    }

    /// Returns the bytes; `None` if the hexadecimal digits are invalid.
    pub fn try_render(&self, context: &Context<'_>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Text(format) => format.render_in(context, &mut out),
            Self::Hex(format) => {
                let mut digits = Vec::new();
                format.render_in(context, &mut digits);
                out.extend(hex::decode(&digits)?);
            }
        }
        Some(out)
    }
}
