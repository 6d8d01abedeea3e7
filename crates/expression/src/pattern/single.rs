//! A list of one pattern, the common case in conditions. A sample of exactly its type is compared without conversion or
//! hash. Must never return another result than the index of the list would.

use super::entries::Entries;
use super::index::Texts;
use super::integer::range;
use super::{Method, Network, PatternSet};
use crate::sample::Value;
use config::text::from_bytes;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The only pattern of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Single {
    /// A range of numbers.
    Numbers(RangeInclusive<i64>),
    /// A network.
    Network(Network),
    /// A whole text, compared byte by byte.
    Text(Box<[u8]>),
}

impl Single {
    /// Creates it from a list; `None`: the list has several patterns, or another method.
    pub fn of(set: &PatternSet, entries: &Entries) -> Option<Self> {
        if entries.len() != 1 {
            return None;
        }
        let key = entries.key(0);
        match set.method() {
            method @ (Method::Int | Method::Dotted) => {
                range(&from_bytes(key), method.notation()).ok().map(Self::Numbers)
            }
            Method::Ip => std::str::from_utf8(key).ok().and_then(Network::parse).map(Self::Network),
            Method::Str if !set.ignores_case() => Some(Self::Text(key.into())),
            _ => None,
        }
    }

    /// Whether a sample matches; `None`: it must be converted first.
    #[inline]
    pub fn matches(&self, value: Value<'_>) -> Option<bool> {
        match (self, value) {
            (Self::Numbers(range), Value::Int(number)) => Some(range.contains(&number)),
            (Self::Text(text), Value::Str(other) | Value::Method(other)) => Some(**text == *other),
            (Self::Network(network @ Network::V4(..)), Value::Ipv4(address)) => {
                Some(network.contains(IpAddr::V4(address)))
            }
            (Self::Network(network @ Network::V6(..)), Value::Ipv6(address)) => {
                Some(network.contains(IpAddr::V6(address)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Content, ListLine, Registry};
    use super::*;

    #[test]
    fn it_answers_as_the_index_of_the_list_does() {
        let patterns = [
            (Method::Int, "5"),
            (Method::Int, "2:7"),
            (Method::Int, "8:"),
            (Method::Ip, "192.0.2.0/24"),
            (Method::Ip, "0.0.0.0/0"),
            (Method::Ip, "2001:db8::/32"),
            (Method::Ip, "::ffff:192.0.2.7"),
            (Method::Str, "abc"),
            (Method::Str, ""),
        ];
        let numbers = [i64::MIN, -3, -2, 5, 7, 8, i64::MAX].map(Value::Int);
        let texts =
            ["abc", "ABC", "abcd", ""].map(|text| [Value::Str(text.as_bytes()), Value::Method(text.as_bytes())]);
        let addresses = ["192.0.2.7", "192.0.3.7", "2001:db8::1", "::ffff:192.0.2.7", "::1"];
        let addresses = addresses.map(|text| Value::from(text.parse::<IpAddr>().unwrap()));
        let values: Vec<Value<'_>> = numbers.into_iter().chain(texts.into_iter().flatten()).chain(addresses).collect();
        let mut compared = 0;
        for (method, pattern) in patterns {
            let mut lists = Registry::default();
            let list = lists.own("", Entries::of_words([pattern.as_bytes()].into_iter()), None, ListLine::default());
            let lookup = lists.lookup(list, method, false, Content::None).unwrap();
            let single = Single::of(&lookup.base.set, &lookup.entries).unwrap();
            for value in &values {
                let Some(found) = single.matches(*value) else { continue };
                let of_index =
                    lookup.base.set.find(*value, &*lookup.entries, &|_| true).is_ok_and(|found| found.is_some());
                assert_eq!(found, of_index, "{} {pattern} {value:?}", method.name());
                compared += 1;
            }
        }
        assert_eq!(compared, 3 * 7 + 2 * 2 + 2 * 3 + 2 * 8);
    }

    #[test]
    fn others_have_none() {
        for (method, ignore_case, patterns) in
            [(Method::Str, true, &["a"][..]), (Method::Str, false, &["a", "b"]), (Method::Beg, false, &["a"])]
        {
            let mut lists = Registry::default();
            let words = patterns.iter().map(|pattern| pattern.as_bytes());
            let list = lists.own("", Entries::of_words(words), None, ListLine::default());
            let lookup = lists.lookup(list, method, ignore_case, Content::None).unwrap();
            assert_eq!(Single::of(&lookup.base.set, &lookup.entries), None);
        }
    }
}
