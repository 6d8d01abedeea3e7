//! The internal HTTP client (configuration manual, section 3.4), including default values. Must never send a request.

use std::sync::Arc;
use std::time::Duration;

/// Parameters of the process's own requests.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpClient {
    /// Index of the `resolvers` section for name resolution; `None`: hosts have to be addresses.
    pub section: Option<usize>,
    /// Prefer IPv4 addresses.
    pub prefers_ipv4: bool,
    /// Number of retries after a failed connection attempt.
    pub retries: u32,
    /// Timeout of a connection attempt including TLS; `None` for that of the request.
    pub connect: Option<Duration>,
    /// TLS client; `None` if the system's root certificates cannot be read.
    pub tls: Option<Arc<tls::Client>>,
    /// TLS client of script sockets, without verification; `None` if there are no scripts.
    pub script_tls: Option<Arc<tls::Client>>,
}
