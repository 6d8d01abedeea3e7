//! Parameters of OCSP updates (configuration manual, section 3.1, "ocsp-update.*"). Must never send a request.

use std::net::SocketAddr;
use std::time::Duration;

/// Parameters of OCSP updates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OcspUpdates {
    /// Enabled for certificates that do not specify it.
    pub is_usual: bool,
    /// Disabled for all certificates.
    pub is_disabled: bool,
    /// Minimum interval between two updates.
    pub least: Duration,
    /// Maximum interval between two updates.
    pub most: Duration,
    /// The HTTP proxy for requests.
    pub proxy: Option<SocketAddr>,
}
