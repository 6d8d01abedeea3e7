//! Updates of OCSP answers (configuration manual, section 3.1, "ocsp-update.*"). Must never ask for one.

use std::net::SocketAddr;
use std::time::Duration;

/// How answers are kept fresh.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OcspUpdates {
    /// Those of certificates that say nothing about it are.
    pub is_usual: bool,
    /// None is.
    pub is_disabled: bool,
    /// Between two updates at least.
    pub least: Duration,
    /// Between two updates at most.
    pub most: Duration,
    /// The HTTP proxy that requests go through.
    pub proxy: Option<SocketAddr>,
}
