//! Results of looking a response up, and of revalidating it. Must never hold a lock.

use super::entry::Object;
use std::sync::Arc;

/// The result of revalidating a stored response.
pub enum Update {
    /// No change.
    Keep,
    /// Replace it with this one, which has the same body.
    Replace(Box<Object>),
    /// Remove it.
    Remove,
}

/// The result of a lookup.
#[derive(Debug)]
pub enum CacheLookup {
    /// A fresh response.
    Hit(Arc<Object>),
    /// A stale response, which may be used while another one is fetched.
    Stale(Arc<Object>),
    /// Values of Link fields of a response that is no longer stored.
    Hints(Arc<Object>),
    /// No entry.
    Nothing,
}
