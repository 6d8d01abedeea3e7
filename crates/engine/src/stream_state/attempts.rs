//! State of a stream's attempts to reach a server. Must never start one.

use std::sync::Arc;

use expression::record::Endpoint;
use expression::sample::LinkFacts;
use live::Counts;
use tls::HandshakeInfo;

use super::socket_handle::Kernel;

/// State of a stream's attempts to reach a server.
#[derive(Default)]
pub struct Attempts {
    /// Source address of the server connection, if the log format contains it.
    pub backend_source: Endpoint,
    /// Number of failed connection attempts before the last one.
    pub retries: u32,
    /// The last attempt went to another server.
    pub redispatched: bool,
    /// It was sent to a second server while the first one had not responded.
    pub hedged: bool,
    /// The second server responded first.
    pub hedge_won: bool,
    /// Number of requests processed before this one in the server's queue.
    pub server_queue: u32,
    /// Number of requests processed before this one in the backend's queue.
    pub backend_queue: u32,
    /// Load of backend and server at the time when the stream released its slot, before the next request in the queue got it.
    pub counts: Option<Counts>,
    /// Properties of the server connection, once one was attempted.
    pub link: Option<LinkFacts>,
    /// Result of the TLS handshake with the server, if there was one.
    pub server_tls: Option<Arc<HandshakeInfo>>,
    /// Whether the request went to the server as early data.
    pub early: EarlyRequest,
    /// Responses of the server count for its health (`observe`).
    pub is_observed: bool,
    /// Query handle of the server connection.
    pub server_kernel: Kernel,
}

/// State of TLS early data of a request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyRequest {
    /// None was sent.
    #[default]
    Unsent,
    /// It was sent before the handshake was complete.
    Sent,
    /// The server refused it: the request has to be sent after the handshake (RFC 8470, section 5.2).
    Refused,
}
