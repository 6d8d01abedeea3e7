//! The freshness of stored responses, and what requests want of it (RFC 9111). Must never read a clock.

use base::moment::Moment;
use std::time::Duration;

/// A request's Cache-Control directives for stored responses (RFC 9111, section 5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestDirectives {
    /// `max-age`: the maximum age.
    pub max_age: Option<Duration>,
    /// `min-fresh`: the minimum remaining freshness.
    pub min_fresh: Duration,
    /// `max-stale`: the maximum staleness.
    pub max_stale: Duration,
}

/// The freshness lifetime of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// When it was received.
    pub stored: Moment,
    /// Its age then, in seconds.
    pub age: u32,
    /// Its freshness lifetime from then on.
    pub left: Duration,
}
