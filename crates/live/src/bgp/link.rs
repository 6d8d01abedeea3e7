//! The connection of a session: its timers, what was negotiated, and the routes that the router has. Must never outlive the
//! connection.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use base::moment::Moment;
use wire::bgp::{self, Capabilities, ErrorCode, Family, Open, PathAttributes};

use super::{Announcement, RoutePlan, Routes, SessionPlan};

/// Hold time until the router has sent its OPEN message.
const OPENING: Duration = Duration::from_secs(30);

/// A connection to a router.
#[derive(Debug)]
pub(super) struct Link {
    /// The own address of the connection.
    local: Option<IpAddr>,
    /// The router's capabilities.
    capabilities: Capabilities,
    pub(super) router_id: Option<Ipv4Addr>,
    /// Negotiated hold time; zero: there is none.
    pub(super) hold_time: Duration,
    /// The session ends unless the router has sent something by then.
    pub(super) hold_until: Option<Moment>,
    /// The next KEEPALIVE message.
    pub(super) keepalive_at: Option<Moment>,
    pub(super) owes_open: bool,
    pub(super) owes_keepalive: bool,
    sent: Box<[SentRoute]>,
}

/// The state of a route at the router.
#[derive(Debug, Clone, Copy, Default)]
struct SentRoute {
    announcement: Option<usize>,
    /// The router has requested it again.
    is_stale: bool,
}

impl Link {
    pub(super) fn new(local: Option<IpAddr>, routes: usize, now: Moment) -> Self {
        Self {
            local,
            capabilities: Capabilities::default(),
            router_id: None,
            hold_time: Duration::ZERO,
            hold_until: Some(now.saturating_add(OPENING)),
            keepalive_at: None,
            owes_open: true,
            owes_keepalive: false,
            sent: vec![SentRoute::default(); routes].into(),
        }
    }

    /// Checks the router's OPEN message, and takes over what it negotiates. `is_plain`: this speaker has sent no capabilities, so
    /// that none is in use.
    pub(super) fn open(
        &mut self,
        open: &Open,
        plan: &SessionPlan,
        is_plain: bool,
        now: Moment,
    ) -> Result<(), ErrorCode> {
        if open.number != plan.peer_as {
            return Err(ErrorCode::BAD_PEER_AS);
        }
        if plan.is_internal() && open.router_id == plan.router_id {
            return Err(ErrorCode::BAD_IDENTIFIER);
        }
        if matches!(open.hold_time, 1 | 2) {
            return Err(ErrorCode::UNACCEPTABLE_HOLD_TIME);
        }
        self.capabilities = open.capabilities.filter(|_| !is_plain).unwrap_or_default();
        self.router_id = Some(open.router_id);
        self.hold_time = Duration::from_secs(open.hold_time.min(plan.hold_time).into());
        self.owes_keepalive = true;
        self.heard(now);
        Ok(())
    }

    /// Restarts the hold timer.
    pub(super) fn heard(&mut self, now: Moment) {
        self.hold_until = (!self.hold_time.is_zero()).then(|| now.saturating_add(self.hold_time));
    }

    /// Whether a KEEPALIVE message has to be sent.
    pub(super) fn takes_keepalive(&mut self, now: Moment, random: u64) -> bool {
        if !self.owes_keepalive && self.keepalive_at.is_none_or(|at| at > now) {
            return false;
        }
        self.owes_keepalive = false;
        // RFC 4271, section 10: a third of the hold time, with jitter.
        let interval = super::backoff::jittered(self.hold_time / 3, random);
        self.keepalive_at = (!self.hold_time.is_zero()).then(|| now.saturating_add(interval));
        true
    }

    /// Marks the routes of a family to be sent again.
    pub(super) fn refresh(&mut self, family: Family, plans: &[RoutePlan]) {
        let routes = self.sent.iter_mut().zip(plans).filter(|(_, plan)| plan.prefix.family() == family);
        routes.for_each(|(sent, _)| sent.is_stale = true);
    }

    /// Returns the number of routes that the router has.
    pub(super) fn announced(&self) -> usize {
        self.sent.iter().filter(|sent| sent.announcement.is_some()).count()
    }

    /// Adds one message about each route that differs from `routes`, until `out` has `most` octets; without `routes` all are
    /// withdrawn. Returns the number of messages, and whether more have to follow.
    pub(super) fn send_routes(&mut self, to: &RouteOutput<'_>, out: &mut Vec<u8>, most: usize) -> RouteMessages {
        let mut messages = 0;
        for (number, (sent, plan)) in self.sent.iter_mut().zip(to.plans).enumerate() {
            let wanted = to.routes.and_then(|routes| routes.current(number));
            let announcement = wanted.and_then(|wanted| plan.announcements.get(wanted));
            let family = plan.prefix.family();
            let next_hop = announcement.and_then(|announcement| next_hop(announcement, family, self.local));
            let wanted = wanted.filter(|_| next_hop.is_some() && self.capabilities.exchanges(family));
            let is_same = wanted == sent.announcement && !(sent.is_stale && wanted.is_some());
            if is_same {
                sent.is_stale = false;
                continue;
            }
            if out.len() >= most {
                return RouteMessages { number: messages, has_more: true };
            }
            match (announcement.filter(|_| wanted.is_some()), next_hop) {
                (Some(announcement), Some(next_hop)) => {
                    let attributes = attributes(announcement, next_hop, to.session, &self.capabilities);
                    bgp::announce(out, &plan.prefix, &attributes);
                }
                _ => bgp::withdraw(out, &plan.prefix),
            }
            *sent = SentRoute { announcement: wanted, is_stale: false };
            messages += 1;
        }
        RouteMessages { number: messages, has_more: false }
    }
}

/// The routes that are sent.
pub(super) struct RouteOutput<'a> {
    pub(super) session: &'a SessionPlan,
    pub(super) plans: &'a [RoutePlan],
    /// `None`: all are withdrawn.
    pub(super) routes: Option<&'a Routes>,
}

/// The result of sending routes.
pub(super) struct RouteMessages {
    pub(super) number: u64,
    pub(super) has_more: bool,
}

/// Returns the next hop of an announcement, if there is one of its family.
fn next_hop(announcement: &Announcement, family: Family, local: Option<IpAddr>) -> Option<IpAddr> {
    announcement.next_hop.or(local).filter(|address| Family::of_address(*address) == family)
}

fn attributes<'a>(
    announcement: &'a Announcement,
    next_hop: IpAddr,
    plan: &SessionPlan,
    capabilities: &Capabilities,
) -> PathAttributes<'a> {
    /// Default of `local-preference`.
    const PREFERENCE: u32 = 100;
    let is_internal = plan.is_internal();
    PathAttributes {
        path: (!is_internal).then_some(plan.local_as),
        four_octets: capabilities.four_octets.is_some(),
        next_hop,
        med: announcement.med,
        local_preference: is_internal.then(|| announcement.local_preference.unwrap_or(PREFERENCE)),
        communities: &announcement.communities,
    }
}
