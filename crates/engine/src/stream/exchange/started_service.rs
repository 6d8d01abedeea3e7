//! A service that was started for a request. Must never choose one.

use conn::service::Service;

use crate::stream_state::ServiceName;

/// A service that answers one request.
pub struct StartedService {
    /// `None`: the request is answered with an internal error.
    pub service: Option<Box<dyn Service>>,
    /// Its name in log lines.
    pub shown: ServiceName,
    /// Whether `http-response` rules and filters process its response.
    pub ruled: bool,
}
