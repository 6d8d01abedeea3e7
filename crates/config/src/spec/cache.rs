//! `cache` sections (configuration manual, section 6). Must never hold an object.

use crate::span::Span;

/// `early-hints`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyHints {
    /// Nothing is remembered for 103 responses.
    #[default]
    Off,
    /// Hints are remembered beside responses, and in the place of those that had to go.
    On,
    /// Hints alone are remembered.
    Only,
}

/// A `cache` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSpec {
    /// Its first line.
    pub span: Span,
    /// Its name.
    pub name: String,
    /// `total-max-size`, megabytes; 0: not written.
    pub megabytes: u32,
    /// `max-object-size`, bytes; 0: not written, so a 256th of the cache.
    pub largest: u32,
    /// `max-age`, seconds.
    pub age: u32,
    /// `process-vary`.
    pub varies: bool,
    /// `max-secondary-entries`.
    pub variants: u32,
    /// `early-hints`.
    pub hints: EarlyHints,
    /// `ratio` of `early-hints`, percent.
    pub ratio: u32,
    /// `coalesce` in milliseconds; 0: off. Weir's own.
    pub coalesce: u64,
    /// `stale-while-revalidate`, seconds. Weir's own.
    pub stale: u32,
    /// `stale-if-error`, seconds. Weir's own.
    pub stale_if_error: u32,
    /// `ranges`. Weir's own.
    pub ranges: bool,
    /// `rfc9111`. Weir's own.
    pub standard: bool,
    /// `disk`: a file, and its megabytes. Weir's own.
    pub disk: Option<(String, u32)>,
    /// `tag-header`: a field's name. Weir's own.
    pub tag_header: Option<String>,
}
