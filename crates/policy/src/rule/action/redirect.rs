//! `redirect`: the target of a redirection (configuration manual, section 4.2). Must never decide whether it applies.

use crate::rule::Reply;
use crate::rule::parse::{Parsing, RuleError, Words};
use config::document::Word;
use config::text::to_bytes;
use expression::log_format::LogFormat;
use expression::sample::Context;

/// The parameters of a redirect.
#[derive(Debug, Clone, PartialEq)]
pub struct Redirect {
    pub kind: RedirectKind,
    pub to: Text,
    pub code: u16,
    /// `drop-query`.
    pub drop_query: bool,
    /// `append-slash`.
    pub append_slash: bool,
    /// `keep-query`.
    pub keep_query: bool,
    /// `ignore-empty`.
    pub ignore_empty: bool,
    /// `set-cookie` and others: the value of Set-Cookie without attributes, and whether the cookie is cleared.
    pub cookie: Option<(Text, bool)>,
    /// The complete response, if it is the same for every client.
    pub written: Option<Reply<'static>>,
}

/// The meaning of a redirect's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// The complete Location.
    Location,
    /// A prefix of the request's path.
    Prefix,
    Scheme,
}

/// A constant or evaluated text.
#[derive(Debug, Clone, PartialEq)]
pub enum Text {
    Literal(Box<[u8]>),
    /// A log-format string.
    Format(LogFormat),
}

impl Text {
    fn literal(word: &Word) -> Self {
        Self::Literal(to_bytes(&word.text).into_owned().into())
    }

    /// Returns the text if it is constant.
    pub fn constant(&self) -> Option<&[u8]> {
        match self {
            Self::Literal(bytes) => Some(bytes),
            Self::Format(format) => format.constant(),
        }
    }

    /// Appends the text.
    pub fn render_in(&self, context: &Context<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Literal(bytes) => out.extend_from_slice(bytes),
            Self::Format(format) => format.render_in(context, out),
        }
    }
}

impl Redirect {
    /// Whether the rule counts as not matching: its location is empty (`ignore-empty`).
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

/// Parses the arguments. In a `redirect` line, texts are not format strings.
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
