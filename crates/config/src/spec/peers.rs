//! Instances that share stick tables, as written (configuration manual, section 11.2). Must never resolve one.

use super::{AddressSpec, BindSpec, ConnectingSpec, LogSpec, ServerTlsSpec, TableSpec};
use crate::span::{Span, Spanned};

/// A `peers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct PeersSpec {
    pub span: Span,
    pub name: Spanned<String>,
    /// `disabled`, unless `enabled` follows it.
    pub disabled: bool,
    /// `shards`; 0 if not written.
    pub shards: u32,
    /// This instance's name at the time when the section was read.
    pub local_name: String,
    /// The line that names this instance, if any.
    pub local: Option<Span>,
    /// Listening address of this instance: its `peer` line, or `bind`.
    pub bind: Option<BindSpec>,
    /// `ssl` of the line that names this instance: used by an older process of it to connect to the newer one.
    pub local_tls: Option<Box<ServerTlsSpec>>,
    /// The other instances, as `peer` and `server` lines name them.
    pub peers: Vec<PeerSpec>,
    /// `table` lines.
    pub tables: Vec<PeerTableSpec>,
    /// `log global`.
    pub logs_globally: bool,
    /// `log` lines; `log global` adds the global ones.
    pub logs: Vec<LogSpec>,
}

/// Another instance.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerSpec {
    pub span: Span,
    pub name: Spanned<String>,
    pub address: Spanned<AddressSpec>,
    /// `shard`: the share of the keys that it receives; 0: all of them.
    pub shard: u32,
    /// Settings of connections to it.
    pub connecting: ConnectingSpec,
    /// `ssl`.
    pub tls: Option<Box<ServerTlsSpec>>,
}

/// A table of a `peers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerTableSpec {
    /// Name in the section: elsewhere it is prefixed with the section's name and a slash.
    pub name: Spanned<String>,
    pub table: TableSpec,
}
