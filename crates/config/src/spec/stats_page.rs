//! The statistics page of a proxy (configuration manual, "stats uri" and related keywords). Must never define the
//! page's content.

use super::rules::{RuleLineSpec, RuleSpec};
use crate::span::Span;

/// The `stats` lines of a proxy. The first one discards the inherited page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatsPageSpec {
    /// Written in the proxy itself; otherwise inherited from a `defaults` section.
    pub own: bool,
    /// `stats uri`: prefix of the page's requests. `None`: `/haproxy?stats`.
    pub uri: Option<String>,
    /// `stats realm`. `None`: `HAProxy Statistics`.
    pub realm: Option<String>,
    /// `stats auth`, each `user:password`.
    pub accounts: Vec<String>,
    /// `stats scope`; `.` is the proxy itself.
    pub scope: Vec<String>,
    /// `stats refresh`, seconds.
    pub refresh: Option<u64>,
    /// `stats dashboard`: Weir only.
    pub dashboard: bool,
    /// `stats show-version`.
    pub shows_version: bool,
    /// `stats show-legends`.
    pub shows_legends: bool,
    /// `stats show-modules`.
    pub shows_modules: bool,
    /// `stats show-node`; inner `None`: the name in the `global` section.
    pub node: Option<Option<String>>,
    /// `stats show-desc`; inner `None`: the description in the `global` section.
    pub description: Option<Option<String>>,
    /// `stats admin`: the conditions.
    pub admin: Vec<RuleLineSpec>,
    /// `stats http-request`.
    pub rules: Vec<RuleSpec>,
    /// The first `stats auth` or `stats realm`.
    pub identifies: Option<Span>,
}
