//! Counters of compressed and cached bodies, for one side of a proxy. Must never be written by two threads.

use super::cell::Count;

/// Counters of the responses of a frontend or a backend.
#[derive(Debug, Default)]
pub struct ContentCounters {
    /// Bytes read and written by the compressor, and those that bypassed it.
    pub compressor_in: Count,
    pub compressor_out: Count,
    pub compressor_bypassed: Count,
    /// Compressed responses.
    pub compressed: Count,
    /// Cache lookups, hits, and hits of hints only.
    pub cache_lookups: Count,
    pub cache_hits: Count,
    pub cache_hint_hits: Count,
}

impl ContentCounters {
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
