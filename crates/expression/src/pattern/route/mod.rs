//! Tables of routes (`req.route`, Weir's own): the entry that fits a request best. Owns the index of the entries by host
//! and path. Must never return another entry than the first one that fits, of all entries by precedence.

mod key;
mod lookup;
#[cfg(test)]
mod model;
mod nodes;
mod request;
#[cfg(test)]
mod tests;

pub use key::RouteKey;
pub use request::RouteRequest;

use super::index::{Alive, PatternIndex, Texts};
use super::{Key, Regex, Steps};
use crate::sample::Exhausted;
use hashbrown::HashTable;
use key::{HostKey, PathKey, ValuePattern};
use nodes::{ANY, BELOW, Node, NodeIndex, Nodes, WHOLE};
use request::NormalHost;
use std::cmp::Reverse;

/// The entries of a table, found by host and path.
#[derive(Debug, Clone)]
pub struct Routes {
    key: Key,
    /// The entries by their index in the list; `None`: removed.
    all: Vec<Option<Box<Route>>>,
    nodes: Nodes,
    /// The entries by the text of their key.
    texts: HashTable<PatternIndex>,
}

/// An entry.
#[derive(Debug, Clone)]
struct Route {
    key: RouteKey,
    node: NodeIndex,
}

/// The precedence of an entry: the smaller one precedes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank<'a> {
    /// The length of a wildcard's suffix; 0 for all hosts.
    host: Reverse<usize>,
    /// The length of a prefix.
    path: Reverse<usize>,
    has_method: Reverse<bool>,
    headers: Reverse<usize>,
    query: Reverse<usize>,
    order: &'a [u8],
}

impl RouteKey {
    fn rank(&self) -> Rank<'_> {
        let host = match &self.host {
            HostKey::Whole(_) => usize::MAX,
            HostKey::Below(suffix) => suffix.len(),
            HostKey::Any => 0,
        };
        let path = match &self.path {
            PathKey::Exact(_) => usize::MAX,
            PathKey::Regex(_) => usize::MAX - 1,
            PathKey::Prefix(prefix) => prefix.len(),
        };
        Rank {
            host: Reverse(host),
            path: Reverse(path),
            has_method: Reverse(self.method.is_some()),
            headers: Reverse(self.headers.len()),
            query: Reverse(self.query.len()),
            order: &self.order,
        }
    }

    /// Returns the entries of a node that an entry of this key is added to.
    fn entries<'n>(&self, node: &'n mut Node) -> &'n mut Vec<PatternIndex> {
        match self.path {
            PathKey::Exact(_) => &mut node.exact,
            PathKey::Prefix(_) => &mut node.prefixes,
            PathKey::Regex(_) => &mut node.regexes,
        }
    }

    /// Whether a request of the host and the path fulfils the other conditions.
    fn fits(&self, request: &RouteRequest<'_>, steps: &Steps) -> Result<bool, Exhausted> {
        request.spend(1)?;
        if self.method.as_ref().is_some_and(|method| **method != *request.method) {
            return Ok(false);
        }
        if let PathKey::Regex(regex) = &self.path
            && !request.matches(regex, request.path, steps)?
        {
            return Ok(false);
        }
        for condition in &self.headers {
            if !request.fits_header(condition, steps)? {
                return Ok(false);
            }
        }
        for condition in &self.query {
            if !request.fits_parameter(condition, steps)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn regexes(&self) -> impl Iterator<Item = &Regex> {
        let path = if let PathKey::Regex(regex) = &self.path { Some(regex) } else { None };
        let values = self.headers.iter().chain(&self.query).filter_map(|condition| match &condition.value {
            ValuePattern::Regex(regex) => Some(regex),
            ValuePattern::Exact(_) => None,
        });
        path.into_iter().chain(values)
    }
}

/// The elements of a path; `None`: it does not begin with a slash.
fn elements(path: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    Some(path.strip_prefix(b"/")?.split(|byte| *byte == b'/'))
}

impl Routes {
    /// Creates an empty table, which hashes with that key.
    pub fn new(key: Key) -> Self {
        Self { key, all: Vec::new(), nodes: Nodes::new(key), texts: HashTable::new() }
    }

    /// Adds the entry at an index of the list.
    ///
    /// # Errors
    /// The key is invalid; the message has three lines.
    pub fn insert(&mut self, at: PatternIndex, texts: &impl Texts) -> Result<(), String> {
        let text = texts.key(at);
        let key = RouteKey::parse(text).map_err(|error| error.to_string())?;
        let host = match &key.host {
            HostKey::Whole(name) => self.nodes.grow(WHOLE, name),
            HostKey::Below(suffix) => self.nodes.grow(BELOW, suffix),
            HostKey::Any => self.nodes.grow(ANY, b""),
        };
        let path = match &key.path {
            PathKey::Exact(path) | PathKey::Prefix(path) => elements(path),
            PathKey::Regex(_) => None,
        };
        let node = path.into_iter().flatten().fold(host, |node, element| self.nodes.grow(node, element));
        let rank = key.rank();
        let precedes = |known: &PatternIndex| {
            // Of entries with the same rank, the first one precedes.
            self.rank(*known).is_some_and(|known_rank| known_rank < rank || (known_rank == rank && *known < at))
        };
        let entries = self.nodes.get(node).map(|node| match &key.path {
            PathKey::Exact(_) => &node.exact,
            PathKey::Prefix(_) => &node.prefixes,
            PathKey::Regex(_) => &node.regexes,
        });
        let place = entries.map_or(0, |entries| entries.partition_point(precedes));
        if let Some(node) = self.nodes.get_mut(node) {
            key.entries(node).insert(place, at);
        }
        if self.all.len() <= at as usize {
            self.all.resize_with(at as usize + 1, || None);
        }
        self.all[at as usize] = Some(Box::new(Route { key, node }));
        let with = self.key;
        self.texts.insert_unique(with.bytes(text), at, |at| with.bytes(texts.key(*at)));
        Ok(())
    }

    /// Removes the entry at an index of the list.
    pub fn remove(&mut self, at: PatternIndex, texts: &impl Texts) {
        let Some(Route { key, node }) = self.all.get_mut(at as usize).and_then(Option::take).map(|route| *route) else {
            return;
        };
        if let Some(node) = self.nodes.get_mut(node) {
            key.entries(node).retain(|known| *known != at);
        }
        self.nodes.prune(node);
        if let Ok(found) = self.texts.find_entry(self.key.bytes(texts.key(at)), |known| *known == at) {
            found.remove();
        }
    }

    /// Returns the indexes of the entries with that key, in order.
    pub fn like(&self, key: &[u8], texts: &impl Texts) -> Vec<PatternIndex> {
        let same = |at: &&PatternIndex| texts.key(**at) == key;
        let mut found: Vec<_> = self.texts.iter_hash(self.key.bytes(key)).filter(same).copied().collect();
        found.sort_unstable();
        found
    }

    /// Returns the precedence of an entry.
    pub fn rank(&self, at: PatternIndex) -> Option<Rank<'_>> {
        self.all.get(at as usize)?.as_ref().map(|route| route.key.rank())
    }

    /// Returns the regular expressions of all entries.
    pub fn regexes(&self) -> impl Iterator<Item = &Regex> {
        self.all.iter().flatten().flat_map(|route| route.key.regexes())
    }

    /// Returns the entry that fits a request best.
    ///
    /// # Errors
    /// The steps or the budget of the evaluation are exhausted.
    pub fn find(
        &self,
        request: &RouteRequest<'_>,
        alive: Alive<'_>,
        steps: &Steps,
    ) -> Result<Option<PatternIndex>, Exhausted> {
        let host = NormalHost::new(request.host);
        let name = host.text();
        let whole = self.nodes.child(WHOLE, name);
        // The longest suffix first.
        let dots = memchr::memchr_iter(b'.', name).filter(|dot| *dot > 0);
        let below = dots.filter_map(|dot| self.nodes.child(BELOW, &name[dot..]));
        for host in whole.into_iter().chain(below).chain(self.nodes.child(ANY, b"")) {
            if let Some(found) = self.find_in(host, request, alive, steps)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn find_in(
        &self,
        host: NodeIndex,
        request: &RouteRequest<'_>,
        alive: Alive<'_>,
        steps: &Steps,
    ) -> Result<Option<PatternIndex>, Exhausted> {
        let (mut deepest, mut is_whole) = (host, false);
        if let Some(elements) = elements(request.path) {
            is_whole = true;
            for element in elements {
                let Some(next) = self.nodes.child(deepest, element) else {
                    is_whole = false;
                    break;
                };
                deepest = next;
            }
        }
        let first = |entries: &[PatternIndex]| -> Result<Option<PatternIndex>, Exhausted> {
            for at in entries.iter().filter(|at| alive(**at)) {
                let Some(route) = self.all.get(*at as usize).and_then(Option::as_ref) else { continue };
                if route.key.fits(request, steps)? {
                    return Ok(Some(*at));
                }
            }
            Ok(None)
        };
        if is_whole
            && let Some(node) = self.nodes.get(deepest)
            && let Some(found) = first(&node.exact)?
        {
            return Ok(Some(found));
        }
        if let Some(node) = self.nodes.get(host)
            && let Some(found) = first(&node.regexes)?
        {
            return Ok(Some(found));
        }
        let mut next = Some(deepest);
        while let Some(at) = next {
            if let Some(node) = self.nodes.get(at)
                && let Some(found) = first(&node.prefixes)?
            {
                return Ok(Some(found));
            }
            next = self.nodes.above(at);
        }
        Ok(None)
    }
}
