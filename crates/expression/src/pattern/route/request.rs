//! The parts of a request that a table of routes looks at, and the conditions on them. Must never allocate for a
//! comparison with a text.

use super::super::{Regex, Steps};
use super::key::{MOST_HOST, ValueCondition, ValuePattern};
use crate::fields::each_field;
use crate::sample::{Exhausted, Meter};
use std::borrow::Cow;
use wire::http::Head;

/// A request that is looked up in a table of routes.
#[derive(Clone, Copy)]
pub struct RouteRequest<'a> {
    /// The value of Host, or empty.
    pub host: &'a [u8],
    pub method: &'a [u8],
    /// The path as the client has sent it.
    pub path: &'a [u8],
    /// The query string without its question mark.
    pub query: &'a [u8],
    /// The head that contains the header fields; `None`: there are none.
    pub head: Option<&'a Head>,
    /// Charges a step of that many units; false: the budget is exhausted.
    pub charge: &'a dyn Fn(u32) -> bool,
}

impl<'a> RouteRequest<'a> {
    /// Parses `<host><path>{?<query>}`, a GET request without header fields.
    pub fn of_text(text: &'a [u8]) -> Self {
        let (host, target) = text.split_at(memchr::memchr(b'/', text).unwrap_or(text.len()));
        Self { host, ..Self::of_target(target) }
    }

    /// A GET request with that path and query, and without a host and header fields.
    pub fn of_target(target: &'a [u8]) -> Self {
        let (path, query) = match memchr::memchr(b'?', target) {
            Some(mark) => (&target[..mark], &target[mark + 1..]),
            None => (target, &[][..]),
        };
        Self { host: b"", method: b"GET", path, query, head: None, charge: &|_| true }
    }

    /// Consumes the budget of a step.
    pub(super) fn spend(&self, units: u32) -> Result<(), Exhausted> {
        if (self.charge)(units) { Ok(()) } else { Err(Exhausted) }
    }

    pub(super) fn fits_header(&self, condition: &ValueCondition, steps: &Steps) -> Result<bool, Exhausted> {
        let Some(head) = self.head else { return Ok(false) };
        match &condition.value {
            ValuePattern::Exact(wanted) => Ok(is_joined(head, &condition.name, wanted)),
            ValuePattern::Regex(regex) => match joined(head, &condition.name) {
                Some(value) => self.matches(regex, &value, steps),
                None => Ok(false),
            },
        }
    }

    pub(super) fn fits_parameter(&self, condition: &ValueCondition, steps: &Steps) -> Result<bool, Exhausted> {
        self.spend(Meter::scan(self.query.len()))?;
        let Some(value) = first_parameter(self.query, &condition.name) else { return Ok(false) };
        match &condition.value {
            ValuePattern::Exact(wanted) => Ok(decodes_to(value, wanted)),
            ValuePattern::Regex(regex) => self.matches(regex, &decode(value), steps),
        }
    }

    /// Whether a regular expression matches. Each search has steps of its own.
    pub(super) fn matches(&self, regex: &Regex, text: &[u8], steps: &Steps) -> Result<bool, Exhausted> {
        self.spend(Meter::search(text.len()))?;
        steps.add_value(text.len());
        regex.is_match_within(text, steps)
    }
}

/// A host in lower case, without a port and without a dot at its end.
pub struct NormalHost {
    text: [u8; MOST_HOST],
    length: usize,
}

impl NormalHost {
    /// Returns the normalized host; empty if it is longer than a name can be.
    pub fn new(host: &[u8]) -> Self {
        let name = match host.first() {
            Some(b'[') => memchr::memchr(b']', host).map_or(host, |end| &host[..=end]),
            _ => &host[..memchr::memchr(b':', host).unwrap_or(host.len())],
        };
        let name = name.strip_suffix(b".").unwrap_or(name);
        let mut normal = Self { text: [0; MOST_HOST], length: 0 };
        if let Some(text) = normal.text.get_mut(..name.len()) {
            text.copy_from_slice(name);
            text.make_ascii_lowercase();
            normal.length = name.len();
        }
        normal
    }

    pub fn text(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

/// Whether the fields of that name, joined by `, `, are a text. False: there is none.
fn is_joined(head: &Head, name: &[u8], wanted: &[u8]) -> bool {
    let (mut rest, mut is_first) = (Some(wanted), true);
    each_field(head, Some(name), &mut |value| {
        let separator: &[u8] = if std::mem::replace(&mut is_first, false) { b"" } else { b", " };
        rest = rest.and_then(|rest| rest.strip_prefix(separator)?.strip_prefix(value));
        rest.is_none()
    });
    !is_first && rest.is_some_and(<[u8]>::is_empty)
}

/// Returns the fields of that name, joined by `, `.
fn joined<'a>(head: &'a Head, name: &[u8]) -> Option<Cow<'a, [u8]>> {
    let mut all: Option<Cow<'a, [u8]>> = None;
    each_field(head, Some(name), &mut |value| {
        match &mut all {
            None => all = Some(Cow::Borrowed(value)),
            Some(all) => {
                let all = all.to_mut();
                all.extend_from_slice(b", ");
                all.extend_from_slice(value);
            }
        }
        false
    });
    all
}

/// Returns the encoded value of the first parameter with that name. Without `=` it is empty.
fn first_parameter<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let (own, value) = match memchr::memchr(b'=', pair) {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &[][..]),
        };
        decodes_to(own, name).then_some(value)
    })
}

/// The bytes of an encoded parameter: `+` is a blank, and `%` without two digits itself.
struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        match *self.0 {
            [b'%', high, low, ref rest @ ..] if digit(high).is_some() && digit(low).is_some() => {
                self.0 = rest;
                Some(digit(high)? << 4 | digit(low)?)
            }
            [byte, ref rest @ ..] => {
                self.0 = rest;
                Some(if byte == b'+' { b' ' } else { byte })
            }
            [] => None,
        }
    }
}

fn decodes_to(encoded: &[u8], wanted: &[u8]) -> bool {
    Decoded(encoded).eq(wanted.iter().copied())
}

fn decode(encoded: &[u8]) -> Cow<'_, [u8]> {
    match memchr::memchr2(b'%', b'+', encoded) {
        Some(_) => Decoded(encoded).collect::<Vec<u8>>().into(),
        None => encoded.into(),
    }
}
