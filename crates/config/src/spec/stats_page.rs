//! The statistics page of a proxy (configuration manual, "stats uri" and its neighbours). Must never know what the page shows.

use super::rules::{RuleLineSpec, RuleSpec};
use crate::span::Span;

/// What the `stats` lines of a proxy say. The first one in a proxy begins anew: nothing of an inherited page is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatsPageSpec {
    /// The proxy says so itself; otherwise it is inherited from a `defaults` section.
    pub own: bool,
    /// `stats uri`: what requests for the page begin with. `None`: `/haproxy?stats`.
    pub uri: Option<String>,
    /// `stats realm`. `None`: `HAProxy Statistics`.
    pub realm: Option<String>,
    /// `stats auth`, each `user:password`.
    pub accounts: Vec<String>,
    /// `stats scope`; `.` is the proxy itself.
    pub scope: Vec<String>,
    /// `stats refresh`, seconds.
    pub refresh: Option<u64>,
    /// `stats dashboard`: Weir's own.
    pub dashboard: bool,
    /// `stats show-version`.
    pub shows_version: bool,
    /// `stats show-legends`.
    pub shows_legends: bool,
    /// `stats show-modules`.
    pub shows_modules: bool,
    /// `stats show-node`; inside `None`: the name in the global section.
    pub node: Option<Option<String>>,
    /// `stats show-desc`; inside `None`: the description in the global section.
    pub description: Option<Option<String>>,
    /// `stats admin`: the conditions.
    pub admin: Vec<RuleLineSpec>,
    /// `stats http-request`.
    pub rules: Vec<RuleSpec>,
    /// The first `stats auth` or `stats realm`.
    pub identifies: Option<Span>,
}
