//! A service that has been started for a request. Must never choose one.

use conn::service::Service;

use crate::stream_state::ServiceName;

/// A service that answers one request.
pub struct Started {
    /// `None`: the answer is an internal error.
    pub service: Option<Box<dyn Service>>,
    /// How log lines name it.
    pub shown: ServiceName,
    /// `http-response` rules and filters see its answer.
    pub ruled: bool,
}
