//! Parses the text of a format into items (configuration manual, section 8.2.6). Accepts what HAProxy accepts, and
//! rejects the rest with HAProxy's messages. Must never guess the meaning of an invalid format.

use super::alias::{aliases, find};
use super::escape::{FLAGS, Flags};
use super::printer::Cast;
use super::purpose::Purpose;
use super::row::Alias;
use crate::sample::EvalPlace;
use crate::{Expression, Names};
use base::text::beginning;
use config::suggest::nearest;
use std::fmt;
use std::ops::Range;

/// A part of a format.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Literal text.
    Text(Box<[u8]>),
    /// A separator: consecutive ones, also across items that print nothing, become one space.
    Space,
    /// The value of an alias.
    Alias(&'static Alias, Style),
    /// The sample of an expression.
    Expression(Box<Expression>, Style),
}

/// The formatting of an item's value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Style {
    pub flags: Flags,
    /// `%(name)`: its name in encodings, which omit unnamed items.
    pub name: Option<Box<str>>,
    /// `%(name:type)`.
    pub cast: Cast,
}

/// Why a format is rejected, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError {
    /// The error.
    pub kind: FormatErrorKind,
    /// Offset of the error in the text, in bytes.
    pub at: usize,
    /// The whole text.
    pub line: String,
}

/// An error in a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormatErrorKind {
    /// The text ends within an item; the part that was read.
    Truncated(String),
    /// No alias has that name.
    UnknownAlias(String),
    /// Flags or a name without an item after them; the flags.
    NoAlias(String),
    /// The character after "%" cannot start an item.
    NotAnItem(char),
    /// A character that is invalid in a custom name; `None`: the text ends within the name.
    BadName(Option<char>),
    /// An output type that does not exist.
    BadType(String),
    /// `%[…]` where expressions are not allowed.
    Expression,
    /// `%[…]` without its end; the part that was read, and the character found instead, unless the text ends.
    Unclosed(String, Option<char>),
    /// `%[…]` with an invalid expression; the text from there on, the message, and a hint.
    BadExpression(String, String, Option<String>),
    /// `%[…]` with a fetch that is not available there.
    Misplaced(String),
}

impl FormatError {
    /// The range of the invalid item in bytes, at least one unless the text is empty.
    pub fn item(&self) -> Range<usize> {
        let line = &self.line;
        let near = beginning(line, self.at.saturating_add(1)).len();
        let start = line[..near].rfind('%').unwrap_or(near.saturating_sub(1));
        let start = beginning(line, start).len();
        let rest = &line[start..];
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "%{}()+-:,".contains(letter);
        let plain = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let length = match rest[plain..].starts_with('[') {
            true => rest.find(']').map_or(rest.len(), |end| end + 1),
            false => plain.max(rest.chars().next().map_or(0, char::len_utf8)),
        };
        start..start + length
    }

    /// Returns a suggestion for correcting it, if there is one.
    pub fn hint(&self) -> Option<String> {
        match &self.kind {
            FormatErrorKind::UnknownAlias(name) => {
                nearest(name, aliases().map(|alias| alias.name)).map(|known| format!("did you mean '%{known}'?"))
            }
            FormatErrorKind::NotAnItem(_) => Some("write '%%' for a percent sign".to_owned()),
            FormatErrorKind::Expression => Some("use an alias such as '%ci' instead".to_owned()),
            FormatErrorKind::BadExpression(_, _, hint) => hint.clone(),
            _ => None,
        }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = format_args!("at position {} line : '{}'", self.at, self.line);
        match &self.kind {
            FormatErrorKind::Truncated(item) => write!(f, "truncated line after '{item}'"),
            FormatErrorKind::UnknownAlias(name) => write!(
                f,
                "no such format alias '{name}'. If you wanted to emit the '%' character verbatim, you need to use '%%'"
            ),
            FormatErrorKind::NoAlias(flags) => write!(f, "parse argument modifier without alias name near '{flags}'"),
            FormatErrorKind::NotAnItem(found) => write!(
                f,
                "unexpected alias name near '{found}' {at}. Maybe you want to write a single '%', use the \
                 syntax '%%'"
            ),
            FormatErrorKind::BadName(Some(found)) => {
                write!(f, "invalid character in custom name near '{found}' {at}")
            }
            FormatErrorKind::BadName(None) => f.write_str("invalid character in custom name near '"),
            FormatErrorKind::BadType(name) => {
                write!(f, "unexpected output type '{name}' {at}. Supported types are: str, sint, bool, raw")
            }
            FormatErrorKind::Expression => {
                write!(f, "sample expressions are not supported yet by Weir, {at}")
            }
            FormatErrorKind::Unclosed(text, None) => write!(f, "missing ']' after '{text}'"),
            FormatErrorKind::Unclosed(text, Some(found)) => {
                write!(f, "expected ']' after '{text}', but found '{found}'")
            }
            FormatErrorKind::BadExpression(text, why, _) => {
                write!(f, "failed to parse sample expression <{text}> : {why}")
            }
            FormatErrorKind::Misplaced(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for FormatError {}

/// A parsed format.
#[derive(Default)]
pub struct Read {
    pub items: Vec<Item>,
    /// The flags set by `%o`, as of the end of the text.
    pub flags: Flags,
}

/// The place of a format that may contain expressions.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// Resolves names.
    pub names: &'a dyn Names,
    /// The place where the format is rendered.
    pub place: EvalPlace,
    /// A second place where it may be rendered: fetches available at either place are allowed.
    pub other: Option<EvalPlace>,
}

/// Parses a whole text for that purpose; without a site expressions are rejected.
pub fn read(text: &str, site: Option<Site<'_>>, purpose: Purpose) -> Result<Read, FormatError> {
    let global = if purpose == Purpose::Log { Flags::MANDATORY } else { Flags::NONE };
    let mut reader = Reader { text, site, purpose, at: 0, items: Vec::new(), literal: Vec::new(), global };
    while let Some(next) = reader.peek() {
        match next {
            '%' => reader.item()?,
            ' ' if purpose.merges_spaces() => {
                reader.end_literal();
                reader.at += 1;
                if !matches!(reader.items.last(), Some(Item::Space)) {
                    reader.items.push(Item::Space);
                }
            }
            other => reader.push(other),
        }
    }
    reader.end_literal();
    Ok(Read { items: reader.items, flags: reader.global })
}

struct Reader<'a> {
    text: &'a str,
    site: Option<Site<'a>>,
    purpose: Purpose,
    /// The current offset in bytes.
    at: usize,
    items: Vec<Item>,
    /// Literal text that is not an item yet.
    literal: Vec<u8>,
    /// Flags set by `%{…}o` for all following items.
    global: Flags,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn push(&mut self, letter: char) {
        self.literal.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += letter.len_utf8();
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            let text = std::mem::take(&mut self.literal).into_boxed_slice();
            self.items.push(Item::Text(text));
        }
    }

    fn error<T>(&self, kind: FormatErrorKind) -> Result<T, FormatError> {
        Err(FormatError { kind, at: self.at, line: self.text.to_owned() })
    }

    /// Takes characters while `belongs` returns true.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|letter| !belongs(letter)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Parses an item from its "%" on.
    fn item(&mut self) -> Result<(), FormatError> {
        self.at += 1;
        if self.peek() == Some('%') {
            self.push('%');
            return Ok(());
        }
        let (custom, cast) = if self.peek() == Some('(') { self.custom_name()? } else { Default::default() };
        match self.peek() {
            None => return self.error(FormatErrorKind::Truncated("%".to_owned())),
            Some(digit @ ('0'..='9' | ' ')) => return self.error(FormatErrorKind::NotAnItem(digit)),
            Some('{' | '[' | 'a'..='z' | 'A'..='Z') => {}
            // A percent sign before any other character is dropped silently.
            Some(_) => return Ok(()),
        }
        let (mut flags, mut arguments) = (self.global, "");
        if self.peek() == Some('{') {
            self.at += 1;
            arguments = self.take_while(|letter| letter != '}');
            if self.peek().is_none() {
                return self.error(FormatErrorKind::Truncated(arguments.to_owned()));
            }
            flags = self.flags(arguments);
            self.at += 1;
        }
        if self.peek() == Some('[') {
            return self.expression(Style { flags: self.own(flags), name: custom, cast });
        }
        let name = self.take_while(|letter| letter.is_ascii_alphanumeric());
        if name.is_empty() {
            return self.error(FormatErrorKind::NoAlias(format!("%{{{arguments}}}")));
        }
        self.end_literal();
        if name == "o" {
            self.global = flags;
            return Ok(());
        }
        match find(name) {
            Some(alias) => self.items.push(Item::Alias(alias, Style { flags: self.own(flags), name: custom, cast })),
            None => {
                let kind = FormatErrorKind::UnknownAlias(name.to_owned());
                return Err(FormatError { kind, at: self.at - name.len(), line: self.text.to_owned() });
            }
        }
        Ok(())
    }

    /// Parses `[…]`: an expression up to the bracket that closes the item.
    fn expression(&mut self, style: Style) -> Result<(), FormatError> {
        let Some(Site { names, place, other }) = self.site else { return self.error(FormatErrorKind::Expression) };
        let text = &self.rest()[1..];
        let (expression, length) = match Expression::parse(text, place, names) {
            Ok(found) => found,
            Err(error) => {
                return self.error(FormatErrorKind::BadExpression(text.to_owned(), error.message, error.hint));
            }
        };
        let end = length + text[length..].len() - text[length..].trim_start_matches(' ').len();
        if !text[end..].starts_with(']') {
            let found = text[length..].chars().next();
            return self.error(FormatErrorKind::Unclosed(text[..length].to_owned(), found));
        }
        let fits_other = other.is_some_and(|other| expression.fetch().refusal(other).is_none());
        if let Some(why) = expression.fetch().refusal(place).filter(|_| !fits_other) {
            return self.error(FormatErrorKind::Misplaced(why));
        }
        self.at += end + 2;
        self.end_literal();
        self.items.push(Item::Expression(Box::new(expression), style));
        Ok(())
    }

    /// Parses `(name:type)`: used by encodings only, but always validated. An empty name counts as none.
    fn custom_name(&mut self) -> Result<(Option<Box<str>>, Cast), FormatError> {
        self.at += 1;
        let name = self.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
        let mut cast = Cast::Own;
        if self.peek() == Some(':') {
            self.at += 1;
            let kind = self.take_while(|letter| letter != ')');
            cast = match kind {
                "str" => Cast::Str,
                "sint" => Cast::Int,
                "bool" => Cast::Bool,
                "raw" => Cast::Raw,
                _ => {
                    self.at -= kind.len();
                    return self.error(FormatErrorKind::BadType(kind.to_owned()));
                }
            };
        }
        match self.peek() {
            Some(')') => self.at += 1,
            other => return self.error(FormatErrorKind::BadName(other)),
        }
        Ok(((!name.is_empty()).then(|| name.into()), cast))
    }

    /// The flags of an item: `bin` applies to whole formats only.
    fn own(&self, flags: Flags) -> Flags {
        if self.global.contains(Flags::BINARY) { flags } else { flags.without(Flags::BINARY) }
    }

    /// Applies `+Q,-E` to the global flags. Unknown flags are ignored, as in HAProxy.
    fn flags(&self, arguments: &str) -> Flags {
        let mut flags = self.global;
        for argument in arguments.split(',').map(str::trim) {
            let (name, add) = match argument.as_bytes().first() {
                Some(b'+') => (&argument[1..], true),
                Some(b'-') => (&argument[1..], false),
                _ => continue,
            };
            let Some(row) = FLAGS.iter().find(|row| row.name == name) else { continue };
            let flag = row.flag;
            // An identifier is always text.
            if self.purpose == Purpose::Identifier && (flag == Flags::JSON || flag == Flags::CBOR) {
                continue;
            }
            flags = if add { flags | flag } else { flags.without(flag) };
        }
        flags
    }
}
