//! Encodes export requests: encoded items with their resource and instrumentation scope
//! (`opentelemetry/proto/collector/*/v1/*_service.proto`, alike for all signals). Must never look into the items.

use super::message::Message;
use super::{Value, attribute};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// The path of the signal's endpoint (OTLP/HTTP).
    pub fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
            Self::Logs => "/v1/logs",
        }
    }

    /// The names of the signal and of its items, for messages.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Traces => ("traces", "spans"),
            Self::Metrics => ("metrics", "metrics"),
            Self::Logs => ("logs", "log records"),
        }
    }
}

/// The instrumentation scope.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    pub name: &'a str,
    /// Version; empty if none.
    pub version: &'a str,
}

/// Encodes the body of an export request; each item is already encoded.
pub fn request<'i, 'v>(
    resource: impl Iterator<Item = (&'v str, Value<'v>)>,
    scope: Scope<'_>,
    items: impl Iterator<Item = &'i [u8]>,
) -> Vec<u8> {
    let mut body = Vec::new();
    Message::new(&mut body).nested(1, |of_resource| {
        of_resource.nested(1, |written| resource.for_each(|(key, value)| attribute(written, 1, key, value)));
        of_resource.nested(2, |of_scope| {
            of_scope.nested(1, |written| {
                written.text(1, scope.name.as_bytes());
                written.text(2, scope.version.as_bytes());
            });
            items.for_each(|item| of_scope.bytes(2, item));
        });
    });
    body
}
