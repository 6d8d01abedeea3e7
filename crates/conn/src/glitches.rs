//! Limits of glitches: protocol violations and oddities of a peer, counted on each connection. Must never count one.

/// The limits of glitches on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlitchLimits {
    /// The number that ends the connection (`tune.h2.fe.glitches-threshold` and the like); three quarters of it end it
    /// gracefully. 0: no limit.
    pub threshold: u32,
    /// CPU usage of the worker, in percent, below which the connection is not ended at once
    /// (`tune.glitches.kill.cpu-usage`).
    pub usage: u32,
}

impl GlitchLimits {
    /// Whether a connection with that number of glitches is to end once no request is disturbed by it.
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
