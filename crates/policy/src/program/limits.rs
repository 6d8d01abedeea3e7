//! Rate limits and retry parameters. Must never count anything.

use config::spec::{HedgeSpec, Mode, OutlierSpec, ProxyLimitsSpec, RetryBudgetSpec, RetryOn};

/// Retry and connection parameters of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackendLimits {
    /// `retry-on`; in TCP mode only failed connections.
    pub retry_on: RetryOn,
    /// `retry-on none` is specified: a request is not even retried if its idle connection was closed by the server.
    pub never_retry: bool,
    /// `option prefer-last-server`.
    pub prefer_last_server: bool,
    /// `max-keep-alive-queue`: queue length at which the last server is no longer preferred.
    pub max_keep_alive_queue: u32,
    /// `eject-outliers`.
    pub outliers: Option<OutlierSpec>,
    /// `retry-budget`.
    pub retry_budget: Option<RetryBudgetSpec>,
    /// `hedge-requests`; only in HTTP mode.
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

/// Limits of a frontend in addition to `maxconn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrontendLimits {
    /// `rate-limit sessions`; `None` for no limit.
    pub sessions_a_second: Option<u32>,
    /// `max-session-srv-conns`.
    pub private_links: usize,
}

impl FrontendLimits {
    pub(crate) fn new(written: &ProxyLimitsSpec) -> Self {
        Self { sessions_a_second: written.rate_limit_sessions, private_links: written.max_session_srv_conns as usize }
    }
}
