//! State of checks that all workers share. Must never run a check.

use super::programs::Programs;
use super::targets::Targets;

/// State of the checks of a process.
#[derive(Debug, Default)]
pub struct Checks {
    /// External check programs.
    pub(super) programs: Programs,
    /// Settings that the runtime API has changed.
    pub targets: Targets,
}
