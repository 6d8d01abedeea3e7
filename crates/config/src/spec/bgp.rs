//! Weir's own: a BGP speaker as written. Must never connect to a router.

use super::RuleLineSpec;
use crate::span::{Span, Spanned};
use std::net::{IpAddr, Ipv4Addr};

/// A `bgp` section.
#[derive(Debug, Clone, PartialEq)]
pub struct BgpSpec {
    pub span: Span,
    pub name: String,
    /// `local-as`.
    pub local_as: Option<Spanned<u32>>,
    /// `router-id`.
    pub router_id: Option<Ipv4Addr>,
    /// `neighbor`, in file order.
    pub neighbors: Vec<BgpNeighborSpec>,
    /// `acl`, in file order.
    pub acls: Vec<RuleLineSpec>,
    /// `announce`, in file order.
    pub announcements: Vec<BgpAnnounceSpec>,
}

/// `neighbor`: a router.
#[derive(Debug, Clone, PartialEq)]
pub struct BgpNeighborSpec {
    pub name: Spanned<String>,
    pub address: IpAddr,
    /// `as`.
    pub number: u32,
    /// `port`; default 179.
    pub port: u16,
    /// `source`.
    pub source: Option<IpAddr>,
    /// `hold-time`, seconds; default 9.
    pub hold_time: u16,
    /// `password-file`.
    pub password_file: Option<Spanned<String>>,
    /// `multihop`: the TTL of packets. `None`: 1 for a router of another AS.
    pub multihop: Option<u8>,
}

/// `announce`: a prefix, and the condition on which it is announced.
#[derive(Debug, Clone, PartialEq)]
pub struct BgpAnnounceSpec {
    pub prefix: Spanned<BgpPrefixSpec>,
    pub next_hop: Option<Spanned<IpAddr>>,
    pub med: Option<u32>,
    pub local_preference: Option<Spanned<u32>>,
    /// `community`, as numbers.
    pub communities: Vec<u32>,
    /// The condition, from `if` or `unless` on; empty if there is none.
    pub condition: RuleLineSpec,
}

/// A prefix: an address and its number of leading bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BgpPrefixSpec {
    pub address: IpAddr,
    pub length: u8,
}
