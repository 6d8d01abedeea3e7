//! `hash-type consistent`: every server has sixteen positions on a ring of 2^32 per unit of its weight, and a hash
//! belongs to the nearest one. Adding, removing or reweighting a server moves no other server's positions. The
//! positions are HAProxy's, so that both select the same server.

use super::bound::LoadBounds;
use super::{Candidate, Change, Load, Loads, Pick};
use base::hash::avalanche;
use config::spec::{HashAffinity, HashSpec};

/// Positions per unit of weight.
const PLACES: u32 = 16;

/// A position, the server and the sequence number of the position within the server, ordered by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node(u64);

/// Bits of the sequence number: 256 units of weight, 16 positions each.
const NUMBER_BITS: u32 = 12;

impl Node {
    fn new(base: u32, server: usize, number: u32) -> Self {
        let place = avalanche(base.wrapping_add(number));
        Self(u64::from(place) << 32 | (server as u64) << NUMBER_BITS | u64::from(number))
    }

    fn place(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn server(self) -> usize {
        (self.0 as u32 >> NUMBER_BITS) as usize
    }

    fn number(self) -> u32 {
        self.0 as u32 & ((1 << NUMBER_BITS) - 1)
    }
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    /// The next position's index, for requests without a hash.
    cursor: usize,
    affinity: HashAffinity,
    tables: Box<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    nodes: Vec<Node>,
    /// By server: its number of positions.
    counts: Vec<u32>,
    /// Number of available servers.
    candidates: u32,
    /// Number of servers with a free slot.
    open: u32,
    /// By server: whether requests skip it by the affinity setting; and the number of such servers.
    closed: Vec<bool>,
    closed_count: u32,
    bound: Option<LoadBounds>,
}

impl Ring {
    pub(super) fn new(hash: &HashSpec) -> Self {
        let bound = hash.balance_factor.map(LoadBounds::new);
        Self { cursor: 0, affinity: hash.affinity, tables: Box::new(Tables { bound, ..Tables::default() }) }
    }

    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        let tables = &mut *self.tables;
        let mut counts = vec![0; count];
        for candidate in candidates {
            counts[candidate.server] = (candidate.weight * PLACES / candidate.scale).min(256 * PLACES);
        }
        tables.nodes.retain(|node| counts.get(node.server()).is_some_and(|count| node.number() < *count));
        tables.counts.resize(count, 0);
        let grown = candidates.iter().flat_map(|candidate| {
            let numbers = tables.counts[candidate.server]..counts[candidate.server];
            numbers.map(|number| Node::new(candidate.place, candidate.server, number))
        });
        tables.nodes.extend(grown);
        // The retained positions are one sorted run, which this sort exploits.
        tables.nodes.sort();
        tables.counts = counts;
        tables.candidates = candidates.len() as u32;
        (tables.open, tables.closed_count) = (0, 0);
        tables.closed = vec![false; count];
        if let Some(bound) = &mut tables.bound {
            bound.rebuild(candidates, count);
        }
    }

    pub(super) fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        let Some(hash) = pick.hash else { return self.next_open(pick.avoid, loads) };
        let tables = &*self.tables;
        let start = tables.nearest(hash)?;
        let first = tables.nodes[start].server();
        if tables.bound.is_none() && pick.avoid.is_none() && !tables.closed[first] {
            return Some(first);
        }
        if tables.closed_count == tables.candidates {
            return Some(self.when_all_are_closed(start));
        }
        let admits = |server: usize| {
            let is_below = tables.bound.as_ref().is_none_or(|bound| bound.admits(server, pick.requests, loads));
            is_below && !tables.closed[server] && pick.avoid != Some(server)
        };
        let onwards = tables.nodes[start..].iter().chain(&tables.nodes[..start]).map(|node| node.server());
        Some(onwards.into_iter().find(|server| admits(*server)).unwrap_or(first))
    }

    /// Selects the server whose queue is used if all are full: with `maxconn` affinity the last one around the ring,
    /// otherwise the first one.
    fn when_all_are_closed(&self, start: usize) -> usize {
        let nodes = &self.tables.nodes;
        match self.affinity {
            HashAffinity::Maxconn => nodes[(start + nodes.len() - 1) % nodes.len()].server(),
            HashAffinity::Always | HashAffinity::Maxqueue => nodes[start].server(),
        }
    }

    /// Visits the positions around the ring, one by one.
    fn next_open(&mut self, avoid: Option<usize>, loads: &Loads) -> Option<usize> {
        let nodes = &self.tables.nodes;
        if self.tables.open == 0 || nodes.is_empty() {
            return None;
        }
        let mut found = None;
        for step in 0..nodes.len() {
            let index = (self.cursor + step) % nodes.len();
            let server = nodes[index].server();
            if loads[server].has_slot() {
                found = Some((server, index));
                if avoid != Some(server) {
                    break;
                }
            }
        }
        let (server, index) = found?;
        self.cursor = (index + 1) % nodes.len();
        Some(server)
    }

    pub(super) fn on_load(&mut self, server: usize, change: Change) {
        let tables = &mut *self.tables;
        if change.turned {
            tables.open = if change.load.has_slot() { tables.open + 1 } else { tables.open - 1 };
        }
        if self.affinity != HashAffinity::Always {
            let closed = is_closed(self.affinity, change.load);
            if std::mem::replace(&mut tables.closed[server], closed) != closed {
                tables.closed_count = if closed { tables.closed_count + 1 } else { tables.closed_count - 1 };
            }
        }
    }
}

/// `hash-preserve-affinity`: whether a server is so full that its requests go to another one.
fn is_closed(affinity: HashAffinity, load: Load) -> bool {
    match affinity {
        HashAffinity::Always => false,
        HashAffinity::Maxconn => !load.has_slot(),
        HashAffinity::Maxqueue => !load.has_slot() && !load.has_queue_room(),
    }
}

impl Tables {
    /// Returns the index of the position nearest to a hash; if two are equally near, the following one.
    fn nearest(&self, hash: u32) -> Option<usize> {
        let count = self.nodes.len();
        let behind = self.nodes.partition_point(|node| node.place() < hash).checked_rem(count)?;
        let before = (behind + count - 1) % count;
        let to_next = self.nodes[behind].place().wrapping_sub(hash);
        let to_previous = hash.wrapping_sub(self.nodes[before].place());
        Some(if to_next <= to_previous { behind } else { before })
    }
}

#[cfg(test)]
mod tests;
