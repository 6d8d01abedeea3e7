//! Name servers, and servers whose names are followed while they serve (configuration manual, section 5.3). Must never
//! hold an answer.

use super::LinkTls;
use config::spec::DnsFamilies;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::dns::{Kind, Name};

/// A `resolvers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolvers {
    /// Its name.
    pub name: Box<str>,
    /// All are asked at once; the first good answer counts.
    pub nameservers: Vec<Nameserver>,
    /// Bytes of an answer over UDP at most, as is announced.
    pub payload: u16,
    /// Rounds of questions before a resolution has failed.
    pub retries: u32,
    /// Between two resolutions of a name.
    pub interval: Duration,
    /// Between two questions while no good answer has come.
    pub retry: Duration,
    /// How long what is known outlives what has come.
    pub hold: Hold,
    /// What may be asked for.
    pub families: DnsFamilies,
}

/// A name server.
#[derive(Debug, Clone, PartialEq)]
pub struct Nameserver {
    /// Its name.
    pub name: Box<str>,
    /// Its address.
    pub address: SocketAddr,
    /// It is asked over TCP from the start, not only where an answer did not fit.
    pub over_tcp: bool,
    /// `ssl`: how connections to it are secured.
    pub tls: Option<LinkTls>,
}

/// `hold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Hold {
    pub valid: Duration,
    pub obsolete: Duration,
    pub nx: Duration,
    pub refused: Duration,
    pub timeout: Duration,
    pub other: Duration,
}

/// How a server's name is followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolving {
    /// The section that is asked, by its place in [`super::Program::resolvers`].
    pub section: usize,
    /// What is asked for at first; `None`: its address was written.
    pub name: Option<Name>,
    /// Which address it takes of several.
    pub choice: AddressChoice,
    /// Weights of services count for nothing.
    pub ignores_weight: bool,
}

/// Which address of several a server takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AddressChoice {
    /// IPv4 before IPv6.
    pub prefers_ipv4: bool,
    /// These networks before all others: an address and the length of its prefix.
    pub networks: Box<[(IpAddr, u8)]>,
    /// An address may be another server's of the backend.
    pub allows_duplicates: bool,
}

impl AddressChoice {
    /// The kinds of addresses to ask for: the preferred one, then the other one where it is accepted. `routes_ipv6`:
    /// what `auto` depends on.
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
