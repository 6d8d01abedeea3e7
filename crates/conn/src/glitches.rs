//! What follows from glitches: what a peer does that a sound one would not do, counted on each connection. Must never count one.

/// From how many glitches on a connection is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlitchLimits {
    /// So many end the connection (`tune.h2.fe.glitches-threshold` and the like); three quarters of them end it gracefully. 0:
    /// none do.
    pub threshold: u32,
    /// But they end it at once only while the worker is so busy, in percent (`tune.glitches.kill.cpu-usage`).
    pub usage: u32,
}

impl GlitchLimits {
    /// Whether a connection with so many is to end as soon as that disturbs nothing.
    pub fn leaves(self, glitches: u32) -> bool {
        self.threshold > 0 && u64::from(glitches) * 4 >= u64::from(self.threshold) * 3
    }

    /// Whether it is to end at once.
    pub fn kills(self, glitches: u32) -> bool {
        self.threshold > 0
            && glitches >= self.threshold
            && (self.usage == 0 || rt::usage_of(rt::worker()) >= self.usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_end_a_connection_gracefully() {
        let limits = |threshold| GlitchLimits { threshold, usage: 0 };
        let first = |threshold| (1..).find(|glitches| limits(threshold).leaves(*glitches));
        assert_eq!([1, 2, 3, 4, 5, 10, 1000].map(|threshold| first(threshold).unwrap()), [1, 2, 3, 3, 4, 8, 750]);
        assert!(!limits(0).leaves(u32::MAX));
    }
}
