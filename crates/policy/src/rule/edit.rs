//! Changes of a message's head: header fields and the start line. Must never change another head, nor decide whether a
//! change applies.

mod change;

pub use change::Change;

use super::binary::{Reader, Truncated};
use super::normalize::{Malformed, Normalizer};
use expression::Expression;
use expression::fields::comma;
use expression::log_format::LogFormat;
use expression::pattern::{Method, Places, Regex, Steps, expand};
use expression::sample::Exhausted;
use wire::http::{Head, PART, target};

/// A change of a head. Its text is rendered before, into `text`, while the head can still be read.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// `add-header`: appends a field.
    AddHeader(Box<[u8]>, LogFormat),
    /// `set-header`: replaces all fields with that name.
    SetHeader(Box<[u8]>, LogFormat),
    /// `del-header`.
    DeleteHeader(NameMatch),
    /// `replace-header`: replaces in the complete value of every field with that name.
    ReplaceHeader(Box<[u8]>, Replacement),
    /// `replace-value`: replaces in each comma-separated value.
    ReplaceValue(Box<[u8]>, Replacement),
    /// `set-method`.
    SetMethod(LogFormat),
    /// `set-uri`.
    SetUri(LogFormat),
    /// `set-path`: keeps the query.
    SetPath(LogFormat),
    /// `set-pathq`.
    SetPathAndQuery(LogFormat),
    /// `set-query`: keeps the path.
    SetQuery(LogFormat),
    /// `replace-path`.
    ReplacePath(Replacement),
    /// `replace-pathq`.
    ReplacePathAndQuery(Replacement),
    /// `replace-uri`.
    ReplaceUri(Replacement),
    /// `normalize-uri`.
    NormalizeUri(Normalizer),
    /// `add-headers-bin`: the fields whose names have that prefix.
    AddFields(Expression, Box<[u8]>),
    /// `set-headers-bin`: each one replaces all fields with its name.
    SetFields(Expression, Box<[u8]>),
    /// `del-headers-bin`: the fields whose names match.
    DeleteFields(Expression, Method),
    /// `set-status`, with the given reason phrase or the default one.
    SetStatus(u16, Option<Box<[u8]>>),
}

/// A regular expression and the replacement of its match.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    pub regex: Regex,
    /// The replacement: `\1` is the first group.
    pub format: LogFormat,
}

/// The match of `del-header` for names.
#[derive(Debug, Clone, PartialEq)]
pub struct NameMatch {
    /// Match method: `str`, `beg`, `end`, `sub` or `reg`.
    pub method: expression::pattern::Method,
    /// The name, or a part of it, in lower case.
    pub name: Box<[u8]>,
    /// Set for `-m reg`.
    pub regex: Option<Regex>,
}

impl NameMatch {
    fn matches(&self, name: &[u8], steps: &Steps) -> Result<bool, Exhausted> {
        match &self.regex {
            Some(regex) => regex.is_match_within(name, steps),
            None => Ok(expression::pattern::compare(self.method, name, &self.name, false)),
        }
    }

    /// Removes the fields whose names match.
    fn delete(&self, head: &mut Head, steps: &Steps) -> Result<(), Exhausted> {
        let mut exhausted = Ok(());
        head.fields.retain(|name, _| {
            !self.matches(name, steps).unwrap_or_else(|why| {
                exhausted = Err(why);
                false
            })
        });
        exhausted
    }
}

impl Edit {
    /// Returns the format that is rendered before, if there is one.
    pub fn format(&self) -> Option<&LogFormat> {
        match self {
            Self::AddHeader(_, format)
            | Self::SetHeader(_, format)
            | Self::SetMethod(format)
            | Self::SetUri(format)
            | Self::SetPath(format)
            | Self::SetPathAndQuery(format)
            | Self::SetQuery(format) => Some(format),
            Self::ReplaceHeader(_, replacement)
            | Self::ReplaceValue(_, replacement)
            | Self::ReplacePath(replacement)
            | Self::ReplacePathAndQuery(replacement)
            | Self::ReplaceUri(replacement) => Some(&replacement.format),
            Self::DeleteHeader(_) | Self::SetStatus(..) | Self::NormalizeUri(_) => None,
            Self::AddFields(..) | Self::SetFields(..) | Self::DeleteFields(..) => None,
        }
    }

    /// Returns the expression that is evaluated before, if there is one.
    pub fn expression(&self) -> Option<&Expression> {
        match self {
            Self::AddFields(expression, _) | Self::SetFields(expression, _) | Self::DeleteFields(expression, _) => {
                Some(expression)
            }
            _ => None,
        }
    }

    /// Whether the change may affect method or target: an absolute-form target follows the Host field.
    pub fn is_about_the_line(&self, head: &Head) -> bool {
        let of_host = match self {
            Self::AddHeader(name, _)
            | Self::SetHeader(name, _)
            | Self::ReplaceHeader(name, _)
            | Self::ReplaceValue(name, _) => **name == *b"host",
            Self::AddFields(..) | Self::SetFields(..) => true,
            _ => false,
        };
        if of_host {
            return head.target().first() != Some(&b'/');
        }
        matches!(
            self,
            Self::SetMethod(_)
                | Self::SetUri(_)
                | Self::SetPath(_)
                | Self::SetPathAndQuery(_)
                | Self::SetQuery(_)
                | Self::ReplacePath(_)
                | Self::ReplacePathAndQuery(_)
                | Self::ReplaceUri(_)
                | Self::NormalizeUri(_)
        )
    }

    /// Changes the head. `text` is the rendered format or the value of the expression; `room` is the maximum size of
    /// the head in bytes (`tune.bufsize`).
    ///
    /// # Errors
    /// The change could not be completed.
    pub fn apply(&self, head: &mut Head, text: &[u8], room: usize) -> Result<(), Unfit> {
        // The input of one rule is one message, which is at most as long as a buffer.
        let steps = &Steps::for_text(room);
        match self {
            Self::AddHeader(name, _) => append(head, name, text, room),
            Self::SetHeader(name, _) => set(head, name, text, room),
            Self::DeleteHeader(wanted) => Ok(wanted.delete(head, steps)?),
            Self::ReplaceHeader(name, replacement) => {
                replace(head, name, room, |value, out| each_replaced(&replacement.regex, value, text, steps, out))
            }
            Self::ReplaceValue(name, replacement) => {
                replace(head, name, room, |value, out| split_replaced(&replacement.regex, value, text, steps, out))
            }
            Self::SetMethod(_) => {
                check(head, head.method().len(), text.len(), room)?;
                head.set_method(text);
                Ok(())
            }
            Self::AddFields(_, prefix) => each_field(text, prefix, |name, value| append(head, name, value, room)),
            Self::SetFields(_, prefix) => each_field(text, prefix, |name, value| set(head, name, value, room)),
            Self::DeleteFields(_, method) => delete_fields(head, text, *method),
            Self::SetStatus(status, reason) => {
                let reason = reason.as_deref().unwrap_or(wire::http::reason(*status).as_bytes());
                check(head, head.reason().len(), reason.len(), room)?;
                head.set_status(*status, reason);
                Ok(())
            }
            Self::SetUri(_)
            | Self::SetPath(_)
            | Self::SetPathAndQuery(_)
            | Self::SetQuery(_)
            | Self::ReplacePath(_)
            | Self::ReplacePathAndQuery(_)
            | Self::ReplaceUri(_)
            | Self::NormalizeUri(_) => self.apply_to_target(head, text, steps, room),
        }
    }

    /// Performs a change of a request's target; other changes have no effect.
    fn apply_to_target(&self, head: &mut Head, text: &[u8], steps: &Steps, room: usize) -> Result<(), Unfit> {
        match self {
            Self::SetUri(_) => set_uri(head, text, room),
            Self::SetPath(_) => set_parts(head, Some(text), None, room),
            Self::SetPathAndQuery(_) => set_path_and_query(head, text, room),
            Self::SetQuery(_) => set_parts(head, None, Some(text), room),
            // An asterisk is not a path.
            Self::ReplacePath(_) | Self::ReplacePathAndQuery(_) if head.target().starts_with(b"*") => Ok(()),
            Self::ReplacePath(replacement) => {
                let target = head.target();
                let (start, end) = parts(target);
                let new = replacement.replaced(&target[start..end], text, steps, room)?;
                set_parts(head, Some(&new), None, room)
            }
            Self::ReplacePathAndQuery(replacement) => {
                let target = head.target();
                let new = replacement.replaced(&target[parts(target).0..], text, steps, room)?;
                set_path_and_query(head, &new, room)
            }
            Self::ReplaceUri(replacement) => {
                let new = replacement.replaced(head.target(), text, steps, room)?;
                if new != head.target() {
                    set_uri(head, &new, room)?;
                }
                Ok(())
            }
            Self::NormalizeUri(normalizer) => {
                let target = head.target();
                let new = normalizer.apply(target, parts(target).0).map_err(|Malformed| Unfit::Malformed)?;
                if new != target {
                    set_target(head, &new, room)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Removes the fields that a list in binary format names.
fn delete_fields(head: &mut Head, list: &[u8], method: Method) -> Result<(), Unfit> {
    let mut reader = Reader::new(list);
    loop {
        let wanted = reader.text().map_err(|Truncated| Unfit::Full)?.to_ascii_lowercase();
        if wanted.is_empty() {
            return Ok(());
        }
        head.fields.retain(|name, _| !expression::pattern::compare(method, name, &wanted, false));
    }
}

impl Replacement {
    fn replaced(&self, value: &[u8], text: &[u8], steps: &Steps, room: usize) -> Result<Vec<u8>, Exhausted> {
        let mut out = Vec::with_capacity(value.len() + text.len());
        if !self.replace(value, text, steps, &mut Bounded { out: &mut out, room })? {
            out.extend_from_slice(value);
        }
        Ok(out)
    }

    fn replace(&self, value: &[u8], text: &[u8], steps: &Steps, out: &mut Bounded<'_>) -> Result<bool, Exhausted> {
        replace_first(&self.regex, value, text, steps, out)
    }
}

/// Appends the value with the first match replaced. Returns false if nothing matches; nothing is appended then.
fn replace_first(
    regex: &Regex,
    value: &[u8],
    text: &[u8],
    steps: &Steps,
    out: &mut Bounded<'_>,
) -> Result<bool, Exhausted> {
    let mut places = Places::default();
    let mut search = regex.search(&mut places, value, steps, true)?;
    let found = search.next(0)?.is_some();
    if found {
        expand(&search, value, text, &mut |bytes| out.extend_from_slice(bytes));
    }
    Ok(found)
}

/// Appends the value with the first match replaced, or unchanged.
fn each_replaced(
    regex: &Regex,
    value: &[u8],
    text: &[u8],
    steps: &Steps,
    out: &mut Bounded<'_>,
) -> Result<(), Exhausted> {
    if !replace_first(regex, value, text, steps, out)? {
        out.extend_from_slice(value);
    }
    Ok(())
}

/// Does the same for each comma-separated part of the value.
fn split_replaced(
    regex: &Regex,
    value: &[u8],
    text: &[u8],
    steps: &Steps,
    out: &mut Bounded<'_>,
) -> Result<(), Exhausted> {
    for (index, part) in split(value).enumerate() {
        if index > 0 {
            out.extend_from_slice(b",");
        }
        // A replaced value loses the blanks around it; others are unchanged.
        if !replace_first(regex, part.trim_ascii(), text, steps, out)? {
            out.extend_from_slice(part);
        }
    }
    Ok(())
}

/// A text whose writing stops when it exceeds the length of any head: each of its groups may be as long as the value.
struct Bounded<'a> {
    out: &'a mut Vec<u8>,
    room: usize,
}

impl Bounded<'_> {
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        if self.out.len() <= self.room {
            self.out.extend_from_slice(bytes);
        }
    }
}

/// Why a head could not be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// A strict normalizer rejects the target, or the new text is not valid.
    Malformed,
    /// The head would exceed a buffer, or the binary list is malformed.
    Full,
    /// A regular expression exceeds its limit of steps.
    Exhausted,
}

impl From<Exhausted> for Unfit {
    fn from(Exhausted: Exhausted) -> Self {
        Self::Exhausted
    }
}

/// Iterates over fields in binary format. Names that are not tokens are skipped, since they could end the line early.
fn each_field(
    text: &[u8],
    prefix: &[u8],
    mut with: impl FnMut(&[u8], &[u8]) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    let mut reader = Reader::new(text);
    while let Some((name, value)) = reader.field().map_err(|Truncated| Unfit::Full)? {
        let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        if name.starts_with(prefix) && name.iter().all(token) {
            with(&name.to_ascii_lowercase(), value)?;
        }
    }
    Ok(())
}

fn check(head: &Head, removed: usize, added: usize, room: usize) -> Result<(), Unfit> {
    if head.has_room(removed, added, room) { Ok(()) } else { Err(Unfit::Full) }
}

fn append(head: &mut Head, name: &[u8], value: &[u8], room: usize) -> Result<(), Unfit> {
    check(head, 0, name.len() + value.len() + PART, room)?;
    head.append(name, value);
    if name == b"host" { follow_host(head, value, room) } else { Ok(()) }
}

fn set(head: &mut Head, name: &[u8], value: &[u8], room: usize) -> Result<(), Unfit> {
    head.remove_all(name);
    append(head, name, value, room)
}

/// Updates the host in an absolute-form target to that of the Host field: the next recipient may use either.
fn follow_host(head: &mut Head, host: &[u8], room: usize) -> Result<(), Unfit> {
    let target = head.target();
    let (start, end, port) = if head.known_method() == wire::http::Method::Connect {
        // CONNECT needs a port, whether the Host field has one or not.
        let port = target::port(target).filter(|_| target::port(host).is_none());
        (0, target.len(), port.unwrap_or_default())
    } else {
        let Some((start, end)) = target::host(target) else { return Ok(()) };
        (start, end, &b""[..])
    };
    let mut new = Vec::with_capacity(target.len() + host.len());
    for part in [&target[..start], host, port, &target[end..]] {
        new.extend_from_slice(part);
    }
    if new == target || host.is_empty() { Ok(()) } else { set_target(head, &new, room) }
}

/// Updates the Host field to the host of a new absolute-form target.
fn follow_target(head: &mut Head, room: usize) -> Result<(), Unfit> {
    let target = head.target();
    let Some(host) = target::host(target).map(|(start, end)| target[start..end].to_vec()) else { return Ok(()) };
    let Some(old) = head.host().filter(|old| *old != host) else { return Ok(()) };
    check(head, old.len(), host.len(), room)?;
    head.replace(b"host", &host);
    Ok(())
}

/// Splits a value at commas outside of quotes.
fn split(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let whole = rest?;
        let end = comma(whole);
        rest = end.map(|end| &whole[end + 1..]);
        Some(&whole[..end.unwrap_or(whole.len())])
    })
}

fn set_uri(head: &mut Head, uri: &[u8], room: usize) -> Result<(), Unfit> {
    check(head, head.target().len(), uri.len(), room)?;
    head.set_uri(uri);
    follow_target(head, room)
}

fn set_target(head: &mut Head, target: &[u8], room: usize) -> Result<(), Unfit> {
    check(head, head.target().len(), target.len(), room)?;
    head.set_target(target);
    Ok(())
}

/// Replaces the value of every field with that name.
fn replace(
    head: &mut Head,
    name: &[u8],
    room: usize,
    mut with: impl FnMut(&[u8], &mut Bounded<'_>) -> Result<(), Exhausted>,
) -> Result<(), Unfit> {
    let mut out = Vec::new();
    for index in 0..head.field_count() {
        let Some(value) = head.fields.value_if(index, name) else { continue };
        out.clear();
        with(value, &mut Bounded { out: &mut out, room })?;
        if out != value {
            check(head, value.len(), out.len(), room)?;
            head.fields.set_value(index, &out);
            if name == b"host" {
                follow_host(head, &out, room)?;
            }
        }
    }
    Ok(())
}

/// Returns the offsets of the path, and of the query with its question mark.
fn parts(target: &[u8]) -> (usize, usize) {
    let start = if target.first() == Some(&b'*') { 0 } else { target::path(target).unwrap_or(target.len()) };
    let query = memchr::memchr(b'?', &target[start..]).map_or(target.len(), |at| start + at);
    (start, query)
}

fn set_parts(head: &mut Head, path: Option<&[u8]>, query: Option<&[u8]>, room: usize) -> Result<(), Unfit> {
    let target = head.target();
    let (start, end) = parts(target);
    let mut new = Vec::with_capacity(target.len() + path.or(query).map_or(0, <[u8]>::len) + 1);
    new.extend_from_slice(&target[..start]);
    new.extend_from_slice(path.unwrap_or(&target[start..end]));
    match query {
        // An existing question mark is kept.
        Some(b"") => new.extend_from_slice(&target[end..][..usize::from(end < target.len())]),
        Some(query) => {
            new.push(b'?');
            new.extend_from_slice(query);
        }
        None => new.extend_from_slice(&target[end..]),
    }
    set_target(head, &new, room)
}

fn set_path_and_query(head: &mut Head, text: &[u8], room: usize) -> Result<(), Unfit> {
    let target = head.target();
    let (start, _) = parts(target);
    let mut new = target[..start].to_vec();
    new.extend_from_slice(text);
    set_target(head, &new, room)
}
