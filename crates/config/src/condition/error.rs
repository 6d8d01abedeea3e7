//! Errors in conditions: HAProxy's message, and the position. Must never evaluate one.

use std::fmt;

/// Error in a condition. `Display` writes HAProxy's sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError {
    /// HAProxy's sentence, without `in '.if' at position …`.
    pub message: String,
    /// The position that HAProxy reports, from 0.
    pub position: usize,
    /// Offset of the first wrong byte of the condition.
    pub start: usize,
    /// Offset after the last wrong byte.
    pub end: usize,
    pub hint: Option<String>,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ConditionError {}
