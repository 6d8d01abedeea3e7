//! Streams granted to multiplexed connections beyond their first one, limited over all connections
//! (`tune.streams-elasticity`). Must never refuse a connection its first stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The total granted to all connections beyond their first streams.
#[derive(Debug, Default)]
pub struct StreamShares(AtomicI64);

/// The streams granted to one connection. Dropping it releases them.
#[derive(Debug)]
pub struct StreamShare {
    shares: Arc<StreamShares>,
    streams: u32,
}

impl StreamShares {
    /// Grants a connection a part of `most` streams, proportionate to the free part of `all`; at least one while any
    /// are free. Connections established concurrently may each be granted the same free part.
    pub fn take(shares: &Arc<Self>, most: u32, all: u32) -> StreamShare {
        let left = i64::from(all) - shares.0.load(Relaxed);
        let more = i64::from(most.saturating_sub(1));
        let streams = if left <= 0 { 0 } else { (more * left / i64::from(all.max(1))).max(1).min(more) };
        shares.0.fetch_add(streams, Relaxed);
        StreamShare { shares: Arc::clone(shares), streams: u32::try_from(streams).unwrap_or(0) }
    }
}

impl StreamShare {
    /// The maximum number of concurrent streams, including the first.
    pub fn streams(&self) -> u32 {
        self.streams + 1
    }
}

impl Drop for StreamShare {
    fn drop(&mut self) {
        self.shares.0.fetch_sub(i64::from(self.streams), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observed grants of HAProxy 3.5 for successive connections with `maxconn 20` and these percentages.
    #[test]
    fn the_first_connections_get_more() {
        for (percent, granted) in
            [(1000, &[100, 45, 21, 10, 5, 3, 2, 2, 1, 1][..]), (300, &[100, 1, 1]), (150, &[100, 1, 1])]
        {
            let shares = Arc::default();
            let all = 20 * (percent - 100) / 100;
            let mut open = Vec::new();
            for streams in granted {
                open.push(StreamShares::take(&shares, 100, all));
                assert_eq!(open.last().unwrap().streams(), *streams, "{percent}: connection {}", open.len());
            }
            // A closed connection releases its share for the next one.
            open.truncate(0);
            assert_eq!(StreamShares::take(&shares, 100, all).streams(), 100);
        }
        let shares = Arc::default();
        assert_eq!(StreamShares::take(&shares, 100, 0).streams(), 1);
        assert_eq!(StreamShares::take(&shares, 1, 500).streams(), 1);
    }
}
