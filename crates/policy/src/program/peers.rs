//! Compiled `peers` sections (configuration manual, section 11.2). Must never hold a connection or an entry.

use super::{Bind, Connecting, LinkTls, LogTarget, ServerAddress};

#[derive(Debug, Clone, PartialEq)]
pub struct Peers {
    /// Index in [`super::Program::peers`].
    pub index: usize,
    pub name: Box<str>,
    /// `disabled`: it neither listens nor connects.
    pub disabled: bool,
    /// The name of this instance in the section; `None` if it is not a member, so that the section has no effect.
    pub local: Option<Box<str>>,
    /// Listening address for other peers. `None` if they cannot connect.
    pub bind: Option<Bind>,
    /// Address at which an older process of this instance connects to the newer one, to send it the entries. `None` if
    /// it cannot.
    pub own_address: Option<ServerAddress>,
    /// TLS parameters of that connection.
    pub own_tls: Option<LinkTls>,
    /// The other peers, in order.
    pub remotes: Vec<Peer>,
    /// Number of peers before this instance.
    pub local_at: usize,
    /// Number of shards that keys are distributed over; 0 for none.
    pub shards: u32,
    /// The synchronized tables: its own in order, then those of proxies.
    pub tables: Vec<SharedTable>,
    /// Maximum number of updates sent in a row (`tune.peers.max-updates-at-once`).
    pub max_updates: usize,
    /// Log targets for messages about its connections.
    pub logs: Vec<LogTarget>,
}

impl Peers {
    /// Whether the section listens and connects.
    pub fn is_active(&self) -> bool {
        !self.disabled && self.local.is_some()
    }
}

/// Another peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Peer name, used in the handshake.
    pub name: Box<str>,
    pub address: ServerAddress,
    /// Shard of the keys that the peer receives, from 1; 0 for all keys.
    pub shard: u32,
    /// Parameters of connections to the peer.
    pub connecting: Connecting,
    /// `ssl`.
    pub tls: Option<LinkTls>,
}

/// A synchronized table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedTable {
    /// Index in [`super::Program::tables`].
    pub table: usize,
    /// Name used between peers: that of the proxy, or for a table of the section its own name after a slash.
    pub name: Box<str>,
}
