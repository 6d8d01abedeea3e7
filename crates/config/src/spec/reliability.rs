//! What a backend does about servers that fail beside checking them, Weir's own: outliers are ejected, and requests are
//! sent again, or to two servers, within a budget. Must never count anything.

/// `eject-outliers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlierSpec {
    /// `errors`: requests that fail in the window, per cent; `None` means that they do not count.
    pub errors: Option<u32>,
    /// `latency`: how much longer its answers take than those of the others, per cent; `None` means that it does not count.
    pub latency: Option<u32>,
    /// `window`, milliseconds: how far back is looked.
    pub window: u64,
    /// `min-requests`: with fewer in the window nothing is concluded.
    pub min_requests: u32,
    /// `time`, milliseconds: how long the first ejection lasts; each one that follows lasts so much longer.
    pub time: u64,
    /// `max-time`, milliseconds: the longest ejection.
    pub max_time: u64,
    /// `max-ejected`: servers at once, per cent; one is always allowed, and the last one never.
    pub max_ejected: u32,
}

impl Default for OutlierSpec {
    fn default() -> Self {
        Self {
            errors: None,
            latency: None,
            window: 10_000,
            min_requests: 20,
            time: 30_000,
            max_time: 300_000,
            max_ejected: 10,
        }
    }
}

/// `retry-budget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBudgetSpec {
    /// Requests that may be sent again, per cent of all.
    pub share: u32,
    /// `min`: as many a second may always be.
    pub least: u32,
}

/// `hedge-requests`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HedgeSpec {
    /// `after`: how long the first server has until a second one is asked.
    pub after: HedgeDelay,
    /// `budget`: requests that may be sent to a second server, per cent of all.
    pub share: u32,
    /// `min`: as many a second may always be.
    pub least: u32,
}

/// When a second server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HedgeDelay {
    /// After so many milliseconds.
    Time(u64),
    /// After as long as so many per cent of the answers took to begin lately.
    Percentile(u32),
}
