//! Limits of compression over all workers: a rate that the runtime API may change, and the memory of compressor states.
//! Must never compress, and never count bytes: the counters do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Compression limits of the process.
#[derive(Debug, Default)]
pub struct CompressionLimits {
    /// Maximum input rate in kilobytes per second; 0: unlimited.
    rate: AtomicU32,
    /// Memory held by compressor states in bytes.
    memory: AtomicU64,
}

impl CompressionLimits {
    /// Creates it with `maxcomprate` in kilobytes per second.
    pub(super) fn new(rate: Option<u32>) -> Self {
        Self { rate: AtomicU32::new(rate.unwrap_or(0)), memory: AtomicU64::new(0) }
    }

    /// The maximum input rate in bytes per second; 0: unlimited.
    pub fn bytes_a_second(&self) -> u64 {
        u64::from(self.rate.load(Relaxed)) * 1024
    }

    /// Sets the rate in kilobytes per second (`set rate-limit http-compression global`).
    pub fn set_rate(&self, kilobytes: u32) {
        self.rate.store(kilobytes, Relaxed);
    }

    /// The memory held by compressor states in bytes.
    pub fn memory(&self) -> u64 {
        self.memory.load(Relaxed)
    }

    /// Reserves memory; `None`: the total would exceed `most` bytes (0: no limit).
    pub fn reserve(self: &Arc<Self>, bytes: u64, most: u64) -> Option<ReservedMemory> {
        let mut held = self.memory.load(Relaxed);
        loop {
            let next = held.saturating_add(bytes);
            if most > 0 && next > most {
                return None;
            }
            match self.memory.compare_exchange_weak(held, next, Relaxed, Relaxed) {
                Ok(_) => return Some(ReservedMemory { limits: Arc::clone(self), bytes }),
                Err(now) => held = now,
            }
        }
    }
}

/// The memory of one state; released when dropped.
#[derive(Debug)]
pub struct ReservedMemory {
    limits: Arc<CompressionLimits>,
    bytes: u64,
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.limits.memory.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_given_back() {
        let limits = Arc::new(CompressionLimits::new(Some(3)));
        assert_eq!((limits.bytes_a_second(), limits.memory()), (3_072, 0));
        let first = limits.reserve(60, 100);
        assert!(first.is_some() && limits.reserve(41, 100).is_none());
        let second = limits.reserve(40, 100);
        assert!(second.is_some() && limits.memory() == 100);
        drop(first);
        assert_eq!(limits.memory(), 40);
        assert!(limits.reserve(1_000, 0).is_some(), "0 is no limit");
        drop(second);
        assert_eq!(limits.memory(), 0);
    }
}
