//! Limits a second, and when a request is sent again, ready to run. Must never count anything.

use config::spec::{HedgeSpec, Mode, OutlierSpec, ProxyLimitsSpec, RetryBudgetSpec, RetryOn};

/// What a backend does about failures and kept connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackendLimits {
    /// `retry-on`; in TCP mode failed connections alone.
    pub retry_on: RetryOn,
    /// `retry-on none` was written: not even a request is sent again whose idle connection turned out dead.
    pub never_retry: bool,
    /// `option prefer-last-server`.
    pub prefer_last_server: bool,
    /// `max-keep-alive-queue`: a server with so many waiting is not preferred any more.
    pub max_keep_alive_queue: u32,
    /// `eject-outliers`.
    pub outliers: Option<OutlierSpec>,
    /// `retry-budget`.
    pub retry_budget: Option<RetryBudgetSpec>,
    /// `hedge-requests`; in HTTP mode alone.
    pub hedge: Option<HedgeSpec>,
}

impl BackendLimits {
    pub(crate) fn new(written: &ProxyLimitsSpec, mode: Mode) -> Self {
        let retry_on = if mode == Mode::Http { written.retry_on } else { RetryOn::default() };
        Self {
            retry_on,
            never_retry: retry_on == RetryOn::NONE,
            prefer_last_server: written.prefer_last_server,
            max_keep_alive_queue: written.max_keep_alive_queue.unwrap_or(u32::MAX),
            outliers: written.outliers,
            retry_budget: written.retry_budget,
            hedge: written.hedge.filter(|_| mode == Mode::Http),
        }
    }
}

/// What a frontend bounds beside its `maxconn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrontendLimits {
    /// `rate-limit sessions`; `None` means no limit.
    pub sessions_a_second: Option<u32>,
    /// `max-session-srv-conns`.
    pub private_links: usize,
}

impl FrontendLimits {
    pub(crate) fn new(written: &ProxyLimitsSpec) -> Self {
        Self { sessions_a_second: written.rate_limit_sessions, private_links: written.max_session_srv_conns as usize }
    }
}
