//! Traces as they are written.

use crate::span::Span;

/// A line of a `traces` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLineSpec {
    /// Where it is.
    pub span: Span,
    /// What follows `trace`.
    pub words: Vec<String>,
}
