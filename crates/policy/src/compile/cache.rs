//! Compiles `cache` sections: sizes become blocks. Must never hold an object.

use config::spec::CacheSpec;
use config::text::to_bytes;
use live::cache::CachePlan;
use std::time::Duration;

/// Blocks of one kilobyte per megabyte.
const BLOCKS: u32 = 1_024;

/// Returns the parameters of a section.
pub(super) fn plan(written: &CacheSpec) -> CachePlan {
    let blocks = written.megabytes.saturating_mul(BLOCKS);
    let bytes = u64::from(blocks) * 1_024;
    CachePlan {
        name: written.name.as_str().into(),
        blocks,
        largest: if written.largest > 0 { u64::from(written.largest) } else { bytes / 256 },
        age: written.age,
        varies: written.varies,
        variants: written.variants,
        hints: written.hints,
        coalesce: (written.coalesce > 0).then(|| Duration::from_millis(written.coalesce)),
        stale: Duration::from_secs(u64::from(written.stale)),
        stale_if_error: Duration::from_secs(u64::from(written.stale_if_error)),
        ranges: written.ranges,
        standard: written.standard,
        disk: written.disk.as_ref().map_or(0, |(_, megabytes)| u64::from(*megabytes) << 20),
        disk_path: written.disk.as_ref().map(|(path, _)| path.as_str().into()),
        tag_field: written.tag_header.as_ref().map(|name| to_bytes(name).to_ascii_lowercase().into()),
        hint_blocks: u32::try_from(u64::from(blocks) * u64::from(written.ratio) / 100).unwrap_or(u32::MAX),
    }
}
