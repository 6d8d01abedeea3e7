//! The statistics page of a proxy, ready to run (configuration manual, "stats uri"). Must never know what the page shows.

use crate::rule::{Final, Rule};
use expression::condition::Condition;

/// A page and who may see it.
#[derive(Debug, Clone, PartialEq)]
pub struct StatsPage {
    /// What the path and query of requests for it begin with.
    pub uri: Box<[u8]>,
    /// `stats http-request`, in order; the first that holds decides.
    pub rules: Box<[Rule]>,
    /// `stats auth`: credentials as in an Authorization field before they are encoded, `user:password`. Empty: all clients
    /// see the page.
    pub accounts: Box<[Box<[u8]>]>,
    /// The answer to clients without such credentials.
    pub challenge: Final,
    /// `stats admin`: a request for which one of them holds may change servers.
    pub admin: Box<[Condition]>,
    /// Names of the proxies that are shown; empty: all of them.
    pub scope: Box<[Box<str>]>,
    /// Seconds after which a browser loads the page again.
    pub refresh: Option<u64>,
    /// `stats dashboard`: there are a dashboard and a JSON API below the page.
    pub dashboard: bool,
    /// `stats show-version`.
    pub shows_version: bool,
    /// `stats show-legends`.
    pub shows_legends: bool,
    /// `stats show-modules`.
    pub shows_modules: bool,
    /// Name of the node.
    pub node: Option<Box<str>>,
    /// Description of the node.
    pub description: Option<Box<str>>,
}

impl StatsPage {
    /// Clients are asked who they are, or rules look at them.
    pub fn is_guarded(&self) -> bool {
        !self.accounts.is_empty() || !self.rules.is_empty()
    }

    /// Whether a request for `target`, its path and query, is one for the page.
    pub fn is_at(&self, target: &[u8]) -> bool {
        target.starts_with(&self.uri)
    }

    /// Whether a request for `target` is one for the API below the page.
    pub fn is_api_at(&self, target: &[u8]) -> bool {
        let below = target.strip_prefix(&*self.uri).unwrap_or_default();
        let below = if self.uri.ends_with(b"/") { below } else { below.strip_prefix(b"/").unwrap_or_default() };
        self.dashboard && below.starts_with(b"api/")
    }

    /// Whether a proxy of that name is shown and may be changed.
    pub fn shows(&self, proxy: &str) -> bool {
        self.scope.is_empty() || self.scope.iter().any(|name| **name == *proxy)
    }
}
