//! Results of `cache-use` for a request. Must never answer one.

use std::cell::Cell;
use std::sync::Arc;

use live::cache::{Lead, Object, Place, Signature};

/// Results of `cache-use` for a request.
pub struct CacheUse {
    /// Primary key: scheme, host and target.
    pub(crate) key: Box<[u8]>,
    /// Secondary key: the request fields that the response may depend on (`Vary`); `None`: not cacheable for that reason.
    pub(crate) signature: Option<Signature>,
    /// The response may be stored.
    pub(crate) may_store: bool,
    /// The client has sent credentials. Fields that rules add for the server after `cache-use` do not count.
    pub(crate) authorized: bool,
    /// Cached response whose links are sent as early hints.
    pub(crate) hints: Option<Arc<Object>>,
    /// Set while other requests wait for its response.
    pub(crate) lead: Cell<Option<Lead>>,
    /// The cache that it waits for: another request is getting the same response.
    pub(crate) awaits: Option<usize>,
    /// The cache whose file contains the response, and the position in it.
    pub(crate) lies: Option<(usize, Place)>,
    /// The cache whose stale response may answer it if its server fails.
    pub(crate) falls_back: Option<usize>,
    /// The cache and its stale response that the request validates at its server.
    pub(crate) asks_for: Option<(usize, Arc<Object>)>,
    /// The conditions of the request were added by the cache, not by the client.
    pub(crate) conditional: bool,
    /// The client accepts only a cached response (`only-if-cached`).
    pub(crate) only_if_cached: bool,
}
