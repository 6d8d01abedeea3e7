//! The response to a stream's request: its status, and its source if no server has sent it. Must never encode a response.

use std::sync::Arc;

use live::cache::Object;

/// Properties of a stream's response.
#[derive(Default)]
pub struct AnswerInfo {
    /// Status sent to the client; -1: none.
    pub status: i32,
    /// Status of the server's response.
    pub server_status: Option<u16>,
    /// Name of the algorithm that compresses the response.
    pub compression: Option<&'static str>,
    /// Cached response that answers it.
    pub hit: Option<Arc<Object>>,
    /// Index of the cache that answers it.
    pub cache_hit: Option<usize>,
}

impl AnswerInfo {
    /// Clears all but the state of optional features.
    #[inline]
    pub(super) fn clear(&mut self) {
        let Self { status, server_status, compression, hit, cache_hit } = self;
        // Cleared by `forget_features`.
        let _ = (compression, hit, cache_hit);
        (*status, *server_status) = (-1, None);
    }

    /// Clears the state of optional features.
    pub(super) fn forget_features(&mut self) {
        (self.compression, self.hit, self.cache_hit) = (None, None, None);
    }

    /// Whether no optional feature has left any state.
    pub(super) fn is_plain(&self) -> bool {
        self.compression.is_none() && self.hit.is_none() && self.cache_hit.is_none()
    }
}
