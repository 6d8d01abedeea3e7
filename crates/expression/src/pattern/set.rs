//! A set of patterns of one matching method, indexed. The texts of the patterns are stored in the set's list. Must
//! never return another result than comparing one after the other would.

use super::affix::{Affixes, Side};
use super::index::{Alive, Form, Networks, PatternIndex, Texts, Whole};
use super::integer::range;
use super::many::{Parts, Regexes};
use super::network::Network;
use super::numbers::Numbers;
use super::route::Routes;
use super::{Key, Method, Regex, RouteRequest, Steps};
use crate::sample::{Context, Exhausted, Type, Value, cast};
use config::text::from_bytes;

/// A matching pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Its index.
    pub at: PatternIndex,
    /// Its specificity, if the most specific match wins: the prefix length of a network, the length of a prefix
    /// pattern.
    pub weight: usize,
}

/// A sample that a list is searched for.
pub(super) enum Sample<'v> {
    /// A prepared value.
    Value(Value<'v>),
    Request(&'v RouteRequest<'v>),
}

impl Sample<'_> {
    /// Returns the pattern of a set that it matches.
    ///
    /// # Errors
    /// The steps or the budget of the evaluation are exhausted.
    #[inline]
    pub(super) fn find(
        &self,
        set: &PatternSet,
        texts: &impl Texts,
        alive: Alive<'_>,
        steps: &Steps,
    ) -> Result<Option<Hit>, Exhausted> {
        match self {
            Self::Value(value) => set.find_within(*value, texts, alive, steps),
            Self::Request(request) => set.find_route(request, alive, steps),
        }
    }
}

/// Patterns of one method and one case sensitivity.
#[derive(Debug, Clone)]
pub struct PatternSet {
    method: Method,
    ignore_case: bool,
    /// Strings are matched without conversion.
    takes_text: bool,
    patterns: Patterns,
}

#[derive(Debug, Clone)]
enum Patterns {
    /// The method needs no patterns.
    None,
    Numbers(Box<Numbers>),
    Networks(Box<Networks>),
    /// Whole texts.
    Whole(Whole),
    /// Prefixes or suffixes.
    Affixes(Affixes),
    /// Substrings.
    Parts(Parts),
    Regexes(Regexes),
    /// Routes of requests.
    Routes(Box<Routes>),
}

impl PatternSet {
    /// Creates an empty set, which hashes with that key.
    pub fn new(method: Method, ignore_case: bool, key: Key) -> Self {
        let form = if ignore_case { Form::AnyCase } else { Form::Exact };
        let patterns = match method {
            Method::Found | Method::Bool => Patterns::None,
            Method::Int | Method::Dotted | Method::Len => Patterns::Numbers(Box::new(Numbers::new(key))),
            Method::Ip => Patterns::Networks(Box::new(Networks::new(key))),
            Method::Bin => Patterns::Whole(Whole::new(Form::Hex, key)),
            Method::Str => Patterns::Whole(Whole::new(form, key)),
            Method::Beg => Patterns::Affixes(Affixes::new(Side::Start, form, key)),
            Method::End => Patterns::Affixes(Affixes::new(Side::End, form, key)),
            Method::Reg => Patterns::Regexes(Regexes::new(ignore_case)),
            Method::Route => Patterns::Routes(Box::new(Routes::new(key))),
            Method::Sub | Method::Dir | Method::Dom => Patterns::Parts(Parts::new(method, ignore_case)),
        };
        let lowers = ignore_case && matches!(patterns, Patterns::Whole(_) | Patterns::Affixes(_));
        let takes_text = method.input() == Some(Type::Str) && !lowers;
        Self { method, ignore_case, takes_text, patterns }
    }

    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether ASCII letters are matched case-insensitively.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Whether patterns are found by hash or mask, rather than one after the other.
    pub fn is_tree(&self) -> bool {
        !self.ignore_case
            && match self.patterns {
                Patterns::Networks(_) | Patterns::Whole(_) | Patterns::Routes(_) => true,
                Patterns::Affixes(_) => self.method == Method::Beg,
                _ => false,
            }
    }

    /// Whether the most specific matching pattern wins, rather than the first.
    pub fn finest_counts(&self) -> bool {
        matches!(self.method, Method::Ip | Method::Beg | Method::Route)
    }

    /// Whether a pattern precedes one of another set of the same method that matches the same sample: it is at least as
    /// specific.
    pub fn precedes(&self, hit: Hit, other: &Self, others: Hit) -> bool {
        match (&self.patterns, &other.patterns) {
            (Patterns::Routes(own), Patterns::Routes(other)) => own.rank(hit.at) <= other.rank(others.at),
            _ => others.weight <= hit.weight,
        }
    }

    /// Reserves capacity for `count` patterns.
    pub fn reserve(&mut self, count: usize, texts: &impl Texts) {
        match &mut self.patterns {
            Patterns::Whole(whole) => whole.reserve(count, texts),
            Patterns::Affixes(affixes) => affixes.reserve(count, texts),
            Patterns::Networks(networks) => networks.reserve(count),
            Patterns::Numbers(numbers) => numbers.reserve(count),
            _ => {}
        }
    }

    /// Announces the initial patterns, followed by [`PatternSet::finish`]. `single`: regular expressions will be
    /// requested individually.
    pub fn load(&mut self, single: bool) {
        if let Patterns::Regexes(regexes) = &mut self.patterns {
            regexes.load(single);
        }
    }

    /// Ends the loading of the initial patterns: releases unused capacity and builds the automata for many patterns.
    pub fn finish(&mut self, texts: &impl Texts) {
        match &mut self.patterns {
            Patterns::Networks(networks) => networks.shrink(),
            Patterns::Numbers(numbers) => numbers.shrink(),
            Patterns::Parts(parts) => parts.build(texts),
            Patterns::Regexes(regexes) => regexes.build(),
            _ => {}
        }
    }

    /// Returns the regular expressions that are kept individually: at least all that are not in the automaton.
    pub fn regexes(&self) -> impl Iterator<Item = &Regex> {
        let found = if let Patterns::Regexes(regexes) = &self.patterns { Some(regexes.all()) } else { None };
        let of_routes = if let Patterns::Routes(routes) = &self.patterns { Some(routes.regexes()) } else { None };
        found.into_iter().flatten().chain(of_routes.into_iter().flatten())
    }

    /// Adds the pattern at an index of the list.
    ///
    /// # Errors
    /// HAProxy's message about the pattern.
    pub fn insert(&mut self, at: PatternIndex, texts: &impl Texts) -> Result<(), String> {
        let key = texts.key(at);
        match &mut self.patterns {
            Patterns::None => {}
            Patterns::Numbers(numbers) => numbers.insert(range(&from_bytes(key), self.method.notation())?, at),
            Patterns::Networks(networks) => networks.insert(network(key)?, at),
            Patterns::Whole(whole) => {
                if self.method == Method::Bin && base::hex::decode(key).is_none() {
                    return Err(broken_hex(key));
                }
                whole.insert(at, texts);
            }
            Patterns::Affixes(affixes) => affixes.insert(at, texts),
            Patterns::Parts(parts) => parts.insert(at),
            Patterns::Regexes(regexes) => regexes.insert(&from_bytes(key), at)?,
            Patterns::Routes(routes) => routes.insert(at, texts)?,
        }
        Ok(())
    }

    /// Removes a pattern that is no longer active from the index of a table of routes. Other indexes keep it.
    pub fn remove(&mut self, at: PatternIndex, texts: &impl Texts) {
        if let Patterns::Routes(routes) = &mut self.patterns {
            routes.remove(at, texts);
        }
    }

    /// Returns the entry of a table of routes that fits a request best.
    ///
    /// # Errors
    /// The steps or the budget of the evaluation are exhausted.
    pub fn find_route(
        &self,
        request: &RouteRequest<'_>,
        alive: Alive<'_>,
        steps: &Steps,
    ) -> Result<Option<Hit>, Exhausted> {
        let Patterns::Routes(routes) = &self.patterns else { return Ok(None) };
        Ok(routes.find(request, alive, steps)?.map(|at| Hit { at, weight: 0 }))
    }

    /// Converts a sample for matching: `None` if that fails.
    #[inline]
    pub fn prepare<'a>(&self, context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
        match value {
            Value::Str(_) if self.takes_text => Some(value),
            _ => self.convert(context, value),
        }
    }

    fn convert<'a>(&self, context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
        let value = match self.method.input() {
            Some(wanted) if !fits(value.kind(), wanted) => cast(value.kind(), wanted)?(context, value)?,
            _ => value,
        };
        match self.patterns {
            Patterns::Whole(_) | Patterns::Affixes(_) if self.ignore_case => {
                lower(context, value.bytes()?).map(Value::Str)
            }
            _ => Some(value),
        }
    }

    /// Returns the pattern that a prepared sample matches: the most specific network, the longest prefix, or else the
    /// first one. Methods without patterns return index 0.
    ///
    /// # Errors
    /// A regular expression exhausts its steps.
    pub fn find(&self, value: Value<'_>, texts: &impl Texts, alive: Alive<'_>) -> Result<Option<Hit>, Exhausted> {
        self.find_within(value, texts, alive, &Steps::for_text(value.size()))
    }

    /// The same with shared steps.
    ///
    /// # Errors
    /// As for [`PatternSet::find`].
    pub fn find_within(
        &self,
        value: Value<'_>,
        texts: &impl Texts,
        alive: Alive<'_>,
        steps: &Steps,
    ) -> Result<Option<Hit>, Exhausted> {
        match (&self.patterns, value.bytes()) {
            (Patterns::Regexes(regexes), Some(text)) => {
                return Ok(regexes.find(text, alive, steps)?.map(|at| Hit { at, weight: 0 }));
            }
            (Patterns::Routes(_), Some(text)) => return self.find_route(&RouteRequest::of_text(text), alive, steps),
            _ => {}
        }
        Ok(self.find_simple(value, texts, alive))
    }

    /// The same for all methods but regular expressions.
    fn find_simple(&self, value: Value<'_>, texts: &impl Texts, alive: Alive<'_>) -> Option<Hit> {
        let first = |at: PatternIndex| Hit { at, weight: 0 };
        match &self.patterns {
            Patterns::None if self.method == Method::Bool => (value == Value::Bool(true)).then_some(first(0)),
            Patterns::None => Some(first(0)),
            Patterns::Numbers(numbers) => {
                let number = match self.method {
                    Method::Len => value.bytes()?.len() as i64,
                    _ => value.integer()?,
                };
                numbers.find(number, alive).map(first)
            }
            Patterns::Networks(networks) => {
                networks.find(value.address()?, alive).map(|(at, weight)| Hit { at, weight })
            }
            Patterns::Whole(whole) => whole.find(value.bytes()?, texts, alive).map(first),
            Patterns::Affixes(affixes) => {
                let (at, length) = affixes.find(value.bytes()?, texts, alive)?;
                Some(Hit { at, weight: if self.method == Method::Beg { length } else { 0 } })
            }
            Patterns::Parts(parts) => parts.find(value.bytes()?, texts, alive).map(first),
            Patterns::Regexes(_) | Patterns::Routes(_) => None,
        }
    }

    /// Returns the indexes of the patterns written like this one; may include a few others.
    pub fn like(&self, key: &[u8], count: usize, texts: &impl Texts) -> Vec<PatternIndex> {
        match &self.patterns {
            Patterns::Whole(whole) => whole.like(key, texts),
            Patterns::Affixes(affixes) => affixes.texts.like(key, texts),
            Patterns::Routes(routes) => routes.like(key, texts),
            Patterns::Networks(networks) => network(key).map(|network| networks.like(network)).unwrap_or_default(),
            Patterns::Numbers(numbers) => {
                let range = range(&from_bytes(key), self.method.notation());
                range.map(|range| numbers.like(&range)).unwrap_or_default()
            }
            _ => (0..count as PatternIndex).filter(|at| texts.key(*at) == key).collect(),
        }
    }

    /// Returns the regular expression at that index, if they are kept individually.
    pub fn regex(&self, at: PatternIndex) -> Option<&Regex> {
        let Patterns::Regexes(regexes) = &self.patterns else { return None };
        regexes.get(at)
    }
}

/// Returns the message about invalid hexadecimal digits.
fn broken_hex(key: &[u8]) -> String {
    match key.iter().find(|digit| !digit.is_ascii_hexdigit()) {
        Some(digit) if key.len().is_multiple_of(2) => {
            format!("an hex digit is expected (found '{}')", from_bytes(&[*digit]))
        }
        _ => "an even number of hex digit is expected".to_owned(),
    }
}

fn network(key: &[u8]) -> Result<Network, String> {
    let found = std::str::from_utf8(key).ok().and_then(Network::parse);
    found.ok_or_else(|| format!("'{}' is not a valid IPv4 or IPv6 address", from_bytes(key)))
}

/// Converts a text to lower case.
fn lower<'a>(context: &Context<'a>, bytes: &'a [u8]) -> Option<&'a [u8]> {
    if !bytes.iter().any(u8::is_ascii_uppercase) {
        return Some(bytes);
    }
    let mut text = context.text(bytes.len());
    bytes.iter().for_each(|byte| text.push(byte.to_ascii_lowercase()));
    text.finish()
}

/// Whether a sample can be matched without a cast.
fn fits(kind: Type, wanted: Type) -> bool {
    kind == wanted
        || (wanted == Type::Addr && matches!(kind, Type::Ipv4 | Type::Ipv6))
        || (wanted == Type::Str && matches!(kind, Type::Bin | Type::Method))
        || (wanted == Type::Bin && matches!(kind, Type::Str | Type::Method))
}
