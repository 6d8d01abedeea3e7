//! Backend, server or service that a stream was assigned to. Must never select one.

use std::sync::Arc;

use live::persistence::Persistence;
use policy::rule::StickStore;

/// Name of a service in log lines; setting it needs no allocation.
#[derive(Debug, Clone)]
pub enum ServiceName {
    /// A service of Weir itself.
    Known(&'static str),
    /// A registered service.
    Shared(Arc<str>),
}

impl Default for ServiceName {
    fn default() -> Self {
        Self::Known("")
    }
}

impl std::ops::Deref for ServiceName {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Shared(name) => name,
        }
    }
}

/// Route of a stream.
#[derive(Default)]
pub struct RouteInfo {
    /// Index of the backend among the proxies.
    pub backend: Option<usize>,
    /// Index of the server in its backend.
    pub server: Option<usize>,
    /// Name of the service that answers it, for log lines.
    pub service: Option<ServiceName>,
    /// Persistence to a server.
    pub persistence: Persistence,
    /// Stick table entries to be stored once its server is known.
    pub stores: Vec<StickStore>,
}

impl RouteInfo {
    /// Clears all but the state of optional features.
    #[inline]
    pub(super) fn clear(&mut self) {
        let Self { backend, server, service, persistence, stores } = self;
        // Cleared by `forget_features`.
        let _ = (service, stores);
        (*backend, *server) = (None, None);
        *persistence = Persistence::default();
    }

    /// Clears the state of optional features.
    pub(super) fn forget_features(&mut self) {
        self.service = None;
        self.stores.clear();
    }

    /// Whether no optional feature has left any state.
    pub(super) fn is_plain(&self) -> bool {
        self.service.is_none() && self.stores.is_empty()
    }
}
