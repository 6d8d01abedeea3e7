//! Indexes of patterns: whole texts by hash, networks by prefix length. Each returns the index of a pattern in its
//! list; the texts themselves remain in the list. Must never return another result than comparing one after the other
//! would.

use super::hash::Key;
use super::network::Network;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A pattern's index in its list.
pub type PatternIndex = u32;

/// A list of patterns.
pub trait Texts {
    /// Returns the pattern at an index, as written.
    fn key(&self, at: PatternIndex) -> &[u8];
}

/// Whether the pattern at an index is active.
pub type Alive<'a> = &'a dyn Fn(PatternIndex) -> bool;

/// Equal patterns: a linked list from the first one through the later ones.
#[derive(Debug, Clone, Default, PartialEq)]
struct EqualPatterns(FxHashMap<PatternIndex, PatternIndex>);

impl EqualPatterns {
    /// Adds a pattern equal to the one at `first`.
    fn add(&mut self, first: PatternIndex, at: PatternIndex) {
        if let Some(next) = self.0.insert(first, at) {
            self.0.insert(at, next);
        }
    }

    fn all(&self, first: PatternIndex) -> impl Iterator<Item = PatternIndex> {
        std::iter::successors(Some(first), |at| self.0.get(at).copied())
    }

    /// Returns the first active one.
    #[inline]
    fn first(&self, first: PatternIndex, alive: Alive<'_>) -> Option<PatternIndex> {
        if alive(first) { Some(first) } else { self.all(first).filter(|at| alive(*at)).min() }
    }
}

/// How whole texts are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Byte by byte.
    Exact,
    /// ASCII letters case-insensitively.
    AnyCase,
    /// The pattern is written in hexadecimal digits.
    Hex,
}

impl Form {
    fn hash(self, with: Key, key: &[u8]) -> u64 {
        match self {
            Self::Exact => with.bytes(key),
            Self::AnyCase => with.bytes(&key.to_ascii_lowercase()),
            Self::Hex => with.bytes(&base::hex::decode(key).unwrap_or_default()),
        }
    }

    #[inline]
    fn equal(self, key: &[u8], text: &[u8]) -> bool {
        match self {
            Self::Exact => key == text,
            Self::AnyCase => key.eq_ignore_ascii_case(text),
            Self::Hex => base::hex::decode(key).is_some_and(|key| key == text),
        }
    }

    fn same(self, one: &[u8], other: &[u8]) -> bool {
        match self {
            Self::Exact => one == other,
            Self::AnyCase | Self::Hex => one.eq_ignore_ascii_case(other),
        }
    }
}

/// Patterns that match whole texts. Of equal patterns the first one wins.
#[derive(Debug, Clone)]
pub struct Whole {
    form: Form,
    key: Key,
    places: HashTable<PatternIndex>,
    /// The only pattern, while there is just one: comparing costs less than hashing.
    only: Option<PatternIndex>,
    same: EqualPatterns,
}

impl Whole {
    /// Creates an empty index.
    pub fn new(form: Form, key: Key) -> Self {
        Self { form, key, places: HashTable::new(), only: None, same: EqualPatterns::default() }
    }

    /// Reserves capacity for `count` patterns.
    pub fn reserve(&mut self, count: usize, texts: &impl Texts) {
        let (form, with) = (self.form, self.key);
        self.places.reserve(count, |at| form.hash(with, texts.key(*at)));
    }

    /// Adds the pattern at an index of the list.
    pub fn insert(&mut self, at: PatternIndex, texts: &impl Texts) {
        let (form, with, key) = (self.form, self.key, texts.key(at));
        let hash = form.hash(with, key);
        match self.places.find(hash, |known| form.same(texts.key(*known), key)) {
            Some(first) => self.same.add(*first, at),
            None => {
                self.only = self.places.is_empty().then_some(at);
                self.places.insert_unique(hash, at, |at| form.hash(with, texts.key(*at)));
            }
        }
    }

    /// Returns the index of the pattern equal to a text. For case-insensitive patterns the text must be in lower case.
    #[inline]
    pub fn find(&self, text: &[u8], texts: &impl Texts, alive: Alive<'_>) -> Option<PatternIndex> {
        if let Some(only) = self.only {
            return if self.form.equal(texts.key(only), text) { self.same.first(only, alive) } else { None };
        }
        self.find_by_hash(text, texts, alive)
    }

    fn find_by_hash(&self, text: &[u8], texts: &impl Texts, alive: Alive<'_>) -> Option<PatternIndex> {
        if self.places.is_empty() {
            return None;
        }
        let first = self.places.find(self.key.bytes(text), |at| self.form.equal(texts.key(*at), text))?;
        self.same.first(*first, alive)
    }

    /// Returns the indexes of all patterns, of equal ones only the first.
    pub(super) fn places(&self) -> impl Iterator<Item = PatternIndex> {
        self.places.iter().copied()
    }

    /// The hash of a pattern, or of a part of one.
    pub(super) fn hash_of_pattern(&self, pattern: &[u8]) -> u64 {
        self.form.hash(self.key, pattern)
    }

    /// The hash of a text that is looked up, or of a part of it.
    pub(super) fn hash_of_text(&self, text: &[u8]) -> u64 {
        self.key.bytes(text)
    }

    /// Returns the indexes of the patterns equal to this one.
    pub fn like(&self, key: &[u8], texts: &impl Texts) -> Vec<PatternIndex> {
        let form = self.form;
        let first = self.places.find(form.hash(self.key, key), |at| form.same(texts.key(*at), key));
        first.map(|first| self.same.all(*first).collect()).unwrap_or_default()
    }
}

/// Networks: the longest prefix wins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Networks {
    v4: HashMap<(u32, u8), PatternIndex, Key>,
    /// The prefix lengths, descending.
    v4_lengths: Vec<u8>,
    v6: HashMap<(u128, u8), PatternIndex, Key>,
    v6_lengths: Vec<u8>,
    /// Networks with non-contiguous masks, in order.
    odd: Vec<(Network, PatternIndex)>,
    same: EqualPatterns,
}

impl Networks {
    /// Creates an empty index.
    pub fn new(key: Key) -> Self {
        Self { v4: HashMap::with_hasher(key), v6: HashMap::with_hasher(key), ..Self::default() }
    }

    /// Reserves capacity for `count` IPv4 networks.
    pub fn reserve(&mut self, count: usize) {
        self.v4.reserve(count);
    }

    /// Releases unused capacity.
    pub fn shrink(&mut self) {
        self.v4.shrink_to_fit();
    }

    /// Adds a network. Of equal networks the first one wins.
    pub fn insert(&mut self, network: Network, at: PatternIndex) {
        let add = |lengths: &mut Vec<u8>, length: u8| {
            if let Err(place) = lengths.binary_search_by(|known| length.cmp(known)) {
                lengths.insert(place, length);
            }
        };
        let first = match network {
            Network::V4(address, mask) if mask.leading_ones() == mask.count_ones() => {
                let length = mask.count_ones() as u8;
                add(&mut self.v4_lengths, length);
                *self.v4.entry((address, length)).or_insert(at)
            }
            Network::V6(address, mask) if mask.leading_ones() == mask.count_ones() => {
                let length = mask.count_ones() as u8;
                add(&mut self.v6_lengths, length);
                *self.v6.entry((address, length)).or_insert(at)
            }
            odd => {
                self.odd.push((odd, at));
                at
            }
        };
        if first != at {
            self.same.add(first, at);
        }
    }

    /// Returns the indexes of exactly that network.
    pub fn like(&self, network: Network) -> Vec<PatternIndex> {
        let first = match network {
            Network::V4(address, mask) if mask.leading_ones() == mask.count_ones() => {
                self.v4.get(&(address, mask.count_ones() as u8))
            }
            Network::V6(address, mask) if mask.leading_ones() == mask.count_ones() => {
                self.v6.get(&(address, mask.count_ones() as u8))
            }
            odd => return self.odd.iter().filter(|(known, _)| *known == odd).map(|(_, at)| *at).collect(),
        };
        first.map(|first| self.same.all(*first).collect()).unwrap_or_default()
    }

    /// Returns the index of the network with the longest prefix that contains the address, and the prefix length
    /// (section 7.1.6 on addresses of the other family).
    pub fn find(&self, address: IpAddr, alive: Alive<'_>) -> Option<(PatternIndex, usize)> {
        let found = match address {
            IpAddr::V4(address) => {
                self.find_v4(address, alive).or_else(|| self.find_v6(address.to_ipv6_mapped(), alive))
            }
            IpAddr::V6(address) => self
                .find_v6(address, alive)
                .or_else(|| crate::sample::embedded_ipv4(address).and_then(|address| self.find_v4(address, alive))),
        };
        let odd = || self.odd.iter().find(|(network, at)| network.contains(address) && alive(*at));
        found.or_else(|| odd().map(|(_, at)| (*at, 0)))
    }

    fn find_v4(&self, address: Ipv4Addr, alive: Alive<'_>) -> Option<(PatternIndex, usize)> {
        let address = u32::from(address);
        if self.v4.len() == 1 {
            // The common case in conditions: comparing a single network is faster than hashing.
            let ((network, length), first) = self.v4.iter().next()?;
            let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
            let found = if address & mask == *network { self.same.first(*first, alive) } else { None };
            return found.map(|found| (found, usize::from(*length)));
        }
        self.v4_lengths.iter().find_map(|length| {
            let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
            let first = self.v4.get(&(address & mask, *length))?;
            Some((self.same.first(*first, alive)?, usize::from(*length)))
        })
    }

    fn find_v6(&self, address: Ipv6Addr, alive: Alive<'_>) -> Option<(PatternIndex, usize)> {
        let address = u128::from(address);
        self.v6_lengths.iter().find_map(|length| {
            let mask = u128::MAX.checked_shl(128 - u32::from(*length)).unwrap_or(0);
            let first = self.v6.get(&(address & mask, *length))?;
            Some((self.same.first(*first, alive)?, usize::from(*length)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::affix::{Affixes, Side};
    use super::*;

    impl Texts for &[&str] {
        fn key(&self, at: PatternIndex) -> &[u8] {
            self[at as usize].as_bytes()
        }
    }

    const KEY: Key = Key::new(7);

    #[test]
    fn the_longest_beginning_and_the_first_end_count() {
        let list: &[&str] = &["/", "/a", "/a/b", "/c", "/a"];
        let (mut starts, mut ends) =
            (Affixes::new(Side::Start, Form::Exact, KEY), Affixes::new(Side::End, Form::Exact, KEY));
        for at in 0..list.len() as u32 {
            starts.insert(at, &list);
            ends.insert(at, &list);
        }
        let find = |affixes: &Affixes, text: &str, dead: u32| {
            affixes.find(text.as_bytes(), &list, &|at| at != dead).map(|found| found.0)
        };
        for (text, start, end) in [
            ("/a/b/c", Some(2), Some(3)),
            ("/a", Some(1), Some(1)),
            ("/x", Some(0), None),
            ("x", None, None),
            ("x/", None, Some(0)),
            ("", None, None),
            ("/a/b", Some(2), Some(2)),
        ] {
            assert_eq!((find(&starts, text, 9), find(&ends, text, 9)), (start, end), "{text}");
        }
        assert_eq!((find(&starts, "/a", 1), find(&ends, "/a", 1)), (Some(4), Some(4)));
        assert_eq!(starts.texts.like(b"/a", &list), [1, 4]);
    }

    #[test]
    fn the_finest_network_counts() {
        let list = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "0.0.0.0/0", "2001:db8::/32", "10.0.0.5/255.0.0.255"];
        let mut networks = Networks::new(KEY);
        for (at, text) in list.iter().enumerate() {
            networks.insert(Network::parse(text).expect("a network"), at as u32);
        }
        for (address, expected) in [
            ("10.1.2.3", Some(2)),
            ("10.1.2.4", Some(1)),
            ("10.2.0.0", Some(0)),
            ("192.0.2.1", Some(3)),
            ("2001:db8::1", Some(4)),
            ("2001:db9::1", None),
            ("::ffff:10.1.2.3", Some(2)),
        ] {
            let found = networks.find(address.parse().expect("an address"), &|_| true);
            assert_eq!(found.map(|found| found.0), expected, "{address}");
        }
        let found = networks.find("10.1.2.3".parse().expect("an address"), &|at| at != 2);
        assert_eq!(found.map(|found| found.0), Some(1));
    }
}
