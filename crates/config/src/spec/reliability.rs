//! Passive detection of failing servers, Weir only: outliers are ejected, and requests are
//! retried, or sent to two servers, within a budget. Must never count anything.

/// `eject-outliers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlierSpec {
    /// `errors`: failed requests in the window, per cent; `None`: not considered.
    pub errors: Option<u32>,
    /// `latency`: excess of the response time over that of the other servers, per cent; `None`: not considered.
    pub latency: Option<u32>,
    /// `window`: length of the observed period, in milliseconds.
    pub window: u64,
    /// `min-requests`: minimum number of requests in the window for a decision.
    pub min_requests: u32,
    /// `time`: duration of the first ejection in milliseconds; each further one is longer by the same time.
    pub time: u64,
    /// `max-time`: maximum duration of an ejection, in milliseconds.
    pub max_time: u64,
    /// `max-ejected`: maximum share of ejected servers, per cent; one is always allowed, but never the last server.
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
    /// Share of requests that may be retried, per cent of all.
    pub share: u32,
    /// `min`: number of retries per second that are always allowed.
    pub least: u32,
}

/// `hedge-requests`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HedgeSpec {
    /// `after`: delay before the request is sent to a second server.
    pub after: HedgeDelay,
    /// `budget`: share of requests that may be sent to a second server, per cent of all.
    pub share: u32,
    /// `min`: number of such requests per second that are always allowed.
    pub least: u32,
}

/// Delay before a second server is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HedgeDelay {
    /// This number of milliseconds.
    Time(u64),
    /// This percentile of recent times to the first byte of a response, per cent.
    Percentile(u32),
}
