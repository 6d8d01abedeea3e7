//! Instances that share stick tables, as they are written (configuration manual, section 11.2). Must never look one up.

use super::{AddressSpec, BindSpec, ConnectingSpec, LogSpec, ServerTlsSpec, TableSpec};
use crate::span::{Span, Spanned};

/// A `peers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct PeersSpec {
    /// Where it starts.
    pub span: Span,
    /// Its name.
    pub name: Spanned<String>,
    /// `disabled`, unless `enabled` came behind it.
    pub disabled: bool,
    /// `shards`; 0 where none was written.
    pub shards: u32,
    /// This instance's name, as it was known when the section was read.
    pub local_name: String,
    /// The line that names this instance; `None`: no line does.
    pub local: Option<Span>,
    /// Where this instance listens: its `peer` line, or `bind`.
    pub bind: Option<BindSpec>,
    /// `ssl` of the line that names this instance: how an older process of it finds the newer one.
    pub local_tls: Option<Box<ServerTlsSpec>>,
    /// The other instances, as `peer` and `server` lines name them.
    pub peers: Vec<PeerSpec>,
    /// `table` lines.
    pub tables: Vec<PeerTableSpec>,
    /// `log global`.
    pub logs_globally: bool,
    /// `log` lines; `log global` brings the global ones in.
    pub logs: Vec<LogSpec>,
}

/// Another instance.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerSpec {
    /// Where it is written.
    pub span: Span,
    /// Its name.
    pub name: Spanned<String>,
    /// Where it listens.
    pub address: Spanned<AddressSpec>,
    /// `shard`: the part of the keys that it gets; 0: all of them.
    pub shard: u32,
    /// How connections to it are made.
    pub connecting: ConnectingSpec,
    /// `ssl`.
    pub tls: Option<Box<ServerTlsSpec>>,
}

/// A table of a `peers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerTableSpec {
    /// Its name in the section: elsewhere the section's name and a slash stand in front of it.
    pub name: Spanned<String>,
    /// What it holds.
    pub table: TableSpec,
}
