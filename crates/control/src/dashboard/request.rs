//! A request below the statistics page: the variable parts of its address, and its rights. Must never answer.

use std::rc::Rc;
use std::sync::Arc;

use engine::generation::Generation;
use engine::service::registry::PageRequest;
use engine::worker::Worker;
use policy::program::{Proxy, StatsPage};

/// The context of a request.
pub(super) struct DashboardRequest {
    pub(super) worker: Rc<Worker>,
    pub(super) generation: Arc<Generation>,
    pub(super) request: PageRequest,
    /// The rest of the address: names in the path, and the query.
    pub(super) target: Target,
}

impl DashboardRequest {
    /// The statistics page above this address; `None`: there is none.
    pub(super) fn page(&self) -> Option<&StatsPage> {
        self.generation.proxy(self.request.proxy).stats.as_deref()
    }

    /// Whether the client may change servers.
    pub(super) fn admin(&self) -> bool {
        self.request.admin
    }

    /// Whether `stats scope` includes a proxy.
    pub(super) fn shows(&self, proxy: &Proxy) -> bool {
        let is_visible = !proxy.disabled && (proxy.frontend.is_some() || proxy.backend.is_some());
        is_visible && self.shows_name(&proxy.name)
    }

    /// Whether `stats scope` includes a proxy of that name.
    pub(super) fn shows_name(&self, name: &str) -> bool {
        self.page().is_some_and(|page| page.shows(name))
    }

    /// Whether `stats scope` includes all proxies.
    pub(super) fn shows_all(&self) -> bool {
        self.page().is_some_and(|page| page.scope.is_empty())
    }
}

/// The variable parts of a request's address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    /// Decoded segments at the names in braces.
    pub(super) names: Vec<String>,
    /// Decoded query parameters, at most [`MOST_PARAMETERS`].
    pub(super) query: Vec<(String, String)>,
}

/// Maximum number of query parameters; further ones are ignored.
const MOST_PARAMETERS: usize = 16;

impl Target {
    /// Returns the value of a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns a parameter as a number, at most `most`; `usual` if missing or invalid.
    pub(super) fn number(&self, name: &str, usual: usize, most: usize) -> usize {
        self.parameter(name).and_then(|text| text.parse().ok()).unwrap_or(usual).min(most)
    }
}

/// Decodes a part of an address.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&crate::page::decode(bytes)).into_owned()
}

/// Decodes the pairs of a query or a form, at most [`MOST_PARAMETERS`].
pub(super) fn pairs(query: &[u8]) -> Vec<(String, String)> {
    let pairs = query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).take(MOST_PARAMETERS);
    pairs
        .map(|pair| {
            let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            (text(&pair[..at]), text(pair.get(at + 1..).unwrap_or_default()))
        })
        .collect()
}
