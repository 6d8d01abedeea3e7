//! The parameters of sessions and the routes that they announce. Must never change while the process runs.

use std::net::{IpAddr, Ipv4Addr};

use wire::bgp::Prefix;

/// The parameters of a session with one router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlan {
    pub local_as: u32,
    pub router_id: Ipv4Addr,
    /// AS number of the router.
    pub peer_as: u32,
    /// Proposed hold time in seconds, at least 3.
    pub hold_time: u16,
}

impl SessionPlan {
    /// Whether the router is in the same AS.
    pub fn is_internal(&self) -> bool {
        self.local_as == self.peer_as
    }
}

/// A prefix, and the forms in which it can be announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePlan {
    pub prefix: Prefix,
    /// In the order of preference.
    pub announcements: Box<[Announcement]>,
}

/// The attributes of an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// `None`: the address from which the session is established.
    pub next_hop: Option<IpAddr>,
    pub med: Option<u32>,
    /// Sent to routers of the same AS.
    pub local_preference: Option<u32>,
    pub communities: Box<[u32]>,
}
