//! Findings of `cache-use` about a request. Must never answer one.

use std::cell::Cell;
use std::sync::Arc;

use live::cache::{Lead, Object, Place, Signature};

/// What `cache-use` has found out about a request.
pub struct CacheUse {
    /// Scheme, host and target: what the request asks for.
    pub(crate) key: Box<[u8]>,
    /// What the response may depend on beside that; `None`: too much.
    pub(crate) signature: Option<Signature>,
    /// The response may be stored.
    pub(crate) may_store: bool,
    /// The client has given credentials. What rules add for the server after `cache-use` are none.
    pub(crate) authorized: bool,
    /// What hints are sent of.
    pub(crate) hints: Option<Arc<Object>>,
    /// Others wait for its response.
    pub(crate) lead: Cell<Option<Lead>>,
    /// The cache whose next response for the same it waits for.
    pub(crate) awaits: Option<usize>,
    /// The cache in whose file a response lies, and where.
    pub(crate) lies: Option<(usize, Place)>,
    /// The cache whose old response may answer it where its server fails.
    pub(crate) falls_back: Option<usize>,
    /// The request asks its server whether this response of that cache is still the same.
    pub(crate) asks_for: Option<(usize, Arc<Object>)>,
    /// The conditions of the request are the cache's own.
    pub(crate) conditional: bool,
    /// The client wants no response of a server.
    pub(crate) only_if_cached: bool,
}
