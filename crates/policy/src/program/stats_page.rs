//! The compiled statistics page of a proxy (configuration manual, "stats uri"). Must never render the page.

use crate::rule::{Final, Rule};
use expression::condition::Condition;

/// A statistics page and its access control.
#[derive(Debug, Clone, PartialEq)]
pub struct StatsPage {
    /// Prefix of the path and query of requests for the page.
    pub uri: Box<[u8]>,
    /// `stats http-request`, in order; the first matching rule decides.
    pub rules: Box<[Rule]>,
    /// `stats auth`: credentials in the form `user:password`. Empty: no authentication.
    pub accounts: Box<[Box<[u8]>]>,
    /// The response to clients without valid credentials.
    pub challenge: Final,
    /// `stats admin`: conditions for requests that may change servers.
    pub admin: Box<[Condition]>,
    /// Names of the visible proxies; empty for all of them.
    pub scope: Box<[Box<str>]>,
    /// Refresh interval in seconds.
    pub refresh: Option<u64>,
    /// `stats dashboard`: a dashboard and a JSON API are served below the page.
    pub dashboard: bool,
    /// `stats show-version`.
    pub shows_version: bool,
    /// `stats show-legends`.
    pub shows_legends: bool,
    /// `stats show-modules`.
    pub shows_modules: bool,
    pub node: Option<Box<str>>,
    pub description: Option<Box<str>>,
}

impl StatsPage {
    /// Whether access is restricted by authentication or rules.
    pub fn is_guarded(&self) -> bool {
        !self.accounts.is_empty() || !self.rules.is_empty()
    }

    /// Whether `target`, a path and query, is that of the page.
    pub fn is_at(&self, target: &[u8]) -> bool {
        target.starts_with(&self.uri)
    }

    /// Whether `target` is that of the API below the page.
    pub fn is_api_at(&self, target: &[u8]) -> bool {
        let below = target.strip_prefix(&*self.uri).unwrap_or_default();
        let below = if self.uri.ends_with(b"/") { below } else { below.strip_prefix(b"/").unwrap_or_default() };
        self.dashboard && below.starts_with(b"api/")
    }

    /// Whether a proxy with that name is visible and may be changed.
    pub fn shows(&self, proxy: &str) -> bool {
        self.scope.is_empty() || self.scope.iter().any(|name| **name == *proxy)
    }
}
