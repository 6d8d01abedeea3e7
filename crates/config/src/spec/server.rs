//! A `server` line (configuration manual, section 5.2), with `default-server` already merged.

use super::{
    AddressSpec, ConnectingSpec, LogProtocol, ServerBalanceSpec, ServerCheckSpec, ServerLimitsSpec,
    ServerPersistenceSpec, ServerTlsSpec, Shared,
};
use crate::span::{Span, Spanned};

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    pub span: Span,
    pub name: Spanned<String>,
    pub address: Spanned<AddressSpec>,
    /// `weight`, 0 to 256; default 1.
    pub weight: u32,
    /// `maxconn`; `None` means no limit.
    pub maxconn: Option<u32>,
    /// `maxqueue`; `None` means no limit.
    pub maxqueue: Option<u32>,
    /// Other settings for load balancing: `hash-key`, `guid`, `slowstart`.
    pub balance: Shared<ServerBalanceSpec>,
    /// Its other limits.
    pub limits: Shared<ServerLimitsSpec>,
    /// `id`, or its position counted from 1.
    pub id: u32,
    /// `id` was written.
    pub id_is_written: bool,
    /// `disabled`.
    pub disabled: bool,
    /// `backup`.
    pub backup: bool,
    /// `pool-max-conn`: maximum number of idle connections; `None` means no limit.
    pub pool_max_conn: Option<u32>,
    /// `pool-purge-delay` in milliseconds; default 5000.
    pub pool_purge_delay: u32,
    /// How connections to it are made.
    pub connecting: Shared<ConnectingSpec>,
    /// Settings of a log server.
    pub log: ServerLogSpec,
    /// How its health is checked.
    pub check: Shared<ServerCheckSpec>,
    /// `cookie` and `non-stick`.
    pub persistence: Shared<ServerPersistenceSpec>,
    /// TLS settings; `None`: the line has none.
    pub tls: Option<Box<ServerTlsSpec>>,
}

/// Settings of a log server (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerLogSpec {
    /// `log-proto`.
    pub protocol: LogProtocol,
    /// `log-bufsize`: size of the ring of a server over TCP in bytes; `None`: `tune.bufsize`.
    pub bufsize: Option<u32>,
}
