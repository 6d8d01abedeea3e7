//! Name servers and resolution of names (configuration manual, section 5.3).

use super::{AddressSpec, ServerTlsSpec};
use crate::span::{Span, Spanned};
use std::net::IpAddr;

/// A `resolvers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolversSpec {
    pub span: Span,
    pub name: Spanned<String>,
    /// `nameserver` and `parse-resolv-conf` lines, in file order.
    pub nameservers: Vec<NameserverSpec>,
    /// `accepted_payload_size`, bytes; default 512.
    pub payload: u16,
    /// `resolve_retries`; default 3.
    pub retries: u32,
    /// `timeout resolve`, milliseconds; default 1000.
    pub timeout_resolve: u64,
    /// `timeout retry`, milliseconds; default 1000.
    pub timeout_retry: u64,
    /// `hold`.
    pub hold: HoldSpec,
}

/// A name server.
#[derive(Debug, Clone, PartialEq)]
pub enum NameserverSpec {
    /// `nameserver <name> <address>`.
    Named {
        name: Spanned<String>,
        /// Address; datagrams by default, unless a prefix selects streams.
        address: Spanned<AddressSpec>,
        /// `ssl`, for a server that is queried over TCP.
        tls: Option<Box<ServerTlsSpec>>,
    },
    /// `parse-resolv-conf`: the system's name servers.
    OfSystem(Span),
}

/// `hold <status> <period>`, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldSpec {
    /// Time for which `do-resolve` reuses a response; default 10 s.
    pub valid: u64,
    /// Time for which an address missing from responses is kept; default 0.
    pub obsolete: u64,
    /// Time for which the last valid response is kept after "no such name"; default 30 s.
    pub nx: u64,
    /// Like `nx`, after "refused".
    pub refused: u64,
    /// Like `nx`, after a timeout.
    pub timeout: u64,
    /// Like `nx`, after any other error.
    pub other: u64,
}

impl Default for HoldSpec {
    fn default() -> Self {
        Self { valid: 10_000, obsolete: 0, nx: 30_000, refused: 30_000, timeout: 30_000, other: 30_000 }
    }
}

/// Settings of a `server` line for the resolution of its name at run time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResolvingSpec {
    /// `resolvers`: the section.
    pub section: Option<Spanned<String>>,
    /// `resolve-prefer ipv4`; IPv6 is preferred otherwise.
    pub prefers_ipv4: bool,
    /// `resolve-net`: preferred networks, as addresses with prefix lengths.
    pub networks: Vec<(IpAddr, u8)>,
    /// `resolve-opts allow-dup-ip`.
    pub allows_duplicates: bool,
    /// `resolve-opts ignore-weight`.
    pub ignores_weight: bool,
    /// `srv-port`, Weir's own: replaces the port of SRV records.
    pub srv_port: Option<Spanned<u16>>,
}

/// `dns-accept-family`: address families that are queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DnsFamilies {
    /// IPv4, and IPv6 if the machine has a route for it.
    #[default]
    Auto,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Both.
    Both,
}
