//! The size of a group of threads. Must never form one.

use config::spec::ProcessorsSpec;

/// Maximum number of threads per group.
pub(super) const MOST_OF_GROUP: u32 = 64;
/// Default of `max-threads-per-group`.
const GROUP_SIZE: u32 = 16;

/// Returns the number of threads of a group.
pub(super) fn group_size(spec: &ProcessorsSpec) -> u32 {
    spec.max_threads_per_group.unwrap_or(GROUP_SIZE).clamp(1, MOST_OF_GROUP)
}
