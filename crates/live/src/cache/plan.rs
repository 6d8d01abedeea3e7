//! The configuration of a cache. Must never contain a response.

use config::spec::EarlyHints;
use std::time::Duration;

/// The configuration of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePlan {
    pub name: Box<str>,
    /// Maximum size in blocks.
    pub blocks: u32,
    /// Maximum size of a response (head and body) in bytes.
    pub largest: u64,
    /// Maximum age of an entry in seconds.
    pub age: u32,
    /// Responses with Vary are stored.
    pub varies: bool,
    /// Maximum number of variants of one key.
    pub variants: u32,
    /// Which hints are kept for 103 responses.
    pub hints: EarlyHints,
    /// Maximum size in blocks of entries with hints only, if responses are stored as well.
    pub hint_blocks: u32,
    /// `coalesce`: how long a request waits for another one with the same key.
    pub coalesce: Option<Duration>,
    /// `stale-while-revalidate`: how long a stale response is used while another one is fetched.
    pub stale: Duration,
    /// `stale-if-error`: how long a stale response is used if its server fails.
    pub stale_if_error: Duration,
    /// `ranges`.
    pub ranges: bool,
    /// `rfc9111`: conform to the RFC, beyond what HAProxy does.
    pub standard: bool,
    /// The path of the file for `disk`.
    pub disk_path: Option<Box<str>>,
    /// `disk`: size in bytes of the file for evicted responses; 0: none.
    pub disk: u64,
    /// `tag-header`: the field that contains the tags of a response, in lower case.
    pub tag_field: Option<Box<[u8]>>,
}
