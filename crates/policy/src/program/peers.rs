//! Instances that share stick tables, ready to meet (configuration manual, section 11.2). Must never hold a connection or
//! an entry.

use super::{Bind, Connecting, LinkTls, LogTarget, ServerAddress};

/// A `peers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct Peers {
    /// Its place in [`super::Program::peers`].
    pub index: usize,
    /// Its name.
    pub name: Box<str>,
    /// `disabled`: it neither listens nor connects.
    pub disabled: bool,
    /// The name of this instance in it; `None`: it is not in it, and the section does nothing.
    pub local: Option<Box<str>>,
    /// Where the others connect to. `None`: they cannot.
    pub bind: Option<Bind>,
    /// Where an older process of this instance finds the newer one, to teach it. `None`: it cannot.
    pub own_address: Option<ServerAddress>,
    /// How it is secured on the way there.
    pub own_tls: Option<LinkTls>,
    /// The others, as written.
    pub remotes: Vec<Peer>,
    /// How many of them are written before this instance.
    pub local_at: usize,
    /// Parts that keys are spread over; 0: they are not.
    pub shards: u32,
    /// The tables that it shares: its own in their order, then those of proxies.
    pub tables: Vec<SharedTable>,
    /// Updates that are told in a row (`tune.peers.max-updates-at-once`).
    pub max_updates: usize,
    /// Where lines about its connections go.
    pub logs: Vec<LogTarget>,
}

impl Peers {
    /// Whether it listens and connects at all.
    pub fn is_active(&self) -> bool {
        !self.disabled && self.local.is_some()
    }
}

/// Another instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Its name, by which it is asked for.
    pub name: Box<str>,
    /// Where it listens.
    pub address: ServerAddress,
    /// The part of the keys that it gets, from 1; 0: all of them.
    pub shard: u32,
    /// How connections to it are made.
    pub connecting: Connecting,
    /// `ssl`.
    pub tls: Option<LinkTls>,
}

/// A table that is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedTable {
    /// Its place in [`super::Program::tables`].
    pub table: usize,
    /// What peers call it: a proxy's table by the proxy's name, one of the section by its own behind a slash.
    pub name: Box<str>,
}
