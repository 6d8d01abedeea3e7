//! Probes of silent peers. Must never set an option.

/// Keepalive probes of a silent peer (`SO_KEEPALIVE`); `None`: the system's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeepAlive {
    /// Unanswered probes before the connection fails (`TCP_KEEPCNT`).
    pub count: Option<u32>,
    /// Seconds of silence before the first probe (`TCP_KEEPIDLE`).
    pub idle: Option<u32>,
    /// Seconds between two probes (`TCP_KEEPINTVL`).
    pub interval: Option<u32>,
}
