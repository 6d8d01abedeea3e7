//! Debugging and profiling (section 3.3).

use super::{GlobalKeyword, tuning};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    tuning("debug.counters", "{ on | off }", "Developers' event counters; Weir has none."),
    tuning("profiling.memory", "{ on | off }", "Profile of memory calls; Weir leaves that to perf and its like."),
    tuning(
        "profiling.tasks",
        "{ auto | on | off | lock | no-lock | memory | no-memory }",
        "Profile of tasks; Weir leaves that to perf and its like.",
    ),
];
