//! The internal HTTP client (configuration manual, section 3.4), with the defaults filled in. Must never send a request.

use std::sync::Arc;
use std::time::Duration;

/// What requests of the process itself are sent with.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpClient {
    /// The index of the `resolvers` section that is asked for names; `None`: none is, and hosts have to be addresses.
    pub section: Option<usize>,
    /// IPv4 first.
    pub prefers_ipv4: bool,
    /// Further attempts after one that could not connect.
    pub retries: u32,
    /// Time for an attempt to connect, TLS included; `None`: no limit but the request's own.
    pub connect: Option<Duration>,
    /// TLS with servers; `None`: the roots of the system could not be read, and there is none.
    pub tls: Option<Arc<tls::Client>>,
    /// TLS of sockets that scripts open; nobody is verified. `None`: there are no scripts.
    pub script_tls: Option<Arc<tls::Client>>,
}
