//! `cache` sections (configuration manual, section 6). Must never hold an object.

use crate::span::Span;

/// `early-hints`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyHints {
    /// Hints are not stored.
    #[default]
    Off,
    /// Hints are stored beside responses, and kept when responses are evicted.
    On,
    /// Only hints are stored.
    Only,
}

/// A `cache` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSpec {
    /// Its first line.
    pub span: Span,
    pub name: String,
    /// `total-max-size`, megabytes; 0: not written.
    pub megabytes: u32,
    /// `max-object-size`, bytes; 0: not written, which means 1/256 of the cache.
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
    /// `coalesce` in milliseconds; 0: off. Weir only.
    pub coalesce: u64,
    /// `stale-while-revalidate`, seconds. Weir only.
    pub stale: u32,
    /// `stale-if-error`, seconds. Weir only.
    pub stale_if_error: u32,
    /// `ranges`. Weir only.
    pub ranges: bool,
    /// `rfc9111`. Weir only.
    pub standard: bool,
    /// `disk`: a file, and its size in megabytes. Weir only.
    pub disk: Option<(String, u32)>,
    /// `tag-header`: a field's name. Weir only.
    pub tag_header: Option<String>,
}
