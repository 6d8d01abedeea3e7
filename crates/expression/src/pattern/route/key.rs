//! Keys of a table of routes: `<host><path>{;<condition>}` in one word. Must never accept a key with a part that no
//! lookup reads.

use super::super::Regex;
use config::text::from_bytes;
use std::fmt;

/// Maximum length of a key in bytes.
const MOST_KEY: usize = 16_384;

/// Maximum number of conditions of a key.
const MOST_CONDITIONS: usize = 64;

/// Maximum length of a regular expression in bytes, as written.
const MOST_REGEX: usize = 4_096;

/// Maximum length of a host name in bytes.
pub(super) const MOST_HOST: usize = 253;

/// Bytes of a key that a message shows before and after the error.
const SHOWN: usize = 60;

/// The beginnings of conditions.
const CONDITIONS: &str = "'method=', 'header:<name>', 'query:<name>' or 'order='";

/// An entry's conditions on a request.
#[derive(Debug, Clone)]
pub struct RouteKey {
    pub host: HostKey,
    pub path: PathKey,
    pub method: Option<Box<[u8]>>,
    /// Conditions on header fields. Names are in lower case.
    pub headers: Vec<ValueCondition>,
    /// Conditions on parameters of the query string.
    pub query: Vec<ValueCondition>,
    /// The order of entries that are equally specific.
    pub order: Box<[u8]>,
}

/// The hosts of an entry, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostKey {
    Whole(Box<[u8]>),
    /// Every name that ends with this suffix, which begins with a dot.
    Below(Box<[u8]>),
    Any,
}

/// The paths of an entry.
#[derive(Debug, Clone)]
pub enum PathKey {
    Exact(Box<[u8]>),
    /// A prefix of whole elements, without a slash at its end.
    Prefix(Box<[u8]>),
    /// A regular expression that matches the whole path.
    Regex(Regex),
}

/// A condition on the value of a header field or of a parameter.
#[derive(Debug, Clone)]
pub struct ValueCondition {
    pub name: Box<[u8]>,
    pub value: ValuePattern,
}

/// The values that a condition accepts.
#[derive(Debug, Clone)]
pub enum ValuePattern {
    Exact(Box<[u8]>),
    /// A regular expression that matches the whole value.
    Regex(Regex),
}

/// An invalid key. Its text has two more lines: the key, and a caret below the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError {
    why: String,
    line: String,
    caret: usize,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    {}\n    {}^", self.why, self.line, " ".repeat(self.caret))
    }
}

/// The offset of an error in a key, and its reason.
struct Fault {
    at: usize,
    why: String,
}

impl Fault {
    fn new(at: usize, why: impl Into<String>) -> Self {
        Self { at, why: why.into() }
    }

    /// Adds the part of the key that contains the error.
    fn in_key(self, key: &[u8]) -> KeyError {
        let at = self.at.min(key.len());
        let (start, end) = (at.saturating_sub(SHOWN), (at + SHOWN).min(key.len()));
        let show = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
        KeyError { why: self.why, line: key[start..end].iter().map(show).collect(), caret: at - start }
    }
}

/// A part of a key, and its offset.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Part<'a> {
    fn from(self, start: usize) -> Self {
        Self { text: &self.text[start..], at: self.at + start }
    }

    fn until(self, end: usize) -> Self {
        Self { text: &self.text[..end], at: self.at }
    }

    fn strip(self, prefix: &str) -> Option<Self> {
        self.text.starts_with(prefix.as_bytes()).then(|| self.from(prefix.len()))
    }

    /// Decodes the percent-encoding.
    fn decoded(self) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::with_capacity(self.text.len());
        let mut rest = self.text;
        while let [byte, behind @ ..] = rest {
            rest = behind;
            if *byte != b'%' {
                out.push(*byte);
                continue;
            }
            let at = self.at + self.text.len() - rest.len() - 1;
            let digits = behind.first_chunk::<2>().and_then(|digits| base::hex::byte(*digits));
            let Some(decoded) = digits else {
                return Err(Fault::new(at, "two hex digits are expected after '%'; '%' itself is written '%25'"));
            };
            out.push(decoded);
            rest = &behind[2..];
        }
        Ok(out)
    }

    /// Compiles a regular expression that matches whole texts.
    fn regex(self) -> Result<Regex, Fault> {
        if self.text.is_empty() {
            return Err(Fault::new(self.at, "a regular expression is expected after '~'"));
        }
        if self.text.len() > MOST_REGEX {
            return Err(Fault::new(self.at, format!("the regular expression is longer than {MOST_REGEX} bytes")));
        }
        let bytes = self.decoded()?;
        let pattern = from_bytes(&bytes);
        // Alone first: the group around it must not complete an incomplete one.
        let alone = Regex::deferred(&pattern, false);
        let whole = alone.and_then(|_| Regex::deferred(&format!("\\A(?:{pattern})\\z"), false));
        whole.map_err(|why| Fault::new(self.at, why))
    }
}

impl RouteKey {
    /// Parses a key.
    ///
    /// # Errors
    /// The reason, and the place in the key.
    pub fn parse(key: &[u8]) -> Result<Self, KeyError> {
        Self::read(key).map_err(|fault| fault.in_key(key))
    }

    fn read(key: &[u8]) -> Result<Self, Fault> {
        if key.len() > MOST_KEY {
            return Err(Fault::new(0, format!("the key of a route is longer than {MOST_KEY} bytes")));
        }
        if let Some(at) = key.iter().position(|byte| !byte.is_ascii_graphic()) {
            return Err(Fault::new(at, format!("this byte is written '%{:02X}' in the key of a route", key[at])));
        }
        let mut at = 0;
        let mut parts = key.split(|byte| *byte == b';').map(|text| {
            let part = Part { text, at };
            at += text.len() + 1;
            part
        });
        let first = parts.next().unwrap_or(Part { text: key, at: 0 });
        let end = first.text.iter().position(|byte| matches!(byte, b'/' | b'~'));
        let end = end.unwrap_or(first.text.len());
        let mut route = Self {
            host: HostKey::parse(first.until(end))?,
            path: PathKey::parse(first.from(end))?,
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
            order: Box::default(),
        };
        let mut has_order = false;
        for (count, part) in parts.enumerate() {
            if count == MOST_CONDITIONS {
                return Err(Fault::new(part.at, format!("a route has at most {MOST_CONDITIONS} conditions")));
            }
            route.add(part, &mut has_order)?;
        }
        Ok(route)
    }

    /// Adds a condition.
    fn add(&mut self, part: Part<'_>, has_order: &mut bool) -> Result<(), Fault> {
        if let Some(method) = part.strip("method=") {
            let text = method.decoded()?;
            if !is_token(&text) {
                return Err(Fault::new(method.at, "a method is expected after 'method='"));
            }
            if self.method.replace(text.into()).is_some() {
                return Err(Fault::new(part.at, "a route has at most one method"));
            }
        } else if let Some(order) = part.strip("order=") {
            self.order = order.decoded()?.into();
            if std::mem::replace(has_order, true) {
                return Err(Fault::new(part.at, "a route has at most one 'order='"));
            }
        } else if let Some(header) = part.strip("header:") {
            let mut condition = ValueCondition::parse(header)?;
            if !is_token(&condition.name) {
                return Err(Fault::new(header.at, "the name of a header field is expected after 'header:'"));
            }
            condition.name.make_ascii_lowercase();
            self.headers.push(condition);
        } else if let Some(parameter) = part.strip("query:") {
            self.query.push(ValueCondition::parse(parameter)?);
        } else {
            return Err(Fault::new(part.at, format!("{CONDITIONS} is expected after ';'")));
        }
        Ok(())
    }
}

impl ValueCondition {
    /// Parses `<name>=<value>` or `<name>~<regex>`.
    fn parse(part: Part<'_>) -> Result<Self, Fault> {
        let Some(end) = part.text.iter().position(|byte| matches!(byte, b'=' | b'~')) else {
            let end = part.at + part.text.len();
            return Err(Fault::new(end, "'=<value>' or '~<regex>' is expected after the name"));
        };
        let name = part.until(end).decoded()?;
        if name.is_empty() {
            return Err(Fault::new(part.at, "a name is expected before '=' or '~'"));
        }
        let value = part.from(end + 1);
        let value = match part.text[end] {
            b'~' => ValuePattern::Regex(value.regex()?),
            _ => ValuePattern::Exact(value.decoded()?.into()),
        };
        Ok(Self { name: name.into(), value })
    }
}

impl HostKey {
    fn parse(part: Part<'_>) -> Result<Self, Fault> {
        let mut text = part.decoded()?;
        text.make_ascii_lowercase();
        if text == b"*" {
            return Ok(Self::Any);
        }
        let text = text.strip_suffix(b".").unwrap_or(&text);
        let name = text.strip_prefix(b"*.").unwrap_or(text);
        if name.is_empty() {
            return Err(Fault::new(part.at, "a host is expected: a name, '*.<name>', or '*' for all"));
        }
        if text.len() > MOST_HOST {
            return Err(Fault::new(part.at, format!("the host is longer than {MOST_HOST} bytes")));
        }
        let is_address = name.len() == text.len() && name.starts_with(b"[") && name.ends_with(b"]");
        if is_address {
            let inner = &name[1..name.len() - 1];
            if !std::str::from_utf8(inner).is_ok_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok()) {
                return Err(Fault::new(part.at, "an IPv6 address is expected between '[' and ']'"));
            }
        } else if let Some(odd) = name.iter().find(|byte| !is_of_name(**byte)) {
            let why = match odd {
                b':' => "the host of a route has no port".to_owned(),
                b'*' => "a wildcard is the whole first label: '*.<name>'".to_owned(),
                odd => format!("'{}' is not allowed in a host", from_bytes(&[*odd])),
            };
            // The first byte that is written so, if it is not encoded.
            let at = part.text.iter().rposition(|byte| byte == odd).unwrap_or(0);
            return Err(Fault::new(part.at + at, why));
        } else if name.split(|byte| *byte == b'.').any(<[u8]>::is_empty) {
            return Err(Fault::new(part.at, "a label of the host is empty"));
        }
        Ok(match name.len() == text.len() {
            true => Self::Whole(text.into()),
            false => Self::Below(text[1..].into()),
        })
    }
}

impl PathKey {
    fn parse(part: Part<'_>) -> Result<Self, Fault> {
        if let Some(regex) = part.strip("~") {
            return regex.regex().map(Self::Regex);
        }
        if part.text.is_empty() {
            return Err(Fault::new(part.at, "a path ('/…') or a regular expression ('~…') is expected after the host"));
        }
        if let Some(at) = part.text.iter().position(|byte| *byte == b'?') {
            let why = "a path has no query string: 'query:<name>' is a condition, and '?' in a regular expression follows '~'";
            return Err(Fault::new(part.at + at, why));
        }
        if let Some(prefix) = part.text.strip_suffix(b"/*") {
            return Ok(Self::Prefix(part.until(prefix.len()).decoded()?.into()));
        }
        if part.text.ends_with(b"*") {
            let at = part.at + part.text.len() - 1;
            return Err(Fault::new(at, "'*' at the end of a path follows '/'; a literal one is written '%2A'"));
        }
        Ok(Self::Exact(part.decoded()?.into()))
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Whether a text is a token of HTTP (RFC 9110, section 5.6.2).
fn is_token(text: &[u8]) -> bool {
    let allows = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(allows)
}
