//! Weir's own: compiled `bgp` sections. Must never hold a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use expression::condition::Condition;
use expression::sample::Context;
use live::bgp::{RoutePlan, SessionPlan};

/// A BGP speaker.
#[derive(Debug, Clone, PartialEq)]
pub struct BgpSpeaker {
    pub name: Box<str>,
    pub neighbors: Vec<BgpNeighbor>,
    pub routes: Arc<[RoutePlan]>,
    /// The conditions of the announcements of each route.
    pub conditions: Vec<Vec<BgpCondition>>,
}

/// The condition of an announcement.
#[derive(Debug, Clone, PartialEq)]
pub struct BgpCondition {
    /// `None`: it always holds.
    pub condition: Option<Condition>,
    /// The condition as written.
    pub text: Box<str>,
}

impl BgpCondition {
    /// Whether it holds.
    pub fn holds(&self, context: &Context<'_>) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition.holds(context))
    }
}

/// A router.
#[derive(Debug, Clone, PartialEq)]
pub struct BgpNeighbor {
    pub name: Box<str>,
    pub address: SocketAddr,
    /// The address that connections come from.
    pub source: Option<IpAddr>,
    /// Number of hops that packets may take; `None`: the kernel's default.
    pub hop_limit: Option<u8>,
    /// Password for the MD5 signatures of TCP (RFC 2385).
    pub password: Option<Box<str>>,
    pub session: SessionPlan,
}
