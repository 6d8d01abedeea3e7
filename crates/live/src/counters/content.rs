//! What is counted of bodies that are compressed or cached, on one side of a proxy. Must never be written by two threads.

use super::cell::Count;

/// Of the responses of a frontend or a backend.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct ContentCounters {
    /// Bytes that the compressor has read and written, and those that passed it unchanged.
    pub compressor_in: Count,
    pub compressor_out: Count,
    pub compressor_bypassed: Count,
    /// Responses that were compressed.
    pub compressed: Count,
    /// Requests that a cache was asked for, those that it answered, and those that it sent hints to.
    pub cache_lookups: Count,
    pub cache_hits: Count,
    pub cache_hint_hits: Count,
}

impl ContentCounters {
    /// Forgets everything.
    pub(super) fn clear(&self) {
        let counts = [
            &self.compressor_in,
            &self.compressor_out,
            &self.compressor_bypassed,
            &self.compressed,
            &self.cache_lookups,
            &self.cache_hits,
            &self.cache_hint_hits,
        ];
        counts.into_iter().for_each(|count| count.set(0));
    }
}
