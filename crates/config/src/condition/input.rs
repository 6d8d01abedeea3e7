//! Input of predicates. Must never evaluate one.

use crate::environment::Environment;
use crate::options::LanguageOptions;

/// Input of predicates.
#[derive(Debug, Clone, Copy)]
pub struct ConditionContext<'a> {
    /// Variables that `defined` looks up.
    pub environment: &'a Environment,
    /// Input of all other predicates.
    pub options: &'a LanguageOptions,
}
