//! Traces as written (configuration manual, section 12.1).

use crate::span::Span;

/// A line of a `traces` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLineSpec {
    pub span: Span,
    /// The words after `trace`.
    pub words: Vec<String>,
}
