//! Name servers, and run-time name resolution of servers (configuration manual, section 5.3). Must never hold a
//! response.

use super::LinkTls;
use config::spec::DnsFamilies;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::dns::{Kind, Name};

#[derive(Debug, Clone, PartialEq)]
pub struct Resolvers {
    pub name: Box<str>,
    /// All are queried at once; the first valid response is used.
    pub nameservers: Vec<Nameserver>,
    /// Advertised maximum UDP payload in bytes.
    pub payload: u16,
    /// Number of queries before a resolution fails.
    pub retries: u32,
    /// Interval between two resolutions of a name.
    pub interval: Duration,
    /// Interval between two queries without a valid response.
    pub retry: Duration,
    /// How long results remain valid after other responses.
    pub hold: Hold,
    /// Address families that may be queried.
    pub families: DnsFamilies,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Nameserver {
    pub name: Box<str>,
    pub address: SocketAddr,
    /// Query over TCP from the start, not only after a truncated response.
    pub over_tcp: bool,
    /// `ssl`: TLS parameters of connections.
    pub tls: Option<LinkTls>,
}

/// `hold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    pub valid: Duration,
    pub obsolete: Duration,
    pub nx: Duration,
    pub refused: Duration,
    pub timeout: Duration,
    pub other: Duration,
}

/// Run-time resolution of a server's name.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolving {
    /// Index in [`super::Program::resolvers`].
    pub section: usize,
    /// The name to resolve; `None` if its address is an IP address.
    pub name: Option<Name>,
    /// The selection among several addresses.
    pub choice: AddressChoice,
    /// Weights of SRV records are ignored.
    pub ignores_weight: bool,
    /// `srv-port`: replaces the port of SRV records.
    pub srv_port: Option<u16>,
}

/// The selection among several addresses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AddressChoice {
    /// Prefer IPv4 to IPv6.
    pub prefers_ipv4: bool,
    /// Preferred networks: address and prefix length.
    pub networks: Box<[(IpAddr, u8)]>,
    /// Several servers of the backend may use the same address.
    pub allows_duplicates: bool,
}

impl AddressChoice {
    /// Returns the record types to query: the preferred one, and the other one if permitted. `routes_ipv6` determines
    /// the result of `auto`.
    pub fn kinds(&self, families: DnsFamilies, routes_ipv6: bool) -> (Kind, Option<Kind>) {
        match families {
            DnsFamilies::Ipv4 => (Kind::A, None),
            DnsFamilies::Ipv6 => (Kind::Aaaa, None),
            DnsFamilies::Auto if !routes_ipv6 => (Kind::A, None),
            DnsFamilies::Auto | DnsFamilies::Both if self.prefers_ipv4 => (Kind::A, Some(Kind::Aaaa)),
            DnsFamilies::Auto | DnsFamilies::Both => (Kind::Aaaa, Some(Kind::A)),
        }
    }
}
