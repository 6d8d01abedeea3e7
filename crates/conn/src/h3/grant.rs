//! The number of streams that a client may have open at a time. Each stream that a client may begin occupies memory from its
//! announcement on, so a connection announces few, and more once they are used.

/// Maximum number of streams that a connection announces at first.
pub const INITIAL_STREAMS: u32 = 24;

/// The streams that were announced to a client.
#[derive(Debug)]
pub(super) struct StreamGrant {
    announced: usize,
    max: usize,
}

impl StreamGrant {
    /// Announces [`INITIAL_STREAMS`], and `max` at most.
    pub(super) fn new(max: usize) -> Self {
        Self { announced: max.min(INITIAL_STREAMS as usize), max }
    }

    /// The number of streams that were announced.
    pub(super) fn announced(&self) -> usize {
        self.announced
    }

    /// Returns the number of streams to announce if half of those announced are open.
    pub(super) fn raise(&mut self, open: usize) -> Option<u32> {
        if self.announced >= self.max || open < self.announced.div_ceil(2) {
            return None;
        }
        self.announced = (2 * self.announced).min(self.max);
        u32::try_from(self.announced).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_are_announced_as_they_are_used() {
        for (max, opens, expected) in [
            (100, vec![1, 11, 12, 12, 24, 48, 100], vec![None, None, Some(48), None, Some(96), Some(100), None]),
            (30, vec![11, 12, 30], vec![None, Some(30), None]),
            (24, vec![24], vec![None]),
            (5, vec![5], vec![None]),
            (0, vec![0, 1], vec![None, None]),
        ] {
            let mut grant = StreamGrant::new(max);
            let raised: Vec<_> = opens.iter().map(|open| grant.raise(*open)).collect();
            assert_eq!(raised, expected, "{max}");
        }
    }
}
