//! Name servers, and what is asked of them (configuration manual, section 5.3).

use super::{AddressSpec, ServerTlsSpec};
use crate::span::{Span, Spanned};
use std::net::IpAddr;

/// A `resolvers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolversSpec {
    /// Where it starts.
    pub span: Span,
    /// Its name.
    pub name: Spanned<String>,
    /// `nameserver` and `parse-resolv-conf` lines, in order.
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

/// Where questions go.
#[derive(Debug, Clone, PartialEq)]
pub enum NameserverSpec {
    /// `nameserver <name> <address>`.
    Named {
        /// Its name.
        name: Spanned<String>,
        /// Its address; a datagram one unless a prefix says otherwise.
        address: Spanned<AddressSpec>,
        /// `ssl`, of one that is asked over TCP.
        tls: Option<Box<ServerTlsSpec>>,
    },
    /// `parse-resolv-conf`: those of the system.
    OfSystem(Span),
}

/// `hold <status> <period>`, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldSpec {
    /// How long an answer is good for `do-resolve`; default 10 s.
    pub valid: u64,
    /// How long what is not named any more stays; default 0.
    pub obsolete: u64,
    /// How long an earlier answer outweighs "no such name"; default 30 s.
    pub nx: u64,
    /// The same for "refused".
    pub refused: u64,
    /// The same for no answer.
    pub timeout: u64,
    /// The same for any other failure.
    pub other: u64,
}

impl Default for HoldSpec {
    fn default() -> Self {
        Self { valid: 10_000, obsolete: 0, nx: 30_000, refused: 30_000, timeout: 30_000, other: 30_000 }
    }
}

/// What a `server` line says about the resolution of its name while it serves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResolvingSpec {
    /// `resolvers`: the section.
    pub section: Option<Spanned<String>>,
    /// `resolve-prefer ipv4`; IPv6 is preferred otherwise.
    pub prefers_ipv4: bool,
    /// `resolve-net`: networks that are preferred, as addresses with the lengths of their prefixes.
    pub networks: Vec<(IpAddr, u8)>,
    /// `resolve-opts allow-dup-ip`.
    pub allows_duplicates: bool,
    /// `resolve-opts ignore-weight`.
    pub ignores_weight: bool,
}

/// `dns-accept-family`: the families that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DnsFamilies {
    /// IPv4, and IPv6 where the machine has a route for it.
    #[default]
    Auto,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Both.
    Both,
}
