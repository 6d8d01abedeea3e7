//! `redirect`: what a client is sent to (configuration manual, section 4.2). Must never decide that it is.

use crate::rule::Reply;
use crate::rule::parse::{Parsing, RuleError, Words};
use config::document::Word;
use config::text::to_bytes;
use expression::log_format::LogFormat;
use expression::sample::Context;

/// What a client is sent to.
#[derive(Debug, Clone, PartialEq)]
pub struct Redirect {
    /// What the text is.
    pub kind: RedirectKind,
    /// The text.
    pub to: Text,
    /// The status.
    pub code: u16,
    /// `drop-query`.
    pub drop_query: bool,
    /// `append-slash`.
    pub append_slash: bool,
    /// `keep-query`.
    pub keep_query: bool,
    /// `ignore-empty`.
    pub ignore_empty: bool,
    /// `set-cookie` and its kin: the value of the field, without its attributes, and whether the cookie is cleared.
    pub cookie: Option<(Text, bool)>,
    /// What it says, where that is the same for every client.
    pub written: Option<Reply<'static>>,
}

/// What the text of a redirect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// The whole location.
    Location,
    /// What stands before the request's own path.
    Prefix,
    /// The scheme.
    Scheme,
}

/// A text as it is, or one that is put together.
#[derive(Debug, Clone, PartialEq)]
pub enum Text {
    /// As written.
    Literal(Box<[u8]>),
    /// A log format.
    Format(LogFormat),
}

impl Text {
    fn literal(word: &Word) -> Self {
        Self::Literal(to_bytes(&word.text).into_owned().into())
    }

    /// The text, when it is always the same.
    pub fn constant(&self) -> Option<&[u8]> {
        match self {
            Self::Literal(bytes) => Some(bytes),
            Self::Format(format) => format.constant(),
        }
    }

    /// Appends it.
    pub fn render_in(&self, context: &Context<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Literal(bytes) => out.extend_from_slice(bytes),
            Self::Format(format) => format.render_in(context, out),
        }
    }
}

impl Redirect {
    /// Whether the rule counts as not taken: there is nowhere to go to (`ignore-empty`).
    pub fn is_void(&self, context: &Context<'_>) -> bool {
        if !self.ignore_empty || self.kind != RedirectKind::Location {
            return false;
        }
        if let Some(to) = self.to.constant() {
            return to.is_empty();
        }
        let mut to = Vec::new();
        self.to.render_in(context, &mut to);
        to.is_empty()
    }
}

const USAGE: &str = "expects 'code', 'prefix', 'location', 'scheme', 'set-cookie', 'set-cookie-fmt', 'clear-cookie', \
                     'drop-query', 'keep-query', 'ignore-empty' or 'append-slash'";

/// Reads the arguments. In the keyword `redirect` texts are taken as they are.
pub(super) fn read(words: &mut Words<'_>, parsing: &Parsing<'_>, formats: bool) -> Result<Redirect, RuleError> {
    let text = |word: &Word| if formats { parsing.format(word).map(Text::Format) } else { Ok(Text::literal(word)) };
    let mut found: Option<(RedirectKind, Text)> = None;
    let mut redirect = Redirect {
        kind: RedirectKind::Location,
        to: Text::Literal(Box::default()),
        code: 302,
        drop_query: false,
        append_slash: false,
        keep_query: false,
        ignore_empty: false,
        cookie: None,
        written: None,
    };
    while let Some(word) = words.take() {
        let name = word.text.as_str();
        let mut value = || words.expect(&format!("missing argument for '{name}'"));
        match name {
            "location" => found = Some((RedirectKind::Location, text(value()?)?)),
            "prefix" => found = Some((RedirectKind::Prefix, text(value()?)?)),
            "scheme" => found = Some((RedirectKind::Scheme, text(value()?)?)),
            "set-cookie" => redirect.cookie = Some((Text::literal(value()?), false)),
            "set-cookie-fmt" => redirect.cookie = Some((Text::Format(parsing.format(value()?)?), false)),
            "clear-cookie" => redirect.cookie = Some((Text::literal(value()?), true)),
            "code" => redirect.code = code(value()?)?,
            "drop-query" => redirect.drop_query = true,
            "append-slash" => redirect.append_slash = true,
            "keep-query" => redirect.keep_query = true,
            "ignore-empty" => redirect.ignore_empty = true,
            other => return Err(RuleError::at(Some(word), format!("{USAGE} (was '{other}')"))),
        }
    }
    let Some((kind, to)) = found else {
        return Err(RuleError::new("redirection type expected ('prefix', 'location', or 'scheme')"));
    };
    if kind != RedirectKind::Location && !parsing.is_request() {
        return Err(RuleError::new("response only supports redirect type 'location'"));
    }
    redirect = Redirect { kind, to, ..redirect };
    redirect.written = redirect.written_once();
    Ok(redirect)
}

fn code(word: &Word) -> Result<u16, RuleError> {
    match word.text.as_str() {
        "301" => Ok(301),
        "302" => Ok(302),
        "303" => Ok(303),
        "307" => Ok(307),
        "308" => Ok(308),
        other => {
            let message = format!("'code': unsupported HTTP code '{other}' (must be one of 301, 302, 303, 307 or 308)");
            Err(RuleError::at(Some(word), message))
        }
    }
}
